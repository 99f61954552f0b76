"""What the claim leaves of a function along a line: values less the integral of the claimed slope.

Where the claim is right nothing is left but the noise of the values, however far one goes; where it is wrong by a
smooth error the remainder is smooth, and its slope at the point is that error. Noise N of values over a stretch of
[-T, T] then leaves the slope uncertain by about N / T, with nothing lost to truncation: a forward of few digits is
compared over steps as long as x itself.
"""

from __future__ import annotations

from typing import final

import numpy as np

from gradcli.frozen import dataclass
from gradcli.numerics.claims.site import BudgetExceededError, Site
from gradcli.numerics.differences.stencil import NOISE_FACTOR
from gradcli.numerics.maps.floats import EPS, Mask, Matrix
from gradcli.numerics.maps.space import Vector
from gradcli.numerics.sampling.directions import TRIES
from gradcli.numerics.sampling.line import Line, narrowed, on_grid

NODES = 33
"""Values of the function on one stretch."""
SLOPES = 17
"""The claimed slope is computed at so many extrema of a Chebyshev polynomial, and interpolated between them."""
DEGREES = (1, 3, 5, 7, 9)
"""Degrees of the polynomials that are fitted to the remainder; the slope of a fit at the point is the error of the
claim, and what the last fit leaves counts as noise."""
SIMPLE = 3e-3
"""The part of the claimed slope that a polynomial of degree 8 may leave. A claim that bends more is not followed over
this length: a smooth error could be taken for noise."""
ROUNDING = 64.0
"""So many units of rounding in the values are added to SIMPLE and HOPELESS."""
HOPELESS = 0.1
"""If a polynomial of degree 4 leaves more than this part of half of the claimed slopes, the other half is not
computed."""
LAST, LEFT_OVER = 4, 0.1
"""The last so many coefficients bound the error of the interpolated slope; it is ignored below this part of the slope's
uncertainty."""
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


def stretch(
    site: Site,
    direction: Vector,
    reach: float,
    asked: Mask | None = None,
    *,
    longer: Stretch | None = None,
    again: Stretch | None = None,
) -> Stretch | None:
    """Measure the remainder of the claim along a direction.

    Args:
        site: the point, without a witness.
        direction: the direction v; t = 1 changes x by about itself.
        reach: T; nodes t lie in [-T, T].
        asked: the claimed rows that matter, all by default; of the others nothing is said.
        longer: a longer stretch along the same direction; the claim is not asked for again where what its polynomial
            leaves is little beside the width found.
        again: the same stretch for other rows, whose values are used again.

    Returns:
        None where an output or a claimed entry is not finite, where either raises, or where the claimed slope has more
        features on the stretch than could be followed.
    """
    if site.map.values >= site.budget:
        raise BudgetExceededError
    line = Line(site.read, site.x, direction, site.row_values()) if again is None else again.line
    rows = slice(line.outputs - len(site.claim.forms), line.outputs)
    nodes = _nodes(site, reach) if again is None else again.nodes
    known = None if longer is None or longer.followed is None else longer.followed.within(reach)
    followed = known or _followed(site, direction, reach, asked)
    found = None if followed is None else _fitted(line, rows, followed, nodes)
    if found is None or known is None or _is_close(known.rest, found.width, asked):
        return found
    followed = _followed(site, direction, reach, asked)
    return None if followed is None else _fitted(line, rows, followed, nodes)


def _is_close(rest: Vector, width: Vector, asked: Mask | None) -> bool:
    """Whether the remainder after a polynomial fit is small against the width of the slope, in the rows asked for."""
    far = rest > LEFT_OVER * width
    return not (far if asked is None else far & asked).any()


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
    return _fitted(line, slice(0, line.outputs), nothing, _nodes(site, reach))


def _followed(site: Site, direction: Vector, reach: float, asked: Mask | None) -> Followed | None:
    """The claimed derivative of every row over the stretch.

    None where it is not finite or too crooked, which half of the places may show.
    """
    known: dict[float, Vector] = {}
    coefficients: Matrix | None = None
    for degree, end, allowed in ((SLOPES // 2, 5, HOPELESS), (SLOPES - 1, DEGREES[-1], SIMPLE)):
        places = np.cos(np.pi * np.arange(degree + 1) / degree)
        for place in [place for place in places.tolist() if place not in known]:
            claim = site.claim_at(site.x + on_grid(reach * place) * direction, asked)
            if claim is None or not claim.finite:
                return None
            known[place] = claim.forms @ direction
        slopes = np.array([known[place] for place in places.tolist()])
        coefficients = np.asarray(np.polynomial.chebyshev.chebfit(places, slopes, degree), dtype=np.float64)
        nothing = ROUNDING * EPS * np.abs(site.row_values()[-len(site.claim.forms) :]) / reach
        if (np.abs(coefficients[end:]).sum(axis=0) > allowed * np.abs(slopes).max(axis=0) + nothing).any():
            return None
    if coefficients is None:
        return None
    return Followed(reach=reach, coefficients=coefficients, rest=np.abs(coefficients[-LAST:]).sum(axis=0))


def _nodes(site: Site, reach: float) -> Vector:
    """Jittered places over [-reach, reach]."""
    jitter = 0.3 * site.rng.uniform(-1, 1, NODES)
    return np.array([on_grid(reach * t) for t in ((2 * np.arange(NODES) + 1 + 2 * jitter) / NODES - 1).tolist()])


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
