"""The residual along a line: r(t) = f(x + t v) - f(x) - the integral of the claimed slope from 0 to t.

If the claim is right, r contains only the noise of the values, however long the line is. If the claim is wrong by a
smooth error e(t), r is smooth and its slope at t = 0 is -e(0). Noise of size N in the values on [-T, T] makes that
slope uncertain by about N / T, and there is no truncation error. A forward whose values have few digits can therefore
be compared with its claim over steps as long as x itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from gradcli.frozen import dataclass
from gradcli.numerics.claims.site import BudgetExceededError, Site
from gradcli.numerics.differences.stencil import NOISE_FACTOR
from gradcli.numerics.maps.floats import EPS, Indices, Mask, Matrix
from gradcli.numerics.maps.space import Vector
from gradcli.numerics.sampling.directions import TRIES, Focus, random_direction
from gradcli.numerics.sampling.line import GRID, Bracket, Line, narrowed, on_grid

NODES = 33
"""How many values of the function are computed on one interval [-T, T]."""
SLOPES = 17
"""How many times the claim is computed on one interval: at the extrema of a Chebyshev polynomial of degree 16. The
polynomial through these slopes is integrated."""
DEGREES = (1, 3, 5, 7, 9)
"""Degrees of the polynomials that are fitted to the residual. Minus the slope of such a fit at t = 0 estimates the
error of the claim; the distances of the values from the fit of the last degree count as noise."""
SIMPLE = 0.03
"""The interval is too long if the upper half of the Chebyshev coefficients of the claimed slope sums to more than this
part of the largest slope. All but so much of an error of the claim's own shape then shows in the residual's slope. The
eight coefficients of a claim that is rounded to bfloat16 sum to 8 · 2^-8. The claim is first computed at half of the
places, where √SIMPLE is allowed: the coefficients of a smooth slope fall like powers."""
ROUNDING = 64.0
"""64 ε |f| / T, the slope that rounding errors of the value would make over the interval, is added to the limit SIMPLE.
Without that, a claim which is zero up to rounding would exceed it."""
LAST, LEFT_OVER = 4, 0.1
"""The sum of the last 4 Chebyshev coefficients estimates the error of the interpolated slope, and is added to the
uncertainty of the residual's slope. The claim is computed at further places only if that sum exceeds a tenth of the
uncertainty, and was halved when 17 places took the place of 9: if not, it is the claim's own rounding, which does not
fall."""
ROUGHNESS = 1.5
"""The slope of the residual over [-T, T] is taken to be uncertain by at least 1.5 N / T, where N is the noise: the
largest distance of a value from the fitted curve. A straight line through two values at ± T would be wrong by N / T."""
POLE = 1e3
"""If halving an interval towards the larger change increases the change by more than this factor, there is a pole
inside, not a jump."""
REACHES = tuple(0.8 * 2.0**-k for k in range(12))
"""The lengths T of the intervals [-T, T]: from most of the magnitude of x, at 0.8, down to 1/2560 of it."""
LEVELS = 3
"""At this many lengths the claim must agree: the longest at which the residual can be measured, its half and
quarter."""
UNFINISHED = 5.0
"""If forward iterates, the slope over [-T, T] is uncertain by 5 N / T instead of ROUGHNESS · N / T: errors of stopping
early have one sign over long distances, so that they do not average out as rounding does."""
STEADY = 10
"""If so many halvings in turn leave the change the same bit for bit, one half of the interval is constant each time:
there is a jump between two plateaus, and further halvings would show the same."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Followed:
    """The claimed slopes of some rows on [-reach, reach], as Chebyshev polynomials.

    Attributes:
        reach: T, half the length of the interval.
        coefficients: one column for every row, in units of the row.
        rest: an estimate of the error of these polynomials, from their last coefficients.
    """

    reach: float
    coefficients: Matrix
    rest: Vector

    def within(self, reach: float) -> Followed:
        """The same polynomials, expressed on a shorter interval. The error estimate stays that of the longer one."""
        places = np.cos(np.pi * np.arange(SLOPES) / (SLOPES - 1))
        slopes = np.polynomial.chebyshev.chebval(places * reach / self.reach, self.coefficients).T
        coefficients = np.asarray(np.polynomial.chebyshev.chebfit(places, slopes, SLOPES - 1), dtype=np.float64)
        return Followed(reach=reach, coefficients=coefficients, rest=self.rest)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Stretch:
    """The residual of every claimed row on the interval [-reach, reach].

    Attributes:
        reach: T, half the length of the interval.
        slope: the slope of the residual at t = 0, in units of the row.
        uncertainty: the error bound of `slope`, from the fit alone, in units of the row.
        noise: the largest distance of a value from the fitted curve, in units of the row.
        line: computes values of f; the attributes below except `followed` are in units of `line.scale`.
        rows: which of the line's values are the claimed rows.
        integral: Chebyshev coefficients of the integral of the claimed slope.
        smooth: coefficients of the polynomial in t / reach that is fitted to the residual, plus f(x).
        left: the values less both curves: their distances from the fit.
        values: the values of the claimed rows at `nodes`.
        nodes: the parameters t.
        followed: the claimed slopes, in units of the row; None if they are not known.
    """

    reach: float
    slope: Vector
    uncertainty: Vector
    noise: Vector
    line: Line
    rows: slice
    integral: Matrix
    smooth: Matrix
    left: Matrix
    values: Matrix
    nodes: Vector
    followed: Followed | None = None

    @property
    def width(self) -> Vector:
        """The error bound of `slope`: that of the fit, or ROUGHNESS · noise / reach if that is larger."""
        width: Vector = np.maximum(self.uncertainty, ROUGHNESS * self.noise / self.reach)
        return width

    def value(self, t: float, row: int) -> float:
        """The value of one row at the parameter t, in units of `line.scale`."""
        return float(self.line.at(t)[self.rows][row])

    def size(self, row: int) -> float:
        """The largest magnitude of one row on the interval, in units of the row."""
        return float(np.abs(self.values[:, row]).max()) * float(self.line.scale[self.rows][row])

    @property
    def sizes(self) -> Vector:
        """The largest magnitude of every row on the interval, in units of the row."""
        largest: Vector = np.abs(self.values).max(axis=0) * self.line.scale[self.rows]
        return largest

    def different(self) -> Vector:
        """The number of different values that every row takes at the nodes."""
        ordered = np.sort(self.values, axis=0)
        counts: Vector = 1.0 + (np.diff(ordered, axis=0) != 0).sum(axis=0)
        return counts

    def jump(self, row: int, bracket: int) -> float:
        """The jump of one row between two adjacent nodes, found by halving, in units of `line.scale`; 0 at a pole.

        Where the row is continuous between the nodes, almost nothing is left after the halvings.
        """
        return self._halved(row, bracket, curve=False)

    def jumps(self, row: int, part: float) -> bool:
        """Whether one row has a jump of at least `part` times its noise.

        The intervals between nodes across which the row changes most are halved towards the larger change. The change
        across a jump stays; across a smooth curve, a ripple or a kink it shrinks to almost nothing. Rounded values
        change by jumps only, so the values themselves are tried first. The values of an iteration that stops early
        jump from one smooth curve to another, so the values less the fitted curve are tried next.
        """
        least = part * float(self.noise[row]) / float(self.line.scale[self.rows][row])
        for curve, taken in ((False, self.values[:, row]), (True, self.left[:, row])):
            steepest = np.argsort(-np.abs(np.diff(taken)))[:TRIES].tolist()
            if any(self._halved(row, bracket, curve=curve) >= least for bracket in steepest):
                return True
        return False

    def _halved(self, row: int, bracket: int, *, curve: bool) -> float:
        """The change that remains when the interval between two nodes is halved repeatedly towards the larger change.

        With `curve`, the fitted curve is subtracted from the values first. The result is 0 if the change has grown by
        more than the factor POLE: next to a pole values grow without limit.
        """

        def at(t: float) -> float:
            value = self.value(t, row)
            if not curve:
                return value
            place = t / self.reach
            smooth = np.polynomial.polynomial.polyval(place, self.smooth[:, row])
            return value - float(np.polynomial.chebyshev.chebval(place, self.integral[:, row]) + smooth)

        noise = float(self.noise[row]) / float(self.line.scale[self.rows][row])
        first, *brackets = _narrowed_until_steady(at, *self.nodes[bracket : bracket + 2].tolist())
        last = brackets[-1]
        return last.change if last.change <= POLE * max(first.change, noise) else 0.0


