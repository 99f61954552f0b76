"""The spaces of derivative maps of any order, and the rounding errors of their values: the same in every backend."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gradcli.numerics.maps.space import Block, Space
from gradcli.numerics.maps.vector_map import VectorMap
from gradcli.numerics.sampling.directions import entry_scales

FloatArray = NDArray[np.float64]
_ROUNDING = 2.0**-53
_ROWS_ASKED = 64
_ALIKE = 2.0**10
"""Where neither the outputs' errors nor the inputs' sizes differ by more, none of them can drown another."""


def space_of(names: Sequence[str], arrays: Sequence[NDArray[Any]]) -> Space:
    """A space with one block for each array, in 64-bit precision."""
    blocks = tuple(
        Block(name=name, shape=array.shape, dtype="complex128" if array.dtype.kind == "c" else "float64")
        for name, array in zip(names, arrays, strict=True)
    )
    return Space(blocks=blocks)


def spaces_of_order(order: int, domain: Space, codomain: Space) -> tuple[Space, Space]:
    """The domain and codomain of the derivative map of `order`, from those of forward."""
    for level in range(1, order):
        cotangents = tuple(
            Block(
                name=f"grad_{block.name}" if level == 1 else f"grad{level}_{block.name}",
                shape=block.shape,
                dtype=block.dtype,
            )
            for block in codomain.blocks
        )
        domain, codomain = Space(blocks=domain.blocks + cotangents), domain
    return domain, codomain


def noise_of_gradient(lower: VectorMap, x: FloatArray) -> FloatArray:
    """The rounding error of the gradient of `lower` at x, a point of `lower` and a cotangent.

    The gradient of <u, f> has an error of at least about 16 eps |u f| / s, where s is the scale of x.
    """
    base, cotangent = x[: lower.domain.size], x[lower.domain.size :]
    with np.errstate(all="ignore"):
        level = 16 * _ROUNDING * np.abs(lower.value(base))
        below = lower.value_noise(base)
        level = level if below is None else level + below
        size = np.abs(cotangent) * level
        size = np.where(np.isfinite(size), size, 0.0)
    scales = entry_scales(lower.domain, base)
    alike = _spread(size) <= _ALIKE and _spread(scales) <= _ALIKE
    noise: FloatArray = (float(np.linalg.norm(size)) if alike else _reaching(lower, base, size)) / scales
    return noise


def _spread(sizes: FloatArray) -> float:
    """The ratio of the largest to the smallest of the sizes that are not zero; 1 if all are."""
    some = sizes[sizes > 0]
    return float(some.max() / some.min()) if some.size else 1.0


def _reaching(lower: VectorMap, base: FloatArray, size: FloatArray) -> FloatArray | float:
    """The norm of the errors `size` of the lower map's values that reach each entry of its gradient.

    An output that does not depend on an entry adds no error there; otherwise the error of an output of 1e8 would hide
    a gradient of 1e-8. Few outputs are differentiated one by one, many are taken together.
    """
    if size.size > _ROWS_ASKED:
        return float(np.linalg.norm(size))
    rows = lower.vjp_many(base, np.eye(size.size))
    reached: FloatArray = np.sqrt((size * size) @ (rows != 0))
    return reached
