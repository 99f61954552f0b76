"""Views by size and stride."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from gradcli.engine.graph import Node
from gradcli.engine.ops.indexing import index_put
from gradcli.engine.recording import record_view
from gradcli.engine.tensor import Tensor, from_array


class AsStridedBackward0(Node):
    """Every element gets the sum of the cotangents of the places that show it."""

    shape: tuple[int, ...]
    places: Any

    def _vjp(self, g: Tensor) -> Any:
        flat = g.new_zeros((math.prod(self.shape),))
        return index_put(flat, (from_array(self.places),), g, True).reshape(self.shape)


def as_strided(input: Tensor, size: Sequence[int], stride: Sequence[int], storage_offset: int | None = None) -> Tensor:
    """Return a view whose neighbours along each axis lie `stride` elements apart in memory.

    Raises:
        RuntimeError: the input is not contiguous, or the view would reach outside of it.
    """
    first = 0 if storage_offset is None else storage_offset
    places = np.full(tuple(size), first, dtype=np.int64)
    for place, (count, step) in enumerate(zip(size, stride, strict=True)):
        places = places + (np.arange(count) * step).reshape([-1 if i == place else 1 for i in range(len(size))])
    array = input._data
    if not array.flags.c_contiguous or (places.size and not 0 <= places.min() <= places.max() < array.size):
        raise RuntimeError(
            f"as_strided expects a contiguous tensor that holds size={list(size)}, stride={list(stride)}, "
            f"storage_offset={first}; got a tensor of shape {list(array.shape)}, stride {list(input.stride())}"
        )
    steps = tuple(step * array.itemsize for step in stride)
    shown = np.lib.stride_tricks.as_strided(array.reshape(-1)[first:], tuple(size), steps, writeable=True)
    return record_view(
        AsStridedBackward0,
        shown,
        input,
        lambda root: as_strided(root, size, stride, storage_offset),
        shape=array.shape,
        places=places,
    )
