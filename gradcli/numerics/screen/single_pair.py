"""Certifies by one pair of values a claim with which the reference agrees, if rounding allows steps that are so short.

The truncation error of a symmetric quotient at ± t v is t²/6 times the third derivative; that of n entries together
grows like √n, because the signs of v are random. Its rounding error is about 4 ε |u·f| / t. Both must be below an
allowed part p of the pair's largest entry; `step_for` chooses the smallest p and the step.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from gradcli.numerics.claims.compare import Reading
from gradcli.numerics.claims.site import Site
from gradcli.numerics.maps.floats import EPS, TINY, Vector
from gradcli.numerics.maps.pieces import all_finite
from gradcli.numerics.maps.sizes import COARSE, FINE, SIGNIFICANT
from gradcli.numerics.outcome import Pair
from gradcli.numerics.reference.discrepancy import Discrepancy
from gradcli.numerics.sampling.directions import Focus, random_direction, through
from gradcli.numerics.sampling.line import on_grid, point_along

NEAREST = 2.0**-17
"""The usual step; it is smaller for many entries and larger for large values."""
CURVED = 0.6
"""Truncation of n entries with random signs, √n t² / 6, takes a tenth of the allowed part p if t² = 0.6 p / √n."""
ROUNDED = 8.0
"""Rounding, 4 ε |u·f| / t, takes half of the allowed part p if t = 8 ε |u·f| / p."""
SPREAD = 0.25
"""The step is increased at random by up to this part of itself, so that every call uses another one."""
MANY = 1e4
"""The slope may change by a thousandth (`COARSE`) of the pair's largest entry from one side of x to the other; at a
kink it changes by more. For more entries than this the limit grows as the root of their number, as the sum of their
curvatures does."""


def certified_at_once(site: Site, inputs: Sequence[int], agreed: Mapping[Pair, Discrepancy]) -> Reading | None:
    """Certify all pairs by one pair of values along a direction through some inputs.

    Returns:
        The measured direction; None if some pair does not meet the claim, if an output has a kink or is not finite, or
        if rounding allows no step.

    Raises:
        BudgetExceededError: the evaluations allowed are used up.
    """
    scales, claim = _least_scales(agreed), site.claim
    values = claim.claimed_values(site.outputs)
    chosen = _step(site, values, scales) if all_finite(site.outputs) and all_finite(values) else None
    if chosen is None:
        return None
    site.map.require_budget()
    step, part = chosen
    drawn = through(site.map.domain, site.scales, inputs)
    v = random_direction(site.rng, drawn)
    try:
        with np.errstate(all="ignore"):
            right, left = (np.asarray(site.map.value(point_along(site.x, v, t)), np.float64) for t in (step, -step))
    except Exception:  # outside the domain
        return None
    with np.errstate(all="ignore"):
        beside, bent = quotients(right, left, site.outputs, step) if claim.watched else (np.zeros(0), np.zeros(0))
        right, left = (claim.claimed_values(y) for y in (right, left))
        slope, bend = quotients(right, left, values, step)
        claimed = claim.slopes(v)
        error = np.abs(slope - claimed)
        error += (4 * EPS * np.maximum(np.abs(right), np.abs(left)) + 16 * TINY) / step
    straight = straightness(site.x.size)
    for output, scale in scales.items():
        rows = claim.places(output)
        # If one is NaN, so is the largest, and the comparison is false.
        if not (error[rows].max() <= part * scale and bend[rows].max() <= straight * scale):
            return None
        if claim.watched and not bent[site.map.codomain.slices[output]].max() <= straight * scale:
            return None
    if claim.watched:
        slope, values = np.concatenate([beside, slope]), np.concatenate([site.outputs, values])
    return _reading(site, v, Focus(drawn=drawn, judged=site.scales), np.abs(values), slope, claimed, error)


def quotients(right: Vector, left: Vector, centre: Vector, step: float) -> tuple[Vector, Vector]:
    """The slope from left to right, and half the absolute change of slope at the centre."""
    slope, bend = changes(right, left, centre)
    slope *= 0.5 / step
    bend *= 0.5 / step
    return slope, bend


def changes(right: Vector, left: Vector, centre: Vector) -> tuple[Vector, Vector]:
    """right - left, and |right + left - 2 centre|."""
    bend = right + left
    bend -= centre
    bend -= centre
    return right - left, np.abs(bend, out=bend)


def _least_scales(agreed: Mapping[Pair, Discrepancy]) -> dict[int, float]:
    """For every output block, the smallest scale of its pairs: what certifies that pair certifies all."""
    scales: dict[int, float] = {}
    for (_, output), discrepancy in agreed.items():
        scales[output] = min(discrepancy.scale, scales.get(output, np.inf))
    return scales


def _step(site: Site, values: Vector, scales: Mapping[int, float]) -> tuple[float, float] | None:
    """The result of `step_for` for the row that is largest compared with its scale."""
    largest = max(float(np.abs(values[site.claim.places(output)]).max()) / scale for output, scale in scales.items())
    return step_for(largest, site.x.size, site.rng)


def step_for(value: float, size: int, rng: np.random.Generator) -> tuple[float, float] | None:
    """Choose the step t and the allowed part p; None if rounding would need a p above `SIGNIFICANT`.

    With N = `value` and n = `size`, the conditions of `CURVED` and `ROUNDED` can both be met if p is at least
    (8 ε N n^¼ / √0.6)^⅔.

    Args:
        value: the largest |u·f|, divided by the pair's largest scaled entry.
        size: the number of entries that the direction moves.
        rng: draws the step.
    """
    rounding = ROUNDED * EPS * value
    entries = size**0.25
    part = max(FINE, (rounding * entries / CURVED**0.5) ** (2 / 3))
    if not part <= SIGNIFICANT:
        return None
    longest = (CURVED * part) ** 0.5 / entries
    step = max(min(NEAREST, longest), rounding / part)
    return on_grid(step * (1 + SPREAD * rng.random())), part


def straightness(size: int) -> float:
    """The limit of the change of slope for a map of `size` inputs, as a part of the pair's largest entry."""
    return COARSE * math.sqrt(max(1.0, size / MANY))


def _reading(
    site: Site, v: Vector, focus: Focus, size: Vector, slope: Vector, claimed: Vector, error: Vector
) -> Reading:
    """The reading of one pair of values; its bound is the distance from the claim. Watched rows have no claim (NaN)."""
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
    )
