"""Determines the floating-point format in which forward computes, and which derivatives its rounding can hide.

A forward that computes in float32 or float16 is constant where the exact function changes by less than the last digit
of that format: far out on a tanh, or where an exponential underflows. Constant values do not determine the format, so
values at other points are used.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress

import numpy as np

from gradcli.numerics.claims.compare import Reading
from gradcli.numerics.claims.site import Site
from gradcli.numerics.differences.formats import BFLOAT16, DIGITS, FLOAT16, FLOAT32, Format, format_of
from gradcli.numerics.maps.floats import Mask, Vector
from gradcli.numerics.sampling.directions import CLOSE_BY, TRIES, random_direction

HELD_TO = 64.0
"""A gradient that was computed in float32 may be wrong by this many unit roundoffs of float32, 4e-6 of the largest
entry: sums of some thousand rounded terms lose half of that (sqrt(1000) roundoffs, if their signs are random)."""
HIDDEN = 40.0
"""A row that stays the same may have a slope of up to 40 unit roundoffs of its value: a change of two unit roundoffs
over a step of 0.05, which rounding can hide, is a slope of 2 / 0.05."""
SIZES = (0.5, 0.125, 2.0)
"""The format is determined at points near these multiples of x, where values vary more than at x."""
OF_SIZE_ONE = 8
"""The format is determined at this many points of magnitude 1 as well: values at a few points may have few digits by
chance, and then do not show their format."""
SMALLER, SEEN_AT = 2.0**-5, 6
"""Multiples of a fixed step need fewer digits at x/32 than at x, floating-point numbers as many. Six points around each
are tried."""


def format_at(site: Site, output: int) -> Format | None:
    """The format of few digits that holds all values of an output at x and at three points 2^-22 away.

    None for float64 numbers, if the values do not determine a format, and if forward raises at one of these points. The
    points are evaluated once for a site.
    """
    if site.known_close_by is None:
        points = [site.x + CLOSE_BY * random_direction(site.rng, site.scales) for _ in range(TRIES)]
        site.known_close_by = [site.outputs, *_values(site, points)]
    values = site.known_close_by
    if len(values) <= TRIES:
        return None
    return format_of(np.concatenate([value[site.map.codomain.slices[output]] for value in values]))


def significance_of(site: Site, significance: float) -> float:
    """The smallest relative error that matters, raised to `HELD_TO` unit roundoffs if all outputs are float32 numbers.

    Args:
        site: the point.
        significance: the smallest relative error that matters for float64 numbers.
    """
    formats = {format_at(site, output) for output in range(len(site.map.codomain.blocks))}
    return max(significance, HELD_TO * FLOAT32.roundoff) if formats == {FLOAT32} else significance


def hidden_by_format(site: Site, output: int, reading: Reading, rows: Mask) -> str | None:
    """A sentence, if rounding to the format of the values may hide the slopes that are claimed for constant rows.

    Args:
        site: the point.
        output: the block that the rows belong to.
        reading: a direction along which they stay exactly the same.
        rows: those whose claim is not met.

    Returns:
        None if a row changes along the direction, if its claim is too large to be hidden (`HIDDEN`), or if the values
        are float64 numbers.
    """
    if (reading.numeric[rows] != 0).any() or _exceeds(reading, rows, BFLOAT16.roundoff, FLOAT16.smallest):
        return None
    found = format_elsewhere(site, output)
    if found is None or _exceeds(reading, rows, found.roundoff, found.smallest):
        return None
    size = f"{found.roundoff:.0e} of their magnitude"
    return f"forward's values are rounded to {size}, and change by less than that here, so there is nothing to compare"


def format_elsewhere(site: Site, output: int) -> Format | None:
    """The format of few digits that holds the values of an output at other points, where these are constant at x."""
    place = site.map.codomain.slices[output]
    return format_of(np.concatenate([np.zeros(0), *(value[place] for value in _values(site, _points(site)))]))


def floating_format(site: Site, output: int) -> Format | None:
    """The floating-point format of few digits that an output is stored in.

    None for float64 numbers, and for multiples of a fixed step. The latter fit into few digits as well, but differ from
    floating-point numbers: they need fewer digits where they are smaller, and their last digits all lie at one
    place, not far below the largest value.
    """
    here, smaller = (_about(site, output, factor) for factor in (1.0, SMALLER))
    stored = format_of(here)
    return stored if stored is None or spread_over(here, stored) or format_of(smaller) is stored else None


def _exceeds(reading: Reading, rows: Mask, roundoff: float, smallest: float) -> bool:
    """Whether some row's error is too large for rounding of such a format to hide."""
    with np.errstate(all="ignore"):
        return bool((reading.error > HIDDEN * (roundoff * reading.size + smallest))[rows].any())


def _points(site: Site) -> list[Vector]:
    """Twelve points where values are likely to vary: near multiples of x, random of magnitude 1 and of that of x."""
    near = [site.x * size * (1 + 2.0**-6 * site.rng.uniform(-1, 1, site.x.size)) for size in SIZES]
    units = [np.ones(site.x.size)] * OF_SIZE_ONE
    return [*near, *(random_direction(site.rng, unit) for unit in (*units, site.scales))]


def _about(site: Site, output: int, factor: float) -> Vector:
    """The values of an output at six points around `factor` times x, in one array."""
    points = [factor * (site.x + SMALLER * random_direction(site.rng, site.scales)) for _ in range(SEEN_AT)]
    place = site.map.codomain.slices[output]
    return np.concatenate([np.zeros(0), *(value[place] for value in _values(site, points))])


def _values(site: Site, points: Iterable[Vector]) -> list[Vector]:
    """The values at those of some points that lie in the domain; the others are left out."""
    found = []
    for x in points:
        with suppress(Exception), np.errstate(all="ignore"):
            found.append(np.asarray(site.map.value(x), dtype=np.float64))
    return found


def spread_over(values: Vector, format_: Format) -> bool:
    """Whether the last digit of some value lies too far below the largest value for multiples of a fixed step.

    Multiples of one step that fit into p digits each have their last digits within p + 1 places of the largest value.
    """
    known = values[np.isfinite(values) & (values != 0)]
    mantissas, exponents = np.frexp(known)
    whole = np.round(mantissas * 2.0**DIGITS).astype(np.int64)
    least = np.log2((whole & -whole).astype(np.float64)) - DIGITS + exponents
    return bool(known.size and exponents.max() - least.min() > format_.digits + 1)
