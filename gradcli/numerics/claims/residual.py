"""The residual along a line: r(t) = f(x + t v) - f(x) - the integral of the claimed slope from 0 to t.

If the claim is right, r contains only the noise of the values, however long the line is. If the claim is wrong by a
smooth error e(t), r is smooth and its slope at t = 0 is -e(0). Noise of size N in the values on [-T, T] makes that
slope uncertain by about N / T, and there is no truncation error. A forward whose values have few digits can therefore
be compared with its claim over steps as long as x itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import final

import numpy as np

from gradcli.frozen import dataclass
from gradcli.numerics.claims.site import Site
from gradcli.numerics.differences.stencil import NOISE_FACTOR
from gradcli.numerics.maps.floats import EPS, Mask, Matrix, Vector
from gradcli.numerics.maps.sizes import ROUNDING
from gradcli.numerics.sampling.directions import TRIES
from gradcli.numerics.sampling.line import Bracket, Line, narrowed, on_grid

REACHES = tuple(0.8 * 2.0**-k for k in range(12))
"""The lengths T of the intervals [-T, T]: from most of the magnitude of x, at 0.8, down to 1/2560 of it."""
NODES = 33
"""How many values of the function are computed on one interval [-T, T]."""
SLOPES = 17
"""How many times the claim is computed on one interval: at the extrema of a Chebyshev polynomial of degree 16. The
polynomial through these slopes is integrated."""
DEGREES = (1, 3, 5, 7, 9)
"""Degrees of the polynomials that are fitted to the residual. Minus the slope of such a fit at t = 0 estimates the
error of the claim; the distances of the values from the fit of the last degree count as noise."""
SIMPLE = 3e-3
"""The interval is too long if the Chebyshev coefficients of the claimed slope above degree 8 sum to more than this part
of its largest value. On such an interval the residual of a wrong claim need not be close to a polynomial of degree 9
(the integral of one of degree 8), and a smooth error could be taken for noise."""
LAST, LEFT_OVER = 4, 0.1
"""The sum of the last 4 Chebyshev coefficients estimates the error of the interpolated slope. It may be neglected below
a tenth of the uncertainty of the residual's slope."""
ROUGHNESS = 1.5
"""The slope of the residual over [-T, T] is taken to be uncertain by at least 1.5 N / T, where N is the noise: the
largest distance of a value from the fitted curve. A straight line through two values at ± T would be wrong by N / T."""
POLE = 1e3
"""If halving an interval towards the larger change increases the change by more than this factor, there is a pole
inside, not a jump."""


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
        followed: the claimed slopes, in units of the row.
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
    followed: Followed

    @property
    def width(self) -> Vector:
        """The error bound of `slope`: that of the fit, or ROUGHNESS · noise / reach if that is larger."""
        width: Vector = np.maximum(self.uncertainty, ROUGHNESS * self.noise / self.reach)
        return width

    def value(self, t: float, row: int) -> float:
        """The value of one row at the parameter t, in units of `line.scale`."""
        return float(self.line.at(t)[self.rows][row])

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
        found = self._halved(row, bracket, curve=False)
        return 0.0 if found is None else found.change

    def jumps(self, rows: Sequence[int], part: float) -> bool:
        """Whether each of some rows has a jump of at least `part` times its noise.

        The intervals between nodes across which the row changes most are halved towards the larger change. The change
        across a jump stays; across a smooth curve, a ripple or a kink it shrinks to almost nothing. Rounded values
        change by jumps only, so the values themselves are tried first. The values of an iteration that stops early
        jump from one smooth curve to another, so the values less the fitted curve are tried next. Where one row jumps,
        the others may: an iteration makes all of its rows jump alike, and the values there are known.
        """
        known: list[Bracket] = []
        for row in rows:
            least = part * float(self.noise[row]) / float(self.line.scale[self.rows][row])
            if not any(abs(self.value(place.high, row) - self.value(place.low, row)) >= least for place in known):
                found = next((each for each in self._halvings(row, least) if each.change >= least), None)
                if found is None:
                    return False
                known.append(found)
        return True

    def _halvings(self, row: int, least: float) -> Iterator[Bracket]:
        """What is left of the intervals of one row that are halved, the steepest first; see `jumps`."""
        for curve, taken in ((False, self.values[:, row]), (True, self.left[:, row])):
            for bracket in np.argsort(-np.abs(np.diff(taken)))[:TRIES].tolist():
                found = self._halved(row, bracket, curve=curve, least=least)
                if found is not None:
                    yield found

    def _halved(self, row: int, bracket: int, *, curve: bool, least: float = 0.0) -> Bracket | None:
        """What is left when the interval between two nodes is halved repeatedly towards the larger change.

        With `curve`, the fitted curve is subtracted from the values first. An interval with a change below `least` is
        not halved further. The result is None if the change has grown by more than the factor POLE: next to a pole
        values grow without limit.
        """

        def at(t: float) -> float:
            value = self.value(t, row)
            if not curve:
                return value
            place = t / self.reach
            smooth = np.polynomial.polynomial.polyval(place, self.smooth[:, row])
            return value - float(np.polynomial.chebyshev.chebval(place, self.integral[:, row]) + smooth)

        noise = float(self.noise[row]) / float(self.line.scale[self.rows][row])
        brackets = narrowed(at, *self.nodes[bracket : bracket + 2].tolist())
        first = last = next(brackets)
        while last.change >= least and (halved := next(brackets, None)) is not None:
            last = halved
        return last if last.change <= POLE * max(first.change, noise) else None


