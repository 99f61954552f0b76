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
from gradcli.numerics.maps.pieces import all_finite, pieces
from gradcli.numerics.maps.sizes import COARSE, FINE, SIGNIFICANT
from gradcli.numerics.outcome import Pair
from gradcli.numerics.reference.discrepancy import Discrepancy
from gradcli.numerics.sampling.directions import Focus, random_direction, through
from gradcli.numerics.sampling.line import on_grid, point_along

NEAREST = 2.0**-17
"""The usual step; it is smaller for many entries and larger for large values."""
CURVED = 0.6
"""Truncation of n entries with random signs, √n t² / 6, takes a tenth of the allowed part p if t² = 0.6 p / √n."""
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
    sizes = site.row_sizes()[-len(claim.forms) :]
    if not (all_finite(site.outputs) and all_finite(sizes)):
        return None
    largest = max(float(sizes[claim.places(output)].max()) / scale for output, scale in scales.items())
    chosen = step_for(largest, site.x.size, site.rng)
    if chosen is None:
        return None
    site.map.require_budget()
    step, part = chosen
    drawn = through(site.map.domain, site.scales, inputs)
    v = random_direction(site.rng, drawn)
    with np.errstate(all="ignore"):
        try:
            right, left = site.map.values_at([point_along(site.x, v, t) for t in (step, -step)])
        except Exception:  # outside the domain
            return None
        beside, bends = _quotients(right, left, site.outputs, step)
        # Differences are taken before they are added up: rounding errors of the sum of the values are larger.
        slope, bend = claim.claimed_values(beside), np.abs(claim.claimed_values(bends))
        claimed = claim.slopes(v)
        error = np.abs(slope - claimed) + 4 * EPS * (sizes / step + 2 * np.abs(slope)) + 16 * TINY / step
    straight = straightness(site.x.size)
    for output, scale in scales.items():
        rows = claim.places(output)
        # If one is NaN, so is the largest, and the comparison is false.
        if not (error[rows].max() <= part * scale and bend[rows].max() <= straight * scale):
            return None
        if claim.watched and not np.abs(bends[site.map.codomain.slices[output]]).max() <= straight * scale:
            return None
    site.known_slopes |= dict.fromkeys(inputs, beside)
    if claim.watched:  # these rows have no claim
        unknown, nothing = np.full(beside.size, np.nan), np.zeros(beside.size)
        slope, claimed, error = (np.concatenate(c) for c in ((beside, slope), (unknown, claimed), (nothing, error)))
    along = claimed, np.zeros(claimed.size)
    return site.reading(v, Focus(drawn=drawn, judged=site.scales), slope, error, along, error)


def _quotients(right: Vector, left: Vector, centre: Vector, step: float) -> tuple[Vector, Vector]:
    """The slope of every output from left to right, and half the change of slope at the centre."""
    slope, bend = np.empty(centre.size), np.empty(centre.size)
    for piece in pieces(slice(0, centre.size)):
        beside = np.subtract(right[piece], left[piece], out=slope[piece])
        beside *= 0.5 / step
        change = np.add(right[piece], left[piece], out=bend[piece])
        change -= centre[piece]
        change -= centre[piece]
        change *= 0.5 / step
    return slope, bend


def _least_scales(agreed: Mapping[Pair, Discrepancy]) -> dict[int, float]:
    """For every output block, the smallest scale of its pairs: what certifies that pair certifies all."""
    scales: dict[int, float] = {}
    for (_, output), discrepancy in agreed.items():
        scales[output] = min(discrepancy.scale, scales.get(output, np.inf))
    return scales


def step_for(value: float, size: int, rng: np.random.Generator) -> tuple[float, float] | None:
    """Choose the step t and the allowed part p; None if rounding would need a p above `SIGNIFICANT`.

    With N = `value` and n = `size`, rounding, 4 ε N / t, takes half of p if t = 8 ε N / p. That and the condition of
    `CURVED` can both be met if p is at least (8 ε N n^¼ / √0.6)^⅔. Every call uses another step.

    Args:
        value: the largest |u·f|, divided by the pair's largest scaled entry.
        size: the number of entries that the direction moves.
    """
    rounding = 2 * 4 * EPS * value
    entries = size**0.25
    part = max(FINE, (rounding * entries / CURVED**0.5) ** (2 / 3))
    if not part <= SIGNIFICANT:
        return None
    longest = (CURVED * part) ** 0.5 / entries
    step = max(min(NEAREST, longest), rounding / part)
    return on_grid(step * (1 + rng.random() / 4)), part


def straightness(size: int) -> float:
    """The limit of the change of slope for a map of `size` inputs, as a part of the pair's largest entry."""
    return COARSE * math.sqrt(max(1.0, size / MANY))