def _narrowed_until_steady(at: Callable[[float], float], low: float, high: float) -> Iterator[Bracket]:
    """Halve an interval as `narrowed` does, but stop at a jump between two plateaus (STEADY)."""
    same, before = 0, None
    for bracket in narrowed(at, low, high):
        yield bracket
        same = same + 1 if bracket.change == before else 0
        if same >= STEADY and bracket.change > 0:
            return
        before = bracket.change


def steepest(site: Site, rows: Mask, focus: Focus) -> Vector:
    """A random direction along which all claimed entries of one row add up: the row with the largest scaled entry."""
    forms = site.claim.forms[rows]
    row = forms[int(np.argmax((np.abs(forms) * focus.judged).max(axis=1)))]
    return np.where(row < 0, -1.0, 1.0) * np.abs(random_direction(site.rng, focus.drawn))


@final
class Path:
    """The residual along one line, on intervals of any length: every value and every claimed slope is computed once.

    An interval uses the values and the polynomial of a longer one. Where the claim's forward also gives a value, its
    place is a node as well.
    """

    def __init__(
        self,
        site: Site,
        direction: Vector,
        asked: Mask | None = None,
        *,
        outputs: Indices | None = None,
        nodes: int = NODES,
        known: Path | None = None,
    ) -> None:
        """Take a line.

        Args:
            site: the point, without a reference.
            direction: the direction v; t = 1 changes x by about its own magnitude.
            asked: the claimed rows to measure, by default all. The results for other rows are meaningless.
            outputs: numbers of outputs. If given, polynomials are fitted to these outputs themselves, as if their
                claimed slope were zero: `slope` is the slope of the output, and its uncertainty contains the curvature.
            nodes: how many values are computed on an interval, at least.
            known: the same line for other rows, whose values are used again.
        """
        self._site, self._direction, self._asked, self._parts = site, direction, asked, nodes
        self._line: Line
        self._rows: slice
        self._nodes: list[float] = []
        self._slopes: dict[float, Vector | None] = {}
        self._followed: Followed | None = None
        self._rounded = False
        if known is not None:
            self._line, self._rows, self._nodes = known._line, known._rows, known._nodes
            return
        if outputs is None:
            self._line = Line(site.read, site.x, direction, site.row_values())
            self._rows = slice(self._line.outputs - len(site.claim.forms), self._line.outputs)
            return
        chosen = outputs
        self._line = Line(lambda x: np.asarray(site.map.value(x))[chosen], site.x, direction, site.outputs[chosen])
        self._rows = slice(0, chosen.size)
        self._followed = Followed(reach=1.0, coefficients=np.zeros((1, chosen.size)), rest=np.zeros(chosen.size))

    def stretch(self, reach: float) -> Stretch | None:
        """Measure the residual on [-reach, reach].

        Returns:
            None if an output or a claimed entry is not finite, if forward or backward raises, or if the claimed slope
            varies too much on the interval (SIMPLE).

        Raises:
            BudgetExceededError: the evaluations allowed are used up.
        """
        if self._site.map.values >= self._site.budget:
            raise BudgetExceededError
        found: Stretch | None = None
        for followed in self._polynomials(reach):
            if followed is None:
                return None
            self._followed = followed
            found = _fitted(self._line, self._rows, followed, self._nodes_within(reach))
            if found is None or self._rounded or not self._asked_of(followed.rest > LEFT_OVER * found.width).any():
                break
        return found

    def _asked_of(self, values: NDArray[Any]) -> NDArray[Any]:
        """The values of the rows to measure."""
        return values if self._asked is None else values[self._asked]

    def _polynomials(self, reach: float) -> Iterator[Followed | None]:
        """The claimed slopes on an interval: from the polynomial of a longer one, then from slopes computed for it.

        None if one is not finite, or if they vary too much, which half of the places may show already.
        """
        if self._followed is not None:
            yield self._followed.within(reach)
        half = self._polynomial(reach, SLOPES // 2)
        whole = None if half is None else self._polynomial(reach, SLOPES - 1)
        if half is not None and whole is not None:
            self._rounded = 2 * self._asked_of(whole.rest).max() > self._asked_of(half.rest).max()
        yield whole

    def _polynomial(self, reach: float, degree: int) -> Followed | None:
        """The Chebyshev polynomials of a degree through the claimed slopes on an interval."""
        places = np.cos(np.pi * np.arange(degree + 1) / degree)
        slopes: list[Vector] = []
        for place in places.tolist():
            slope = self._slope_at(on_grid(reach * place))
            if slope is None:
                return None
            slopes.append(slope)
        coefficients = np.asarray(np.polynomial.chebyshev.chebfit(places, np.array(slopes), degree), dtype=np.float64)
        upper = np.abs(coefficients[degree // 2 + 1 :]).sum(axis=0)
        nothing = ROUNDING * EPS * np.abs(self._site.row_values()[self._rows]) / reach
        allowed = SIMPLE ** (degree / (SLOPES - 1))
        if (upper > allowed * np.abs(slopes).max() + nothing).any():
            return None
        return Followed(reach=reach, coefficients=coefficients, rest=np.abs(coefficients[-LAST:]).sum(axis=0))

    def _slope_at(self, t: float) -> Vector | None:
        """The claimed slope of every row at a parameter; None if it is not finite."""
        if t not in self._slopes:
            claim = self._site.claim_at(self._site.x + t * self._direction, self._asked)
            usable = claim is not None and claim.finite
            self._slopes[t] = claim.forms @ self._direction if claim is not None and usable else None
            if claim is not None and claim.outputs is not None and t not in self._nodes:
                self._line.know(t, self._site.claim.read(claim.outputs))
                self._nodes.append(t)
        return self._slopes[t]

    def _nodes_within(self, reach: float) -> Vector:
        """Parameters in [-reach, reach]: those known already, and a random one in every part that has none."""
        known = [t for t in self._nodes if abs(t) <= reach + GRID]
        taken = {int(min(self._parts * (t / reach + 1) / 2, self._parts - 1)) for t in known}
        free = np.array([part for part in range(self._parts) if part not in taken])
        jitter = 0.6 * self._site.rng.uniform(-1, 1, free.size)
        new = [on_grid(reach * t) for t in ((2 * free + 1 + jitter) / self._parts - 1).tolist()]
        self._nodes += new
        return np.sort([*known, *new])


def _fitted(line: Line, rows: slice, followed: Followed, nodes: Vector) -> Stretch | None:
    """Compute the residual f(x + t v) - f(x) - ∫ claim at the nodes, and fit polynomials to it.

    None if f is not finite at some node, or so large that its square is not. The noise is at least the rounding error
    of the value and of the integral.
    """
    reach, claimed = followed.reach, followed.coefficients / line.scale[rows]
    values = np.array([line.at(t)[rows] for t in nodes.tolist()])
    if not np.isfinite(values).all():
        return None
    integral = np.asarray(reach * np.polynomial.chebyshev.chebint(claimed, axis=0, lbnd=0), dtype=np.float64)
    remainder = values - line.centre[rows] - np.polynomial.chebyshev.chebval(nodes / reach, integral).T
    basis = np.vander(nodes / reach, DEGREES[-1] + 1, increasing=True)
    smooth = np.asarray(np.linalg.lstsq(basis, remainder, rcond=None)[0], dtype=np.float64)
    left = remainder - basis @ smooth
    rounding = EPS * (np.abs(values).max(axis=0) + 8 * reach * np.abs(claimed).sum(axis=0))
    with np.errstate(over="ignore"):
        sigma = np.maximum(np.sqrt((left * left).sum(axis=0) / (len(nodes) - DEGREES[-1] - 1)), rounding)
    if not np.isfinite(sigma).all():
        return None
    slope, uncertainty = _slope(basis, remainder, sigma)
    size = line.scale[rows]
    smooth[0] += line.centre[rows]
    return Stretch(
        reach=reach,
        slope=slope / reach * size,
        uncertainty=uncertainty / reach * size + followed.rest,
        noise=np.maximum(np.abs(left).max(axis=0), rounding) * size,
        line=line,
        rows=rows,
        integral=integral,
        smooth=smooth,
        left=left,
        values=values,
        nodes=nodes,
        followed=followed,
    )


def _slope(basis: Matrix, remainder: Matrix, sigma: Vector) -> tuple[Vector, Vector]:
    """The slope of the residual at zero, by the fit with the smallest uncertainty, and that uncertainty.

    The uncertainty of a fit is eight standard deviations of its noise (NOISE_FACTOR), plus the difference from the fit
    of the next degree, or from a higher degree if that differs by more than the noise of both. Both results are
    derivatives with respect to t / reach.
    """
    weights = [np.linalg.pinv(basis[:, : degree + 1])[1] for degree in DEGREES]
    slopes = np.array([w @ remainder for w in weights])
    noises = NOISE_FACTOR * np.outer([np.linalg.norm(w) for w in weights], sigma)
    value, uncertainty = slopes[-1], np.full(sigma.size, np.inf)
    for k in range(len(DEGREES) - 1):
        apart = np.abs(slopes[k] - slopes[k + 1 :])
        contradiction = (apart - noises[k] - noises[k + 1 :]).max(axis=0)
        width = noises[k] + np.maximum(apart[0], contradiction)
        better = width < uncertainty
        value, uncertainty = np.where(better, slopes[k], value), np.where(better, width, uncertainty)
    return value, uncertainty
