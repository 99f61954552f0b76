"""Rounding plateaus: values that change by jumps only, which rounding to few digits leaves of a smooth function.

On a plateau such values stay the same bit for bit; a function that rises between its jumps, an iteration and noise do
not. The jumps of rounding are many, and alike: one jump that is far larger than the others is the function's own.
"""

from __future__ import annotations

from contextlib import suppress

import numpy as np

from gradcli.numerics.claims.residual import Stretch, unclaimed_stretch
from gradcli.numerics.claims.site import Site
from gradcli.numerics.maps.floats import EPS
from gradcli.numerics.maps.median import median
from gradcli.numerics.maps.space import Vector
from gradcli.numerics.outcome import Pair
from gradcli.numerics.sampling.directions import LONG, random_direction, within
from gradcli.numerics.sampling.line import on_grid, point_along

NEAREST = 2.0**-42
"""The smallest distance at which values are compared."""
VISIBLE = 64.0
"""Over this distance values would change by so many units of rounding if they had the slope seen from far away."""
LONGER = 16.0
"""A rounding plateau is at least so many times as long as that distance."""
PLACES = 8
CROSSED = 1
"""Of PLACES places so many may lie beside the edge of a plateau."""
MANY = 8
"""A line must show at least this many different values before it counts as having plateaus."""
STEEPEST, OTHERS = 3, 4
ALIKE = 16.0
"""The largest jump found is at most so many times the median jump, absolutely or relative to the values beside it."""
FAR = 0.3
SMALLER = 2.0**-5
ROUGH = 2.0**-16
"""Values that depart from a smooth curve by this part of themselves are not float32 numbers merely rounded."""


def has_plateaus(site: Site, pair: Pair) -> bool:
    """Whether an output stays the same bit for bit over next to nothing, here and close by, and varies farther away.

    Args:
        site: the point.
        pair: the numbers of the input block and the output block.
    """
    direction = random_direction(site.rng, within(site.scales, site.map.domain.slices[pair[0]]))
    place = site.map.codomain.slices[pair[1]]

    def at(t: float) -> Vector:
        with np.errstate(all="ignore"):
            return np.asarray(site.map.value(site.x + on_grid(t) * direction), dtype=np.float64)[place]

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
    """Whether the values of an output depart visibly from a smooth curve over a step as long as the input.

    Args:
        site: the point.
        pair: the numbers of the input block, of up to 400 entries, and the output block.
    """
    inside, outside = site.map.domain.slices[pair[0]], site.map.codomain.slices[pair[1]]
    if inside.stop - inside.start > LONG:
        return False
    outputs = np.arange(outside.start, outside.stop)[:LONG]
    level = unclaimed_stretch(site, random_direction(site.rng, within(site.scales, inside)), FAR, outputs)
    size = np.abs(site.outputs[outputs]).max(initial=0.0)
    return level is None or bool((level.noise > ROUGH * size).any())


def made_of_plateaus(site: Site, level: Stretch, row: int) -> bool:
    """Whether one row changes along a stretch by jumps only, many of them, and all alike.

    Args:
        site: the point, which draws the places.
        level: the stretch.
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
    """Whether the jumps between neighbouring nodes, the steepest and some others, are of one kind."""
    steepest = np.argsort(-np.abs(np.diff(level.left[:, row])))
    brackets = [*steepest[:STEEPEST].tolist(), *site.rng.choice(steepest[STEEPEST:], OTHERS, replace=False).tolist()]
    jumps = np.array([level.jump(row, bracket) for bracket in brackets])
    beside = np.maximum(np.abs(values[brackets]), np.abs(values[np.array(brackets) + 1]))
    with np.errstate(all="ignore"):
        kinds = [seen[np.isfinite(seen) & (seen > 0)] for seen in (jumps, jumps / beside)]
    return all(seen.size > STEEPEST for seen in kinds) and any(
        float(seen.max()) <= ALIKE * float(median(seen)) for seen in kinds
    )
