"""Where to look: the scale of every entry, points on a dyadic grid, directions and cotangents."""

from __future__ import annotations

import numpy as np

from gradcli.numerics.line import power_of_two_above
from gradcli.numerics.space import Space, Vector

POINT_BITS = 44
"""x is rounded to multiples of 2^-44 of its scale."""


def entry_scales(space: Space, x: Vector) -> Vector:
    """The natural size of a change of each entry: the power of two above |x_i|.

    An entry that is zero has no size of its own; it takes the median of the nonzero entries of its block, or 1.
    """
    scales = np.ones(x.size)
    for place in space.slices:
        magnitudes = np.abs(x[place])
        nonzero = magnitudes[(magnitudes > 0) & np.isfinite(magnitudes)]
        typical = float(np.median(nonzero)) if nonzero.size else 1.0
        usable = (magnitudes > 0) & np.isfinite(magnitudes)
        scales[place] = power_of_two_above(np.where(usable, magnitudes, typical))
    return np.clip(scales, 2.0**-970, 2.0**970)


def snap(x: Vector, scales: Vector) -> Vector:
    """Round x to the grid on which x + t v is exact; moves an entry by at most 2^-45 of its scale."""
    snapped: Vector = np.ldexp(np.round(np.ldexp(x / scales, POINT_BITS)), -POINT_BITS) * scales
    return snapped


def random_direction(rng: np.random.Generator, scales: Vector, places: slice | None = None) -> Vector:
    """Draw sign × magnitude in [1/2, 1) × scale for every entry, or for those of one block.

    Pure signs would miss an exchange of two slots half the time.
    """
    drawn = rng.integers(128, 256, scales.size) / 256.0 * rng.choice([-1.0, 1.0], scales.size)
    if places is None:
        return drawn * scales
    direction = np.zeros(scales.size)
    direction[places] = drawn[places] * scales[places]
    return direction


def levelled(scales: Vector, places: slice) -> Vector:
    """Scales of one block with the small ones raised to 2^-10 of the median, so that tiny entries count as well."""
    raised = scales.copy()
    block = scales[places]
    if block.size:
        raised[places] = np.maximum(block, power_of_two_above(np.array([np.median(block)]))[0] * 2.0**-10)
    return raised


def signed_cotangents(rng: np.random.Generator, size: int, count: int) -> Vector:
    """Draw `count` rows of sign × magnitude in [1/2, 1): never all of one sign, so that no shared term can hide."""
    rows: Vector = rng.integers(128, 256, (count, size)) / 256.0 * rng.choice([-1.0, 1.0], (count, size))
    return rows


def moved(rng: np.random.Generator, x: Vector, scales: Vector, amount: float = 2.0**-10) -> Vector:
    """Move every entry by sign × [1/2, 1) × amount × scale."""
    return x + amount * random_direction(rng, scales)
