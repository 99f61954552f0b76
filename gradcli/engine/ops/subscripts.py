"""What subscripts mean: which are tuples, masks, integers and slices, and PyTorch's words where they do not fit."""

from __future__ import annotations

import re
import warnings
from typing import Any

import numpy as np

from gradcli.engine.module_name import PRINTED_MODULE
from gradcli.engine.ops.parts import slice_of_ints
from gradcli.engine.tensor import Tensor, from_array

Key = tuple[Any, ...]
LIST_FOR_TUPLE = (
    "Using a non-tuple sequence for multidimensional indexing is deprecated and will be changed in pytorch 2.9; use "
    "x[tuple(seq)] instead of x[seq]. In pytorch 2.9 this will be interpreted as tensor index, x[torch.tensor(seq)], "
    "which will result either in an error or a different result"
)
_LONG = 32
"""A list of so many entries is always an index of its own."""


def array_key(key: Key) -> Key:
    """Return a subscript with arrays for its tensors."""
    return tuple(entry._data if isinstance(entry, Tensor) else entry for entry in key)


def index_message(error: IndexError, input: Tensor, key: Key) -> str:
    """Return PyTorch's words for an error of NumPy's about a subscript."""
    for place, entry in enumerate(key):
        if isinstance(entry, Tensor) and entry._data.dtype.kind == "b":
            shape = input._data.shape[place : place + entry._data.ndim]
            if entry._data.shape != shape:
                return (
                    f"The shape of the mask {list(entry._data.shape)} at index 0 does not match the shape of the "
                    f"indexed tensor {list(input._data.shape)} at index {place}"
                )
    text = str(error).replace("for axis", "for dimension").replace("indexing arrays", "indexing tensors")
    start, _, shapes = text.partition(" with shapes ")
    if not shapes:
        return text
    listed = ", ".join(f"[{', '.join(re.findall('[0-9]+', shape))}]" for shape in re.findall(r"\(.*?\)", shapes))
    return f"{start} with shapes {listed}"


def require_writable(input: Tensor, value: tuple[int, ...], target: tuple[int, ...], advanced: bool) -> None:
    """Raise RuntimeError unless a value of one shape can be written to a place of another.

    Args:
        input: the tensor that is written to.
        value: the value's shape.
        target: the shape of the place.
        advanced: index tensors or masks say where.
    """
    if len(value) <= len(target) and all(a in (1, b) for a, b in zip(value[::-1], target[::-1], strict=False)):
        return
    if advanced:
        raise RuntimeError(
            f"shape mismatch: value tensor of shape {list(value)} cannot be broadcast to indexing result of shape "
            f"{list(target)}"
        )
    if len(value) > len(target):
        raise RuntimeError(
            f"expand({PRINTED_MODULE}.{input.dtype.letter}Tensor{{{list(value)}}}, size={list(target)}): the number of "
            f"sizes provided ({len(target)}) must be greater or equal to the number of dimensions in the tensor "
            f"({len(value)})"
        )
    wrong = max(place for place in range(1, len(value) + 1) if value[-place] not in (1, target[-place]))
    raise RuntimeError(
        f"The expanded size of the tensor ({target[-wrong]}) must match the existing size ({value[-wrong]}) at "
        f"non-singleton dimension {len(target) - wrong}.  Target sizes: {list(target)}.  Tensor sizes: {list(value)}"
    )


def require_type_put(input: Tensor, key: Key, values: Tensor) -> None:
    """Raise RuntimeError unless values have the type of the tensor into which index tensors put them.

    One value may have any type where a single mask says where, since that is a `masked_fill`.
    """
    if values._data.dtype == input._data.dtype:
        return
    tensors = [entry for entry in key if isinstance(entry, Tensor)]
    if not tensors or (len(tensors) == 1 and tensors[0]._data.dtype.kind == "b" and values._data.size == 1):
        return
    raise RuntimeError(
        "Index put requires the source and destination dtypes match, got "
        f"{input.dtype.letter} for the destination and {values.dtype.letter} for the source."
    )


def _is_tuple(key: Any) -> bool:
    """Tell whether a list stands for a tuple: a short one in which there is a sequence, a tensor, a slice..."""
    if not isinstance(key, list) or len(key) >= _LONG:
        return isinstance(key, tuple)
    several = any(
        entry is None or entry is Ellipsis or isinstance(entry, (Tensor, list, tuple, np.ndarray, range, slice))
        for entry in key
    )
    if several:
        warnings.warn(LIST_FOR_TUPLE, UserWarning, stacklevel=4)
    return several


def subscript(key: Any, ndim: int) -> Key:
    """Return a subscript as a tuple: lists and arrays become tensors, 0-d integer tensors become ints.

    Raises:
        IndexError: something can be no index, or an integer is the index of a tensor without axes.
    """
    if not ndim and isinstance(key, int) and not isinstance(key, bool):
        raise IndexError(
            "invalid index of a 0-dim tensor. Use `tensor.item()` in Python or `tensor.item<T>()` in C++ to convert a "
            "0-dim tensor to a number"
        )
    entries = tuple(key) if _is_tuple(key) else (key,)
    return tuple(_entry(entry) for entry in entries)


def byte_mask(entry: Any) -> Any:
    """Return a tensor of bytes as the mask that it is, with PyTorch's warning."""
    if not isinstance(entry, Tensor) or entry._data.dtype != np.uint8:
        return entry
    warnings.warn(
        f"indexing with dtype {PRINTED_MODULE}.uint8 is now deprecated, please use a dtype {PRINTED_MODULE}.bool "
        "instead.",
        UserWarning,
        stacklevel=2,
    )
    return from_array(entry._data.astype(bool))


def _entry(entry: Any) -> Any:  # noqa: PLR0911  (one return for each kind of index)
    entry = byte_mask(entry)
    if isinstance(entry, Tensor):
        if not entry._data.ndim and entry._data.dtype.kind in "iu":
            return int(entry._data)
        if entry._data.dtype.kind not in "iub":
            raise IndexError("tensors used as indices must be long, int, byte or bool tensors")
        return entry
    if isinstance(entry, (bool, np.bool_)):
        return from_array(np.asarray(entry))
    if isinstance(entry, np.integer):
        return int(entry)
    if isinstance(entry, (list, np.ndarray, range)):
        array = np.asarray(entry)
        return from_array(array if array.size else array.astype(np.int64))
    if isinstance(entry, slice):
        return slice_of_ints(entry)
    if entry is None or entry is Ellipsis or isinstance(entry, int):
        return entry
    if isinstance(entry, str):
        raise TypeError("new(): invalid data type 'str'")
    raise IndexError(
        "only integers, slices (`:`), ellipsis (`...`), None and long or byte Variables are valid indices (got "
        f"{type(entry).__name__})"
    )


def width(entry: Any) -> int:
    """Return how many axes of a tensor an entry of a subscript takes."""
    if entry is None or entry is Ellipsis:
        return 0
    return entry._data.ndim if isinstance(entry, Tensor) and entry._data.dtype.kind == "b" else 1
