"""One pair of values certifies what claim and witness agree on, where rounding allows steps so short that none bends.

A symmetric quotient at ± t v errs by t²/6 of the third derivative; what n entries add to that grows like √n, since the
signs of v are random. Against rounding, about 4 eps |u·f| / t, stands what may be missed: a part of the block's largest
entry, as small as both allow.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from gradcli.numerics.claims.claim import Places
from gradcli.numerics.claims.compare import Reading
from gradcli.numerics.claims.site import BudgetExceededError, Site
from gradcli.numerics.maps.floats import EPS, TINY
from gradcli.numerics.maps.pieces import all_finite
from gradcli.numerics.maps.space import Vector
from gradcli.numerics.outcome import Pair
from gradcli.numerics.reference.gap import Gap
from gradcli.numerics.sampling.directions import Focus, random_direction
from gradcli.numerics.sampling.line import on_grid, point_along
from gradcli.numerics.screen.pair_result import drawn_through

FINEST, COARSEST = 1e-8, 1e-7
"""The parts of a block's largest entry to which one pair of values certifies: a tenth of the smallest error that must
be seen."""
NEAREST = 2.0**-17
"""The step, where rounding and curvature allow it."""
CURVED = 0.6
"""The cubic terms of n entries, about t²/6 each, may together take up a tenth of the allowed error."""
ROUNDED = 8.0
"""Rounding, 4 eps |u·f| / t, may take up half of the allowed error."""
SPREAD = 0.25
"""Steps are drawn from a range of this width, so that no step is special."""
STRAIGHT, MANY = 1e-3, 1e4
"""How much the slope may change from one side to the other, as a part of the block's largest: at a kink it changes
more. For more than MANY entries, the sum of their curvatures, which grows like the root of their number, is allowed
for."""


def certified_at_once(site: Site, inputs: Sequence[int], agreed: Mapping[Pair, Gap]) -> Reading | None:
    """One pair of values along a direction through some inputs that certifies all pairs; None where it does not.

    Raises:
        BudgetExceededError: the evaluations allowed are used up.
    """
    scales, claim = _least_scales(agreed), site.claim
    values = claim.read(site.outputs) if claim.jvp_rows else claim.told(site.outputs)
    chosen = _step(site, values, scales) if all_finite(site.outputs) and all_finite(values) else None
    if chosen is None:
        return None
    if site.map.values >= site.budget:
        raise BudgetExceededError
    step, part = chosen
    drawn = drawn_through(site, inputs)
    v = random_direction(site.rng, drawn)
    try:
        with np.errstate(all="ignore"):
            right, left = (np.asarray(site.map.value(point_along(site.x, v, t)), np.float64) for t in (step, -step))
    except Exception:  # outside the domain
        return None
    with np.errstate(all="ignore"):
        beside, bent = quotients(right, left, site.outputs, step) if claim.watched else (np.zeros(0), np.zeros(0))
        right, left = (claim.read(y) if claim.jvp_rows else claim.told(y) for y in (right, left))
        slope, bend = quotients(right, left, values, step)
        claimed = claim.along(v)[0] if claim.jvp_rows else claim.slopes(v)
        error = np.abs(slope - claimed)
        error += (4 * EPS * np.maximum(np.abs(right), np.abs(left)) + 16 * TINY) / step
    straight = straightness(site.x.size)
    for output, scale in scales.items():
        rows = _rows(site, output)
        # Where one is not a number, neither is the largest, and no comparison holds.
        if not (error[rows].max() <= part * scale and bend[rows].max() <= straight * scale):
            return None
        if claim.watched and not bent[site.map.codomain.slices[output]].max() <= straight * scale:
            return None
    if claim.watched:
        slope, values = np.concatenate([beside, slope]), np.concatenate([site.outputs, values])
    return _reading(site, v, Focus(drawn=drawn, judged=site.scales), np.abs(values), slope, claimed, error)


def quotients(right: Vector, left: Vector, centre: Vector, step: float) -> tuple[Vector, Vector]:
    """The slope between the sides, and half the change of slope from one to the other, without its sign."""
    slope, bend = changes(right, left, centre)
    slope *= 0.5 / step
    bend *= 0.5 / step
    return slope, bend


def changes(right: Vector, left: Vector, centre: Vector) -> tuple[Vector, Vector]:
    """The change from side to side, and how far the sides together are from twice the centre."""
    bend = right + left
    bend -= centre
    bend -= centre
    return right - left, np.abs(bend, out=bend)


def _rows(site: Site, output: int) -> Places:
    """The rows of an output block among those that have a claim."""
    return site.rows(output) if site.claim.jvp_rows else site.claim.places(output)


def _least_scales(agreed: Mapping[Pair, Gap]) -> dict[int, float]:
    """For every output block the least of its blocks' scales: what certifies that certifies all."""
    scales: dict[int, float] = {}
    for (_, output), gap in agreed.items():
        scales[output] = min(gap.scale, scales.get(output, np.inf))
    return scales


def _step(site: Site, values: Vector, scales: Mapping[int, float]) -> tuple[float, float] | None:
    largest = max(float(np.abs(values[_rows(site, output)]).max()) / scale for output, scale in scales.items())
    return step_for(largest, site.x.size, site.rng)


def step_for(value: float, size: int, rng: np.random.Generator) -> tuple[float, float] | None:
    """A step, and the part of a block within which it certifies; None where rounding leaves none.

    Args:
        value: the largest |u·f|, in units of the block's largest scaled entry.
        size: how many entries the direction moves.
        rng: draws the step.
    """
    rounding = ROUNDED * EPS * value
    entries = size**0.25
    part = max(FINEST, (rounding * entries / CURVED**0.5) ** (2 / 3))
    if not part <= COARSEST:
        return None
    longest = (CURVED * part) ** 0.5 / entries
    step = max(min(NEAREST, longest), rounding / part)
    return on_grid(step * (1 + SPREAD * rng.random())), part


def straightness(size: int) -> float:
    """How much the slope may change across a point with so many entries, as part of a block's largest."""
    return STRAIGHT * math.sqrt(max(1.0, size / MANY))


def _reading(
    site: Site, v: Vector, focus: Focus, size: Vector, slope: Vector, claimed: Vector, error: Vector
) -> Reading:
    """What the pair says beside the claim, whose distance from it is the bound; nothing of the rows without a claim."""
    rows, watched = slope.size, site.claim.watched
    nothing = np.zeros(rows)
    said, bound = np.full(rows, np.nan), np.zeros(rows)
    said[watched:], bound[watched:] = claimed, error
    return Reading(
        direction=v,
        focus=focus,
        numeric=slope,
        bound=bound,
        claimed=said,
        rounding=nothing,
        left=slope,
        right=slope,
        kink_bound=nothing,
        status=np.zeros(rows, np.int8),
        size=size,
        noise=bound,
        claimless=site.unclaimed(rows),
        certified=True,
    )
