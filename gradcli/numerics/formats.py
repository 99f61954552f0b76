"""The floating-point format that a map's values go through, seen where they vary, and what it hides where they do not.

A forward that computes in float32 or half is constant where the true function changes by less than a unit of that
format: far out on a tanh, or where an exponential underflows. Constant values do not tell their format; those at other
points do.
"""

from __future__ import annotations

from contextlib import suppress

import numpy as np

from gradcli.numerics.compare import Reading
from gradcli.numerics.noise import Mask, stored_roundoff
from gradcli.numerics.probe import random_direction
from gradcli.numerics.site import Site
from gradcli.numerics.space import Vector

SMALLEST = {2.0**-8: 2.0**-133, 2.0**-11: 2.0**-24, 2.0**-24: 2.0**-149}
"""By unit roundoff (bfloat16, float16, float32): the smallest number of the format."""
HIDDEN = 40.0
"""Two units over the ladder's coarsest step, 0.05, as a slope."""
SIZES = (0.5, 0.125, 2.0)
OF_SIZE_ONE = 8
"""So many more, since values with few digits say nothing of the format."""


def hidden_by_format(site: Site, output: int, reading: Reading, rows: Mask) -> str | None:
    """Why slopes claimed for rows that stay exactly the same may be right: their format holds no smaller change.

    Args:
        site: the point.
        output: the block that the rows belong to.
        reading: a direction along which they stay the same.
        rows: those where the claim is not met.

    Returns:
        The reason; None where a row changes, its claim is too large to hide, or the values are float64 numbers.
    """
    coarsest = max(SMALLEST)
    if (reading.numeric[rows] != 0).any() or _exceeds(reading, rows, coarsest, SMALLEST[2.0**-11]):
        return None
    place = site.map.codomain.slices[output]
    seen = [_values(site, point) for point in _points(site)]
    values = np.array([found[place] for found in seen if found is not None])
    roundoff = stored_roundoff(values.ravel())
    if roundoff not in SMALLEST or _exceeds(reading, rows, roundoff, SMALLEST[roundoff]):
        return None
    return f"forward's values have a relative precision of {roundoff:.0e}, and change by less than that here"


def _exceeds(reading: Reading, rows: Mask, roundoff: float, smallest: float) -> bool:
    with np.errstate(all="ignore"):
        return bool((reading.error > HIDDEN * (roundoff * reading.size + smallest))[rows].any())


def _points(site: Site) -> list[Vector]:
    """Nearby and other sizes of x, and numbers of size 1: where values vary."""
    near = [site.x * size * (1 + 2.0**-6 * site.rng.uniform(-1, 1, site.x.size)) for size in SIZES]
    units = [np.ones(site.x.size)] * OF_SIZE_ONE
    return [*near, *(random_direction(site.rng, unit) for unit in (*units, site.scales))]


def _values(site: Site, x: Vector) -> Vector | None:
    """The values at a point; None outside the domain, where nothing is known."""
    with suppress(Exception), np.errstate(all="ignore"):
        return np.asarray(site.map.value(x), dtype=np.float64)
    return None
