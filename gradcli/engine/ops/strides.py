"""`as_strided`: views given by sizes and strides."""

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
    """An element gets the sum of the cotangents of all places of the view that show it."""

    shape: tuple[int, ...]
    places: Any

    def _vjp(self, g: Tensor) -> Any:
        flat = g.new_zeros((math.prod(self.shape),))
        return index_put(flat, (from_array(self.places),), g, True).reshape(self.shape)


def as_strided(input: Tensor, size: Sequence[int], stride: Sequence[int], storage_offset: int | None = None) -> Tensor:
    """Return a view whose neighbours along each axis lie `stride` elements apart in memory.

    Args:
        input: a contiguous tensor.
        size: the shape of the view.
        stride: the step along each axis, in elements.
        storage_offset: where in the memory behind the input the view starts, in elements; unless given, where the input
            starts.

    Raises:
        RuntimeError: the input is not contiguous, or the view reaches outside of it.
    """
    return _strided(input, size, stride, 0 if storage_offset is None else storage_offset - input.storage_offset())


def _strided(input: Tensor, size: Sequence[int], stride: Sequence[int], first: int) -> Tensor:
    """Return the view that starts `first` elements after the input does."""
    places = np.full(tuple(size), first, dtype=np.int64)
    for place, (count, step) in enumerate(zip(size, stride, strict=True)):
        places = places + (np.arange(count) * step).reshape([-1 if i == place else 1 for i in range(len(size))])
    array = input._data
    if not array.flags.c_contiguous or (places.size and not 0 <= places.min() <= places.max() < array.size):
        raise RuntimeError(
            f"as_strided expects a contiguous tensor that holds size={list(size)}, stride={list(stride)}, "
            f"starting {first} elements after its first; got a tensor of shape {list(array.shape)}, stride "
            f"{list(input.stride())}"
        )
    steps = tuple(step * array.itemsize for step in stride)
    shown = np.lib.stride_tricks.as_strided(array.reshape(-1)[first:], tuple(size), steps, writeable=True)
    return record_view(
        AsStridedBackward0,
        shown,
        input,
        lambda root: _strided(root, size, stride, first),
        shape=array.shape,
        places=places,
    )
