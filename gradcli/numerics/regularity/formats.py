"""The floating-point format that a map's values go through, seen where they vary, and what it hides where they do not.

A forward that computes in float32 or half is constant where the true function changes by less than a unit of that
format: far out on a tanh, or where an exponential underflows. Constant values do not tell their format; those at other
points do.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress

import numpy as np

from gradcli.numerics.claims.compare import Reading
from gradcli.numerics.claims.site import Site
from gradcli.numerics.differences.formats import BFLOAT16, DIGITS, FLOAT16, FLOAT32, Format, format_of
from gradcli.numerics.maps.floats import Mask
from gradcli.numerics.maps.space import Vector
from gradcli.numerics.sampling.directions import CLOSE_BY, TRIES, random_direction

HELD_TO = 64.0
"""A gradient that was computed in float32 may be wrong by so many roundings of float32."""
HIDDEN = 40.0
"""Two units over the ladder's coarsest step, 0.05, as a slope."""
SIZES = (0.5, 0.125, 2.0)
OF_SIZE_ONE = 8
"""So many more points, with inputs of magnitude 1, since values with few digits do not show their format."""
SMALLER, SEEN_AT = 2.0**-5, 6
"""Multiples of a fixed step fit into fewer digits at a point scaled down by the first number; so many points are
tried."""


def format_at(site: Site, output: int) -> Format | None:
    """The format of few digits that holds all values of an output at the point and close by, measured once a site."""
    if site.known_close_by is None:
        points = [site.x + CLOSE_BY * random_direction(site.rng, site.scales) for _ in range(TRIES)]
        site.known_close_by = [site.outputs, *_values(site, points)]
    values = site.known_close_by
    if len(values) <= TRIES:
        return None
    return format_of(np.concatenate([value[site.map.codomain.slices[output]] for value in values]))


def significance_of(site: Site, significance: float) -> float:
    """The significance of an error where every output that tells its format is in float32: no finer than that allows.

    Args:
        site: the point.
        significance: what was asked for.
    """
    formats = {format_at(site, output) for output in range(len(site.map.codomain.blocks))}
    return max(significance, HELD_TO * FLOAT32.roundoff) if formats == {FLOAT32} else significance


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
    if (reading.numeric[rows] != 0).any() or _exceeds(reading, rows, BFLOAT16.roundoff, FLOAT16.smallest):
        return None
    place = site.map.codomain.slices[output]
    seen = np.array([value[place] for value in _values(site, _points(site))])
    found = format_of(seen)
    if found is None or _exceeds(reading, rows, found.roundoff, found.smallest):
        return None
    size = f"{found.roundoff:.0e} of their magnitude"
    return f"forward's values are rounded to {size}, and change by less than that here, so there is nothing to compare"


def floating_format(site: Site, output: int) -> Format | None:
    """The floating-point format of few digits that an output is stored in; None for multiples of a fixed step.

    These fit into few digits as well: into fewer where they are small, and all of them are whole multiples of one
    quantum that is not far below the largest.
    """
    here, smaller = (_about(site, output, factor) for factor in (1.0, SMALLER))
    stored = format_of(here)
    return stored if stored is None or _spread_over(here, stored) or format_of(smaller) is stored else None


def _exceeds(reading: Reading, rows: Mask, roundoff: float, smallest: float) -> bool:
    with np.errstate(all="ignore"):
        return bool((reading.error > HIDDEN * (roundoff * reading.size + smallest))[rows].any())


def _points(site: Site) -> list[Vector]:
    """Nearby and other sizes of x, and numbers of size 1: where values vary."""
    near = [site.x * size * (1 + 2.0**-6 * site.rng.uniform(-1, 1, site.x.size)) for size in SIZES]
    units = [np.ones(site.x.size)] * OF_SIZE_ONE
    return [*near, *(random_direction(site.rng, unit) for unit in (*units, site.scales))]


def _about(site: Site, output: int, factor: float) -> Vector:
    """Values of an output at some points about a multiple of x."""
    points = [factor * (site.x + SMALLER * random_direction(site.rng, site.scales)) for _ in range(SEEN_AT)]
    place = site.map.codomain.slices[output]
    return np.concatenate([np.zeros(0), *(value[place] for value in _values(site, points))])


def _values(site: Site, points: Iterable[Vector]) -> list[Vector]:
    """The values at those of some points that lie in the domain: of others nothing is known."""
    found = []
    for x in points:
        with suppress(Exception), np.errstate(all="ignore"):
            found.append(np.asarray(site.map.value(x), dtype=np.float64))
    return found


def _spread_over(values: Vector, format_: Format) -> bool:
    """Whether some value's least digit lies so far below the largest value that no fixed step has made them all."""
    known = values[np.isfinite(values) & (values != 0)]
    mantissas, exponents = np.frexp(known)
    whole = np.round(mantissas * 2.0**DIGITS).astype(np.int64)
    least = np.log2((whole & -whole).astype(np.float64)) - DIGITS + exponents
    return bool(known.size and exponents.max() - least.min() > format_.digits + 1)
