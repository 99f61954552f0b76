"""Compares a claim with one measured slope of its map: the cheapest way to show that it is wrong."""

from __future__ import annotations

import numpy as np

from gradcli.numerics.differences.directional import directional_derivative
from gradcli.numerics.differences.estimate import FAIL_FACTOR
from gradcli.numerics.maps.floats import EPS, Vector
from gradcli.numerics.maps.sizes import COARSE
from gradcli.numerics.maps.vector_map import VectorMap
from gradcli.numerics.sampling.directions import (
    entry_scales,
    generator_of,
    random_direction,
    signed_cotangents,
    snap,
    within,
)


def refuted(map: VectorMap, x: Vector, block: int, *, seed: int, significance: float) -> bool | None:
    """Whether the claimed gradient of <u, f> by one input block is wrong along one direction through that block.

    Both the cotangent u and the direction are random, so that a wrong gradient is almost certain to show. It takes
    eight evaluations for a smooth map, because the values are taken to be exact up to rounding. If they are noisier,
    the answer may be wrong.

    Args:
        map: the map; its vjp is tested against its value.
        x: the point, of length n; it is rounded to the grid that `verify` uses.
        block: the number of the input block.
        seed: determines everything random.
        significance: an error below this part of the slope (or of the root of the sum of its squared terms, if that is
            larger) does not count.

    Returns:
        True if the error exceeds three bounds of the finite difference and the significance, False if it does not, None
        if the claim is not finite, or if the slope does not exist or is not known accurately enough (`COARSE`).

    Raises:
        Exception: whatever the map raises at x itself.
    """
    rng = generator_of(seed)
    scales = entry_scales(map.domain, x)
    point, where = snap(x, scales), map.domain.slices[block]
    direction = random_direction(rng, within(scales, where))
    (cotangent,) = signed_cotangents(rng, map.codomain.size, 1)
    value, rows = map.value_and_vjps(point, cotangent[None])
    terms = rows[0][where] * direction[where]
    if not np.isfinite(terms).all():
        return None
    value = map.value(point) if value is None else value
    slope = directional_derivative(
        lambda at: np.array([cotangent @ map.seen_at(at)]),
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
