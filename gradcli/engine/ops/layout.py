"""The order in memory of what is read at index tensors."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradcli.engine.dtypes import Array
from gradcli.engine.ops.subscripts import Key
from gradcli.engine.tensor import Tensor


def laid_out_like(array: Array, source: Array, key: Key) -> Array:
    """Return the elements read at a subscript in the order in memory that PyTorch gives them.

    The axes that the index tensors leave alone keep the order that they have in the source; those of the index stay
    where they are among them. Read from a contiguous tensor, elements are therefore contiguous, whereas NumPy puts the
    axes of the index first.

    Args:
        array: the elements.
        source: what they were read from.
        key: tensors and full slices, one or more of them a tensor.
    """
    if array.ndim < 2 or (array.flags.c_contiguous and source.flags.c_contiguous):
        return array
    steps = _steps(array.ndim, source, key)
    order = list(range(array.ndim))[::-1]  # the fastest axis first
    for place in range(1, array.ndim):
        here = place
        for other in range(place)[::-1]:
            first, second = steps[order[other]], steps[order[here]]
            if not first or not second:
                continue
            if first < second:
                break
            if first > second:
                order[other], order[here] = order[here], order[other]
                here = other
    slowest = order[::-1]
    result = np.empty([array.shape[axis] for axis in slowest], array.dtype).transpose(np.argsort(slowest))
    result[...] = array
    return result


def _steps(ndim: int, source: Array, key: Key) -> list[int]:
    """Return for every axis of the elements its stride in the source, 0 for those of the index."""
    kept: list[int] = []
    places: list[int] = []  # before how many kept axes each index tensor stands
    axis = 0
    for entry in key:
        if isinstance(entry, (Tensor, np.ndarray)):
            places.append(len(kept))
            axis += _width(entry)
        else:
            kept.append(source.strides[axis])
            axis += 1
    kept += source.strides[axis:]
    first = places[0] if places[0] == places[-1] else 0
    return kept[:first] + [0] * (ndim - len(kept)) + kept[first:]


def _width(entry: Any) -> int:
    array = entry._data if isinstance(entry, Tensor) else entry
    return array.ndim if array.dtype.kind == "b" else 1
