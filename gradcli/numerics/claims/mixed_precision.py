"""The noise of a gradient in float64 that is computed from float32 values.

Such a gradient jumps where forward's values do and is smooth between the jumps, so that points close to x do not show
its noise. The slope between two jumps is not the derivative that is meant.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

import numpy as np

from gradcli.numerics.differences.formats import FLOAT32, fit, format_of
from gradcli.numerics.differences.noise import measure_cluster
from gradcli.numerics.maps.floats import Vector
from gradcli.numerics.maps.sizes import ROUNDING
from gradcli.numerics.maps.vector_map import VectorMap
from gradcli.numerics.sampling.directions import CLOSE_BY, TRIES, random_direction, within

Read = Callable[[Vector], Vector]
ACROSS = FLOAT32.roundoff * np.array([-64.0, -49.3, -33.9, -13.4, 5.1, 19.8, 37.8, 53.1, 64.0])
"""Places along a line, as parts of x, between which a value of float32 rounds about a hundred times; at unequal
distances, so that rounding errors do not repeat."""


def noise_of_single(
    map_: VectorMap, x: Vector, scales: Vector, outputs: Vector, read: Read, rng: np.random.Generator
) -> Vector | None:
    """The noise of rows that float32 values of the functions below the map leave in its gradient.

    Args:
        map_: computes a gradient, or is of order 1.
        outputs: its values at x.
        read: computes the rows.

    Returns:
        None where no function below has float32 values, and where the gradient is stored in float32 as well. Zero for
        rows that are as smooth as float64 allows: they are computed without these values.
    """
    if map_.below is None or fit(outputs, FLOAT32.digits).all() or not _is_single_below(map_, x, scales, rng):
        return None
    v = random_direction(rng, within(scales, slice(0, map_.below.domain.size)))
    try:
        values = np.array([read(x + t * v) for t in ACROSS])
    except Exception:  # outside the domain
        return None
    noise = measure_cluster(ACROSS, values, CLOSE_BY).noise
    with np.errstate(all="ignore"):
        return np.where(noise > ROUNDING * np.abs(values).max(axis=0), noise, 0.0)


def _is_single_below(map_: VectorMap, x: Vector, scales: Vector, rng: np.random.Generator) -> bool:
    """Whether a function below the map has float32 values, at x and close by."""
    below = map_.below
    while below is not None:
        size = below.domain.size
        with suppress(Exception), np.errstate(all="ignore"):
            values = [np.asarray(below.value(x[:size]), dtype=np.float64)]
            if fit(values[0], FLOAT32.digits).all():
                points = (x + CLOSE_BY * random_direction(rng, scales) for _ in range(TRIES))
                values += [np.asarray(below.value(point[:size]), dtype=np.float64) for point in points]
                if format_of(np.concatenate(values)) is FLOAT32:
                    return True
        below = below.below
    return False
