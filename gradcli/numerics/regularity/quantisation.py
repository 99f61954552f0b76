"""Detects rounding plateaus: intervals on which a function that is rounded to few digits is constant.

On a plateau the values stay the same bit for bit; those of a noisy function, of an iteration, or of a function that
rises between its jumps do not. Rounding makes many jumps of similar size; a jump that is far larger than the others
belongs to the function itself.
"""

from __future__ import annotations

from contextlib import suppress

import numpy as np

from gradcli.numerics.claims.residual import unclaimed_stretch
from gradcli.numerics.claims.site import Site
from gradcli.numerics.maps.floats import Indices, Vector
from gradcli.numerics.maps.sizes import ROUNDING
from gradcli.numerics.maps.vector_map import VectorMap
from gradcli.numerics.outcome import Pair
from gradcli.numerics.regularity.iteration import LONG_STEPS
from gradcli.numerics.sampling.directions import LONG, random_direction, within
from gradcli.numerics.sampling.line import on_grid

NEAREST = 2.0**-42
"""The smallest distance over which values are compared: four times the grid of t."""
PLACES = 8
"""At this many places along a line values are compared."""
CROSSED = 1
"""This many of these places may have the edge of a plateau within that distance."""
SMALLER = 2.0**-5
"""The distance over which values are compared must be below this part of LONG_STEPS[-1], up to which places are drawn;
otherwise the slope is too small to see."""
ROUGH = 2.0**-16
"""Values whose distance from a smooth curve exceeds this part of their change over a tenth of x are rough. Rounding
to float32 alone leaves about 2^-21."""


def has_plateaus(site: Site, pair: Pair) -> bool:
    """Whether an output has rounding plateaus: it varies over long distances, but not at all over tiny ones.

    All entries of the output that vary must stay the same bit for bit over a tiny distance at seven of
    eight places, which are up to 0.3 of the magnitude of x away. False if forward raises or is not finite there.

    Args:
        site: the point.
        pair: the numbers of the input block and the output block.
    """
    return on_plateaus(site, site.map, site.map.domain.slices[pair[0]], site.map.codomain.slices[pair[1]]).size > 0


def is_gradient_over_plateaus(site: Site, pair: Pair) -> bool:
    """Whether a map of order 2 is a gradient, not zero, of values that have rounding plateaus along an input.

    The gradient was then accepted over steps longer than the plateaus, as for a bisection of a fixed number of steps,
    so plateaus are not meant to be constant.
    """
    below = site.map.below
    if below is None or below.below is not None or pair[0] >= len(below.domain.blocks):
        return False
    moves = below.domain.slices[pair[0]]
    return bool(np.any(site.outputs)) and on_plateaus(site, below, moves, slice(None)).size > 0


def on_plateaus(site: Site, map_: VectorMap, moves: slice, place: slice) -> Indices:
    """The entries of the values at `place` that vary along the entries `moves`, if all of them have plateaus there.

    Empty if not all have, and outside the domain.
    """
    direction = random_direction(site.rng, within(site.scales, moves))[: map_.domain.size]
    x, far, nothing = site.x[: map_.domain.size], LONG_STEPS[-1], np.zeros(0, np.intp)

    def at(t: float) -> Vector:
        with np.errstate(all="ignore"):
            return np.asarray(map_.value(x + on_grid(t) * direction), dtype=np.float64)[place]

    with suppress(Exception):  # outside the domain nothing is known
        centres = [0.0, *(site.rng.uniform(-far, far, PLACES - 1)).tolist()]
        values = np.array([at(t) for t in centres])
        # At x itself a label that is compared for equality may have a value of its own.
        change, size = np.ptp(values[1:], axis=0), np.abs(values).max(axis=0)
        varying = change > ROUNDING * size
        if not varying.any() or not np.isfinite(values).all():
            return nothing
        nearest = ROUNDING * float((size[varying] / change[varying]).max()) * far
        beside = np.array([at(t + max(nearest, NEAREST)) for t in centres])
        still = (beside == values)[:, varying].mean(axis=0)
        if nearest < far * SMALLER and (still >= 1 - CROSSED / PLACES).all():
            return np.flatnonzero(varying)
    return nothing


def is_rough(site: Site, pair: Pair) -> bool:
    """Whether the values of an output are rough (`ROUGH`) over an interval of 0.1 of x to both sides.

    A smooth function is close to a polynomial over such an interval, but one that jumps is not. Entries that do not
    change beyond their rounding count as smooth. At most 400 entries of the output are measured. True if some are not
    finite there. False, without a measurement, for an input block of more than 400 entries.

    Args:
        site: the point.
        pair: the numbers of the input block and the output block.
    """
    inside, outside = site.map.domain.slices[pair[0]], site.map.codomain.slices[pair[1]]
    if inside.stop - inside.start > LONG:
        return False
    outputs = np.arange(outside.start, outside.stop)[:LONG]
    level = unclaimed_stretch(site, random_direction(site.rng, within(site.scales, inside)), LONG_STEPS[1], outputs)
    if level is None:
        return True
    change = np.ptp(level.values, axis=0) * level.line.scale
    return bool((level.noise > np.maximum(ROUGH * change, ROUNDING * level.sizes)).any())
