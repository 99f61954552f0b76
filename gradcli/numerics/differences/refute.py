"""A claim held against one slope of its map: the cheapest sign that it is wrong."""

from __future__ import annotations

import numpy as np

from gradcli.numerics.differences.directional import directional_derivative
from gradcli.numerics.differences.estimate import FAIL_FACTOR
from gradcli.numerics.maps.floats import EPS
from gradcli.numerics.maps.seeds import generator_of
from gradcli.numerics.maps.space import Vector
from gradcli.numerics.maps.vector_map import VectorMap
from gradcli.numerics.sampling.directions import entry_scales, snap

COARSE = 1e-3
"""A slope that is uncertain by more than this part of the claim decides nothing."""


def refuted(map: VectorMap, x: Vector, block: int, *, seed: int, significance: float) -> bool | None:
    """Whether the claimed gradient of <u, f> in one input block is wrong along one direction of that block.

    Both the cotangent u and the direction are random, so that a wrong gradient agrees along it with probability zero;
    one whose error is below `significance` of what the direction sees does not count as wrong. Eight evaluations for a
    smooth map, since its values are taken to be right to rounding: where they are not, the answer may be wrong.

    Args:
        map: the map; only `value` is believed.
        x: the point, length n, rounded to a grid as by `verify`.
        block: the number of the input block.
        seed: everything random follows from it.
        significance: relative.

    Returns:
        True where the error exceeds the bound of the difference, False where it does not, None where the map has no
        slope there or none that can be measured.

    Raises:
        Exception: whatever the map raises at x itself.
    """
    rng = generator_of(seed)
    scales = entry_scales(map.domain, x)
    point, where = snap(x, scales), map.domain.slices[block]
    direction = np.zeros(point.size)
    sizes = rng.integers(128, 256, scales[where].size) / 256
    direction[where] = sizes * rng.choice([-1.0, 1.0], sizes.size) * scales[where]
    cotangent = rng.choice([-1.0, 1.0], map.codomain.size) * (0.5 + 0.5 * rng.random(map.codomain.size))
    value, rows = map.value_and_vjps(point, cotangent[None])
    terms = rows[0][where] * direction[where]
    if not np.isfinite(terms).all():
        return None
    value = map.value(point) if value is None else value
    slope = directional_derivative(
        lambda at: np.array([cotangent @ map.value(at)]),
        point,
        direction,
        rng=rng,
        f0=np.array([cotangent @ value]),
        noise=EPS * np.array([np.abs(cotangent) @ np.abs(value)]),
    )
    size = max(float(np.linalg.norm(terms)), abs(float(slope.value[0])))
    if not slope.smooth[0] or not slope.bound[0] <= COARSE * size:
        return None
    return bool(abs(float(terms.sum()) - slope.value[0]) > FAIL_FACTOR * slope.bound[0] + significance * size)
