"""What the claim leaves of a function along a line: values less the integral of the claimed slope.

Where the claim is right nothing is left but the noise of the values, however far one goes; where it is wrong by a
smooth error the remainder is smooth, and its slope at the point is that error. Noise N of values over a stretch of
[-T, T] then leaves the slope uncertain by about N / T, with nothing lost to truncation: a forward of few digits is
compared over steps as long as x itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from gradcli.frozen import dataclass
from gradcli.numerics.claims.site import BudgetExceededError, Site
from gradcli.numerics.differences.stencil import NOISE_FACTOR
from gradcli.numerics.maps.floats import EPS, Mask, Matrix
from gradcli.numerics.maps.space import Vector
from gradcli.numerics.sampling.directions import TRIES
from gradcli.numerics.sampling.line import GRID, Line, narrowed, on_grid

NODES = 33
"""Values of the function on one stretch."""
SLOPES = 17
"""The claimed slope is computed at so many extrema of a Chebyshev polynomial, and interpolated between them."""
DEGREES = (1, 3, 5, 7, 9)
"""Degrees of the polynomials that are fitted to the remainder; the slope of a fit at the point is the error of the
claim, and what the last fit leaves counts as noise."""
SIMPLE = 0.1
"""The part of the largest claimed slope that the upper half of a polynomial's coefficients may come to. A claim that
bends more is not followed over this length: the slope of a smooth error of that shape would show less of it."""
ROUNDING = 64.0
"""So many units of rounding in the values are added to SIMPLE."""
LAST, LEFT_OVER, FALLING = 4, 0.1, 0.5
"""The last so many coefficients bound the error of the interpolated slope, and are added to its uncertainty. More
slopes are asked for if they come to more than the second part of it, unless twice as many slopes left more than the
third part of what half of them did: what is left is then the claim's own rounding."""
ROUGHNESS = 1.5
"""The slope over a length is uncertain by so many times the noise of the values, divided by the length."""
POLE = 1e3
"""If a change of value grows by more than this when the step is halved, there is a pole."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Followed:
    """The claimed slopes of some rows over [-reach, reach]: Chebyshev coefficients, and what the last of them leave."""

    reach: float
    coefficients: Matrix
    rest: Vector

    def within(self, reach: float) -> Followed:
        """The same polynomials over a shorter stretch."""
        places = np.cos(np.pi * np.arange(SLOPES) / (SLOPES - 1))
        slopes = np.polynomial.chebyshev.chebval(places * reach / self.reach, self.coefficients).T
        coefficients = np.asarray(np.polynomial.chebyshev.chebfit(places, slopes, SLOPES - 1), dtype=np.float64)
        return Followed(reach=reach, coefficients=coefficients, rest=self.rest)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Stretch:
    """The remainder of every claimed row over [-reach, reach], in units of the rows.

    `slope` is the remainder's slope at the point, `uncertainty` how far that can be wrong, and `noise` the largest
    departure of a value from a smooth curve. `line` gives values, `rows` are the claimed ones among them, `integral`
    holds the Chebyshev coefficients of the integrated claim, `smooth` those of the curve in t / reach, and `left` what
    it leaves of the `values` at the `nodes`: all of these in units of the line's scale. `followed` is the claim itself,
    in units of the rows; None where none was asked for.
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
        """The uncertainty of the slopes: their own, or the roughness of the values over the length of step."""
        width: Vector = np.maximum(self.uncertainty, ROUGHNESS * self.noise / self.reach)
        return width

    def value(self, t: float, row: int) -> float:
        """One row at the parameter t, in units of the line's scale."""
        return float(self.line.at(t)[self.rows][row])

    def size(self, row: int) -> float:
        """The largest magnitude of one row on the stretch, in the row's units."""
        return float(np.abs(self.values[:, row]).max()) * float(self.line.scale[self.rows][row])

    @property
    def sizes(self) -> Vector:
        """The largest magnitude of every row on the stretch, in the rows' units."""
        largest: Vector = np.abs(self.values).max(axis=0) * self.line.scale[self.rows]
        return largest

    def different(self) -> Vector:
        """How many different values every row has at the nodes."""
        ordered = np.sort(self.values, axis=0)
        counts: Vector = 1.0 + (np.diff(ordered, axis=0) != 0).sum(axis=0)
        return counts

    def jump(self, row: int, bracket: int) -> float:
        """The largest jump found between two nodes, in units of the line's scale."""
        return self._halved(row, bracket, curve=False)

    def jumps(self, row: int, part: float) -> bool:
        """Whether one row jumps by some part of its noise, found by halving where its values change most.

        Rounded values change by jumps only; those of an iteration jump on their way along a smooth curve, which is
        taken away first. Across a smooth curve, a ripple or a kink what is left after halving is next to nothing.
        """
        least = part * float(self.noise[row]) / float(self.line.scale[self.rows][row])
        for curve, taken in ((False, self.values[:, row]), (True, self.left[:, row])):
            steepest = np.argsort(-np.abs(np.diff(taken)))[:TRIES].tolist()
            if any(self._halved(row, bracket, curve=curve) >= least for bracket in steepest):
                return True
        return False

    def _halved(self, row: int, bracket: int, *, curve: bool) -> float:
        """What is left of the change between two nodes when the bracket is halved towards the larger part.

        Nothing at a pole, beside which values grow without end.
        """

        def at(t: float) -> float:
            value = self.value(t, row)
            if not curve:
                return value
            place = t / self.reach
            smooth = np.polynomial.polynomial.polyval(place, self.smooth[:, row])
            return value - float(np.polynomial.chebyshev.chebval(place, self.integral[:, row]) + smooth)

        noise = float(self.noise[row]) / float(self.line.scale[self.rows][row])
        first, *_, last = narrowed(at, *self.nodes[bracket : bracket + 2].tolist())
        return last.change if last.change <= POLE * max(first.change, noise) else 0.0