def stretch(
    site: Site,
    direction: Vector,
    reach: float,
    asked: Mask,
    longer: Stretch | None,
    again: Stretch | None = None,
) -> Stretch | None:
    """Measure the residual of the claim along a direction.

    Args:
        direction: the direction v; t = 1 changes x by about its own magnitude.
        reach: T; all parameters t lie in [-T, T].
        asked: the claimed rows to measure. The results for other rows are meaningless.
        longer: the residual on a longer interval along the same direction. Its values of f are used again, and so are
            its claimed slopes, without further calls of backward, if their interpolation error is small compared with
            the width found.
        again: the residual of other rows on the same interval, whose values of f are used again.

    Returns:
        None if an output or a claimed entry is not finite, if forward or backward raises, or if the claimed slope
        varies too much on the interval (SIMPLE).

    Raises:
        BudgetExceededError: the evaluations allowed are used up.
    """
    site.map.require_budget()
    measured = again or longer
    line = Line(site.read, site.x, direction, site.row_values()) if measured is None else measured.line
    rows = slice(line.outputs - len(site.claim.forms), line.outputs)
    nodes = again.nodes if again is not None else _nodes(site, reach, () if longer is None else longer.nodes)
    known = None if longer is None else longer.followed.within(reach)
    followed = known or _followed(site, direction, reach, asked)
    found = None if followed is None else _fitted(line, rows, followed, nodes)
    if found is None or known is None or not (known.rest > LEFT_OVER * found.width)[asked].any():
        return found
    followed = _followed(site, direction, reach, asked)
    return None if followed is None else _fitted(line, rows, followed, nodes)


def residuals(
    site: Site, direction: Vector, reaches: Iterable[float], asked: Mask, known: dict[float, Stretch] | None = None
) -> Iterator[Stretch]:
    """The residual of some rows at each of the lengths, longest first, at which it can be measured (`stretch`).

    `known` holds residuals of other rows by length: their values of f are used again, and every new one is added.
    """
    known, longer = {} if known is None else known, None
    for reach in reaches:
        level = stretch(site, direction, reach, asked, longer, known.get(reach))
        if level is not None:
            known[reach] = longer = level
            yield level


def unclaimed_stretch(site: Site, direction: Vector, reach: float, outputs: Vector) -> Stretch | None:
    """Fit polynomials to some outputs themselves along a direction, as if their claimed slope were zero.

    `slope` is then the slope of the output, and its uncertainty contains the curvature of the output.

    Args:
        direction: the direction v; t = 1 changes x by about its own magnitude.
        reach: T; all parameters t lie in [-T, T].

    Returns:
        None if an output is not finite on the interval.

    Raises:
        BudgetExceededError: the evaluations allowed are used up.
    """

    def chosen(point: Vector) -> Vector:
        picked: Vector = np.asarray(site.map.value(point), dtype=np.float64)[outputs]
        return picked

    site.map.require_budget()
    line = Line(chosen, site.x, direction, site.outputs[outputs])
    nothing = Followed(reach=reach, coefficients=np.zeros((1, line.outputs)), rest=np.zeros(line.outputs))
    return _fitted(line, slice(0, line.outputs), nothing, _nodes(site, reach))


def _followed(site: Site, direction: Vector, reach: float, asked: Mask) -> Followed | None:
    """Interpolate the claimed slope of every row on [-reach, reach] by a Chebyshev polynomial of degree 16.

    None if it is not finite, or if its high coefficients are too large (SIMPLE).
    """
    places = np.cos(np.pi * np.arange(SLOPES) / (SLOPES - 1))
    found: list[Vector] = []
    for place in places.tolist():
        claim = site.claim_at(site.x + on_grid(reach * place) * direction, asked)
        if claim is None or not claim.finite:
            return None
        found.append(claim.forms @ direction)
    slopes = np.array(found)
    coefficients = np.asarray(np.polynomial.chebyshev.chebfit(places, slopes, SLOPES - 1), dtype=np.float64)
    # Without this, a claim that is zero up to rounding would exceed the limit.
    nothing = ROUNDING * np.abs(site.row_values()[-len(site.claim.forms) :]) / reach
    if (np.abs(coefficients[DEGREES[-1] :]).sum(axis=0) > SIMPLE * np.abs(slopes).max(axis=0) + nothing).any():
        return None
    return Followed(reach=reach, coefficients=coefficients, rest=np.abs(coefficients[-LAST:]).sum(axis=0))


def _nodes(site: Site, reach: float, known: Iterable[float] = ()) -> Vector:
    """NODES parameters in [-reach, reach]: one in each of as many equal parts, drawn at random from its middle 60 %.

    In a part that contains one of the parameters `known`, that is taken instead.
    """
    jitter = 0.3 * site.rng.uniform(-1, 1, NODES)
    nodes = [on_grid(reach * t) for t in ((2 * np.arange(NODES) + 1 + 2 * jitter) / NODES - 1).tolist()]
    for t in known:
        if abs(t) < reach:
            nodes[int((t / reach + 1) / 2 * NODES)] = t
    return np.array(nodes)


def _fitted(line: Line, rows: slice, followed: Followed, nodes: Vector) -> Stretch | None:
    """Compute the residual f(x + t v) - f(x) - ∫ claim at the nodes, and fit polynomials to it.

    None if f is not finite at some node. The noise is at least the rounding error of the value and of the integral.
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
    sigma = np.maximum(np.sqrt((left * left).sum(axis=0) / (len(nodes) - DEGREES[-1] - 1)), rounding)
    slope, uncertainty = _slope(basis, remainder, sigma)
    size = line.scale[rows]
    smooth[0] += line.centre[rows]
    return Stretch(
        reach=reach,
        slope=slope / reach * size,
        uncertainty=uncertainty / reach * size,
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
