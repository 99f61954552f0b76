"""Detects rounding plateaus: intervals on which a function that is rounded to few digits is constant.

On a plateau the values stay the same bit for bit; those of a noisy function, of an iteration, or of a function that
rises between its jumps do not. Rounding makes many jumps of similar size; a jump that is far larger than the others
belongs to the function itself.
"""

from __future__ import annotations

from contextlib import suppress

import numpy as np

from gradcli.numerics.claims.residual import Stretch, unclaimed_stretch
from gradcli.numerics.claims.site import Site
from gradcli.numerics.maps.floats import EPS, median
from gradcli.numerics.maps.space import Vector
from gradcli.numerics.maps.vector_map import VectorMap
from gradcli.numerics.outcome import Pair
from gradcli.numerics.regularity.iteration import LONG_STEPS
from gradcli.numerics.sampling.directions import LONG, random_direction, within
from gradcli.numerics.sampling.line import on_grid, point_along

NEAREST = 2.0**-42
"""The smallest distance over which values are compared: four times the grid of t."""
VISIBLE = 64.0
"""Values are compared over the distance at which the slope seen from far away would change them by 64 ε. If they stay
the same bit for bit, they are on a plateau."""
LONGER = 16.0
"""A rounding plateau must be at least this many times as long as that distance."""
PLACES = 8
"""At this many places along a line values are compared."""
CROSSED = 1
"""This many of these places may have the edge of a plateau within that distance."""
MANY = 8
"""A row must take at least this many different values along a line; a few may be a step function of its own."""
STEEPEST, OTHERS = 3, 4
"""Jumps are compared between this many pairs of nodes: the steepest, and others drawn at random."""
ALIKE = 16.0
"""The largest jump may be at most this many times the median jump. Either the jumps are compared, as for a fixed grid,
or the jumps relative to the values next to them, as for floating-point numbers."""
FAR = 0.3
"""Places are drawn up to this far from x, in magnitudes of x."""
SMALLER = 2.0**-5
"""The distance over which values are compared must be below this part of FAR, or the slope is too small to see."""
ROUGH = 2.0**-16
"""Values whose distance from a smooth curve exceeds this part of their change over a tenth of x are rough. Rounding
to float32 alone leaves about 2^-21."""


def has_plateaus(site: Site, pair: Pair) -> bool:
    """Whether an output has rounding plateaus: it varies over long distances, but not at all over tiny ones.

    All entries of the output that vary must stay the same bit for bit over the tiny distance (`VISIBLE`) at seven of
    eight places, which are up to 0.3 of the magnitude of x away. False if forward raises or is not finite there.

    Args:
        site: the point.
        pair: the numbers of the input block and the output block.
    """
    return _stays_still(site, site.map, site.map.domain.slices[pair[0]], site.map.codomain.slices[pair[1]])


def is_gradient_over_plateaus(site: Site, pair: Pair) -> bool:
    """Whether a map of order 2 is a gradient, not zero, of values that have rounding plateaus along an input.

    The gradient was then accepted over steps longer than the plateaus, as for a bisection of a fixed number of steps,
    so plateaus are not meant to be constant.
    """
    below = site.map.below
    if below is None or below.below is not None or pair[0] >= len(below.domain.blocks):
        return False
    moves = below.domain.slices[pair[0]]
    return bool(np.any(site.outputs)) and _stays_still(site, below, moves, slice(None))


def _stays_still(site: Site, map_: VectorMap, moves: slice, place: slice) -> bool:
    """Whether the values of a map at `place` have plateaus where the entries `moves` change, around this point."""
    direction = random_direction(site.rng, within(site.scales, moves))[: map_.domain.size]
    x = site.x[: map_.domain.size]

    def at(t: float) -> Vector:
        with np.errstate(all="ignore"):
            return np.asarray(map_.value(x + on_grid(t) * direction), dtype=np.float64)[place]

    with suppress(Exception):  # outside the domain nothing is known
        centres = [0.0, *(site.rng.uniform(-FAR, FAR, PLACES - 1)).tolist()]
        values = np.array([at(t) for t in centres])
        change, size = np.ptp(values, axis=0), np.abs(values).max(axis=0)
        varying = change > VISIBLE * EPS * size
        if not varying.any() or not np.isfinite(values).all():
            return False
        nearest = VISIBLE * EPS * float((size[varying] / change[varying]).max()) * FAR
        beside = np.array([at(t + max(nearest, NEAREST)) for t in centres])
        still = (beside == values)[:, varying].mean(axis=0)
        return bool(nearest < FAR * SMALLER and (still >= 1 - CROSSED / PLACES).all())
    return False


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
    return bool((level.noise > np.maximum(ROUGH * change, VISIBLE * EPS * level.sizes)).any())


def made_of_plateaus(site: Site, level: Stretch, row: int) -> bool:
    """Whether one row changes by jumps only on an interval, and these are many and of similar size.

    Four conditions: at least `MANY` different values; noise of the size that plateaus `LONGER` than the compared
    distance make; the same value over that distance at seven of eight places; the same values in a second run.

    Args:
        site: the point; its generator draws the places.
        level: the residual on the interval.
        row: the number of a claimed row.
    """
    values = level.values[:, row]
    span, size = float(np.ptp(values)), float(np.abs(values).max())
    if level.different()[row] < MANY or not span > 0:
        return False
    nearest = on_grid(max(NEAREST, VISIBLE * EPS * size * 2 * level.reach / span))
    if LONGER * nearest * span / (2 * level.reach) > level.noise[row] / level.line.scale[level.rows][row]:
        return False
    chosen = site.rng.choice(level.nodes, PLACES, replace=False).tolist()
    moved = sum(level.value(on_grid(t + nearest), row) != level.value(t, row) for t in chosen)
    return moved <= CROSSED and _repeats(site, level, chosen[0]) and _alike(site, level, row, values)


def _repeats(site: Site, level: Stretch, t: float) -> bool:
    """Whether a second call gives the same values."""
    again = site.read(point_along(site.x, level.line.v, t)) / level.line.scale
    return bool((again == level.line.at(t)).all())


def _alike(site: Site, level: Stretch, row: int, values: Vector) -> bool:
    """Whether the jumps between seven pairs of adjacent nodes are of similar size (`ALIKE`).

    At least four of the seven must be jumps at all.
    """
    steepest = np.argsort(-np.abs(np.diff(level.left[:, row])))
    brackets = [*steepest[:STEEPEST].tolist(), *site.rng.choice(steepest[STEEPEST:], OTHERS, replace=False).tolist()]
    jumps = np.array([level.jump(row, bracket) for bracket in brackets])
    beside = np.maximum(np.abs(values[brackets]), np.abs(values[np.array(brackets) + 1]))
    with np.errstate(all="ignore"):
        kinds = [sizes[np.isfinite(sizes) & (sizes > 0)] for sizes in (jumps, jumps / beside)]
    return all(sizes.size > STEEPEST for sizes in kinds) and any(
        float(sizes.max()) <= ALIKE * float(median(sizes)) for sizes in kinds
    )