@final
class Path:
    """A line through a point: the function's values and the claimed slopes along it, each asked for once.

    Stretches of different lengths share what lies on both, and the places at which the claim is asked are nodes too
    where the map gives a value with it.
    """

    def __init__(self, site: Site, direction: Vector, asked: Mask | None = None) -> None:
        """Take a line.

        Args:
            site: the point, without a witness.
            direction: the direction v; t = 1 changes x by about itself.
            asked: the claimed rows that matter, all by default; of the others nothing is said.
        """
        self._site, self._direction, self._asked = site, direction, asked
        self._line = Line(site.read, site.x, direction, site.row_values())
        self._rows = slice(self._line.outputs - len(site.claim.forms), self._line.outputs)
        self._nodes: list[float] = []
        self._slopes: dict[float, Vector | None] = {}
        self._followed: Followed | None = None
        self._settled = False

    def stretch(self, reach: float) -> Stretch | None:
        """Measure the remainder of the claim over [-reach, reach].

        The claim is followed by the cheapest polynomial that leaves little beside the width of the slope found.

        Returns:
            None where an output or a claimed entry is not finite, where either raises, or where the claimed slope has
            more features on the stretch than could be followed.
        """
        if self._site.map.values >= self._site.budget:
            raise BudgetExceededError
        found: Stretch | None = None
        for followed in self._polynomials(reach):
            if followed is None:
                return None
            self._followed = followed
            found = _fitted(self._line, self._rows, followed, self._nodes_within(reach))
            if found is None or self._settled or not self._of_rows(followed.rest > LEFT_OVER * found.width).any():
                break
        return found

    def _of_rows(self, values: NDArray[Any]) -> NDArray[Any]:
        """What concerns the rows that matter."""
        return values if self._asked is None else values[self._asked]

    def _polynomials(self, reach: float) -> Iterator[Followed | None]:
        """The claimed slopes over a stretch: as a longer one has them, then by those asked for there.

        None where one is not finite, or where they are too crooked, which half of them may show. What twice as many
        leave as well is the claim's own rounding.
        """
        if self._followed is not None:
            yield self._followed.within(reach)
        half = self._polynomial(reach, SLOPES // 2)
        whole = None if half is None else self._polynomial(reach, SLOPES - 1)
        if half is not None and whole is not None:
            self._settled = self._of_rows(whole.rest).max() > FALLING * self._of_rows(half.rest).max()
        yield whole

    def _polynomial(self, reach: float, degree: int) -> Followed | None:
        places = np.cos(np.pi * np.arange(degree + 1) / degree)
        known = [self._slopes_at(on_grid(reach * place)) for place in places.tolist()]
        slopes = np.array([slope for slope in known if slope is not None])
        if len(slopes) < len(places):
            return None
        coefficients = np.asarray(np.polynomial.chebyshev.chebfit(places, slopes, degree), dtype=np.float64)
        left = np.abs(coefficients[degree // 2 + 1 :]).sum(axis=0)
        nothing = ROUNDING * EPS * np.abs(self._site.row_values()[self._rows]) / reach
        if (left > SIMPLE * np.abs(slopes).max() + nothing).any():
            return None
        return Followed(reach=reach, coefficients=coefficients, rest=np.abs(coefficients[-LAST:]).sum(axis=0))

    def _slopes_at(self, t: float) -> Vector | None:
        """The claimed slope of every row at a place; None where it is not finite."""
        if t not in self._slopes:
            claim = self._site.claim_at(self._site.x + t * self._direction, self._asked)
            usable = claim is not None and claim.finite
            self._slopes[t] = claim.forms @ self._direction if claim is not None and usable else None
            if claim is not None and claim.outputs is not None:
                self._line.know(t, self._site.claim.read(claim.outputs))
                self._nodes.append(t)
        return self._slopes[t]

    def _nodes_within(self, reach: float) -> Vector:
        """Places over [-reach, reach], jittered: those known already, and one in every cell that has none."""
        known = [t for t in self._nodes if abs(t) <= reach + GRID]
        taken = {int(min(NODES * (t / reach + 1) / 2, NODES - 1)) for t in known}
        free = [cell for cell in range(NODES) if cell not in taken]
        new = [on_grid(reach * (place / NODES - 1)) for place in _jittered(self._site, free)]
        self._nodes += new
        return np.sort([*known, *new])


def _jittered(site: Site, cells: Sequence[int]) -> list[float]:
    """A place about the middle of every cell of width 2."""
    jitter = 0.6 * site.rng.uniform(-1, 1, len(cells))
    places: list[float] = (2 * np.array(cells) + 1 + jitter).tolist()
    return places


def unclaimed_stretch(site: Site, direction: Vector, reach: float, outputs: Vector) -> Stretch | None:
    """Measure some outputs themselves along a direction: the slope is theirs, uncertain by their curvature too.

    Args:
        site: the point.
        direction: the direction v; t = 1 changes x by about itself.
        reach: T; nodes t lie in [-T, T].
        outputs: numbers of the outputs.

    Returns:
        None where an output is not finite.
    """

    def chosen(point: Vector) -> Vector:
        picked: Vector = np.asarray(site.map.value(point), dtype=np.float64)[outputs]
        return picked

    if site.map.values >= site.budget:
        raise BudgetExceededError
    line = Line(chosen, site.x, direction, site.outputs[outputs])
    nothing = Followed(reach=reach, coefficients=np.zeros((1, line.outputs)), rest=np.zeros(line.outputs))
    return _fitted(
        line,
        slice(0, line.outputs),
        nothing,
        np.array([on_grid(reach * (place / NODES - 1)) for place in _jittered(site, range(NODES))]),
    )


def _fitted(line: Line, rows: slice, followed: Followed, nodes: Vector) -> Stretch | None:
    """Fit polynomials to f(x + t v) - f(x) - ∫ claim at some nodes; None where f is not finite at one."""
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
    """The slope at zero by the polynomial that is surest of it, and its uncertainty.

    That is eight standard deviations of the noise and the shift to the next degree, or to any higher one that
    contradicts by more than the noise of both.
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
