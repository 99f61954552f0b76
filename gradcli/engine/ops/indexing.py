"""Reading and writing elements: subscripts, gather and scatter, index_select and its like, masks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from gradcli.engine.dtypes import Array
from gradcli.engine.graph import Node
from gradcli.engine.in_place import in_place, writeable
from gradcli.engine.module_name import PRINTED_MODULE
from gradcli.engine.ops.operands import (
    axis,
    check_broadcast,
    operand,
    require_one_dtype,
    require_places,
    require_rows,
    require_whole,
)  # fmt: skip
from gradcli.engine.ops.parts import selected, slice_axis
from gradcli.engine.ops.shape import alias, unsqueeze
from gradcli.engine.ops.subscripts import (
    Key,
    array_key,
    byte_mask,
    index_message,
    require_type_put,
    require_writable,
    subscript,
    width,
)
from gradcli.engine.recording import record, tracked
from gradcli.engine.tensor import Tensor, from_array


class IndexBackward0(Node):
    """The cotangent is added into zeros where the elements were read."""

    shape: tuple[int, ...]

    def _vjp(self, g: Tensor) -> Any:
        return add_at(g, self.shape, self._unpack())


class AddAtBackward0(Node):
    """The cotangent is read where the values were added."""

    def _vjp(self, g: Tensor) -> Any:
        return read_at(g, self._unpack())


class IndexPutBackward0(Node):
    """The old values get 0 where they were overwritten; the new ones get the cotangent from there."""

    accumulate: bool

    def _vjp(self, g: Tensor) -> Any:
        key = self._unpack()
        kept = None
        if self._needs(0):
            kept = g if self.accumulate else index_put(g, key, g.new_zeros(()))
        return kept, read_at(g, key) if self._needs(1) else None


class IndexSelectBackward0(IndexBackward0):
    """Of `index_select`."""


class TakeBackward0(IndexBackward0):
    """Of `take`."""

    def _vjp(self, g: Tensor) -> Any:
        return add_at(g, self.shape, _unravelled(self._unpack()[0], self.shape))


class MaskedSelectBackward0(IndexBackward0):
    """Of `masked_select`."""


class GatherBackward0(IndexBackward0):
    """Of `gather`."""


class IndexAddBackward0(IndexPutBackward0):
    """Of `index_add`."""


class ScatterAddBackward0(IndexPutBackward0):
    """Of `scatter_add`."""


class ScatterBackward0(IndexPutBackward0):
    """Of `scatter`."""


class IndexCopyBackward0(IndexPutBackward0):
    """Of `index_copy`."""


def read_at(input: Tensor, key: Key, kind: type[Node] = IndexBackward0) -> Tensor:
    """Return the elements at an advanced subscript (tensors, slices), as a copy."""
    try:
        array = input._data[array_key(key)]
    except IndexError as error:
        raise IndexError(index_message(error, input, key)) from None
    if kind is IndexBackward0:
        from gradcli.engine.ops.layout import laid_out_like

        array = laid_out_like(array, input._data, key)
    else:
        array = np.asarray(array, order="C")
    return record(kind, array, (input,), key, shape=input._data.shape)


def add_at(values: Tensor, shape: tuple[int, ...], key: Key) -> Tensor:
    """Return zeros of `shape` with values added at a subscript; values for the same place are summed."""
    whole = np.zeros(shape, dtype=values._data.dtype)
    _add(whole, array_key(key), values._data)
    return record(AddAtBackward0, whole, (values,), key)


def _add(whole: Array, key: Key, values: Array) -> None:
    if any(isinstance(entry, np.ndarray) and entry.dtype.kind != "b" for entry in key):
        np.add.at(whole, key, values)
    else:
        whole[key] += values


def index_put(
    input: Tensor,
    indices: Sequence[Any],
    values: Tensor,
    accumulate: bool = False,
    kind: type[Node] = IndexPutBackward0,
) -> Tensor:
    """Return a copy with values written, or added with `accumulate`, at a tuple of index tensors."""
    key = tuple(byte_mask(entry) for entry in indices)
    require_type_put(input, key, values)
    whole = input._data.copy()
    given = values._data.astype(whole.dtype, copy=False)
    if accumulate:
        _add(whole, array_key(key), given)
    else:
        whole[array_key(key)] = given
    return record(kind, whole, (input, values), key, accumulate=accumulate)


def index_put_(input: Tensor, indices: Sequence[Any], values: Tensor, accumulate: bool = False) -> Tensor:
    """Write, or add with `accumulate`, values at a tuple of index tensors, in place."""
    return in_place(input, index_put, indices, values, accumulate)


def _basic_then_advanced(input: Tensor, key: Key) -> tuple[Tensor, Key]:
    """Apply the ints, slices and new axes of a subscript as views; return the view and the subscript that is left."""
    used = sum(width(entry) for entry in key)
    if used > input._data.ndim:
        raise IndexError(f"too many indices for tensor of dimension {input._data.ndim}")
    result, place, shown = input, 0, 0
    left: list[Any] = []
    for entry in key:
        if entry is Ellipsis:
            skipped = input._data.ndim - used
            left += [slice(None)] * skipped
            place += skipped
            shown += skipped
        elif entry is None:
            result = unsqueeze(result, place)
            left.append(slice(None))
            place += 1
            shown += 1
        elif isinstance(entry, Tensor):
            left.append(entry)
            place += width(entry)
            shown += width(entry)
        elif isinstance(entry, slice):
            result = _sliced(result, place, entry)
            left.append(slice(None))
            place += 1
            shown += 1
        else:
            result = selected(result, place, entry, shown)
            shown += 1
    return result, tuple(left) if any(isinstance(entry, Tensor) for entry in left) else ()


def _sliced(input: Tensor, place: int, entry: slice) -> Tensor:
    start, stop, step = entry.indices(input._data.shape[place])
    if not entry.start and (start, stop, step) == (0, input._data.shape[place], 1):
        return input
    return slice_axis(input, place, slice(start, max(stop, start), step))


def getitem(input: Tensor, key: Any) -> Tensor:
    """Return `input[key]`: a view for ints, slices, None and `...`; a copy for lists, index tensors and masks."""
    part, advanced = _basic_then_advanced(input, subscript(key, input._data.ndim))
    if advanced:
        return read_at(part, advanced)
    return alias(part) if part is input else part


def setitem(input: Tensor, key: Any, value: Any) -> None:
    """Write `input[key] = value` in place, with the value broadcast and cast."""
    entries = subscript(key, input._data.ndim)
    try:
        given = operand(value, "value")
        if isinstance(given, complex) and input._data.dtype.kind != "c":
            if given.imag and input._data.dtype.kind != "b":
                raise RuntimeError(f"value cannot be converted to type {_number_in_c(input)} without overflow")
            given = abs(given) if input._data.dtype.kind == "b" else given.real
    except TypeError:
        kind = f"{PRINTED_MODULE}.{input.dtype.letter}Tensor"
        raise TypeError(f"can't assign a {type(value).__name__} to a {kind}") from None
    if not tracked(input, given):
        _write_untracked(input, entries, given)
        return
    if not isinstance(given, Tensor):
        given = from_array(np.asarray(given, dtype=input._data.dtype))
    part, advanced = _basic_then_advanced(input, entries)
    target = part._data[array_key(advanced)].shape if advanced else part._data.shape
    given = _trimmed(given, target)
    require_writable(input, given._data.shape, target, bool(advanced))
    if advanced:
        index_put_(part, advanced, given)
    else:
        part.copy_(given)


def _number_in_c(input: Tensor) -> str:
    """Return how C++ calls the numbers that are written to the tensor, as messages have it."""
    kind = input.dtype
    if kind.numpy.kind in "iu" and kind.name != "int32":
        return f"{kind.name}_t"
    return "double" if kind.name == "float16" else kind.in_c


def _trimmed(value: Tensor, shape: tuple[int, ...]) -> Tensor:
    """Return the value without leading axes of length 1 beyond the number of axes of the place written to."""
    extra = value._data.ndim - len(shape)
    if extra > 0 and value._data.shape[:extra] == (1,) * extra:
        return value.reshape(value._data.shape[extra:])
    return value


def _write_untracked(input: Tensor, entries: Key, given: Any) -> None:
    value = given._data if isinstance(given, Tensor) else given
    if isinstance(given, Tensor):
        require_type_put(input, entries, given)
    if isinstance(value, np.ndarray) and value.dtype.kind == "c" and input._data.dtype.kind != "c":
        value = value.real
    place: Any = array_key(entries)
    memory = input._data
    try:
        if not memory.flags.writeable:
            part = from_array(memory[place])
            if part._data.base is None:  # a copy: the subscript has arrays in it
                memory = writeable(input, once=False)
            else:
                place, memory = ..., writeable(part)
        memory[place] = value
    except IndexError as error:
        raise IndexError(index_message(error, input, entries)) from None
    except ValueError as error:
        key = place if isinstance(place, tuple) else ()
        require_writable(
            input, np.shape(value), memory[place].shape, any(isinstance(entry, np.ndarray) for entry in key)
        )
        raise RuntimeError(str(error)) from None
    input._shared_counter().value += 1


def _along(dim: int, index: Tensor, ndim: int) -> Key:
    """Return the subscript of `gather`: the index along one axis, and its own positions along the others."""
    grids = np.indices(index._data.shape, sparse=True)
    return tuple(index if place == dim else grids[place] for place in range(ndim))


def gather(input: Tensor, dim: int, index: Tensor) -> Tensor:
    """Return out[i, j, ...] = input[index[i, j, ...], j, ...] (for dim = 0), in the shape of the index."""
    if not input._data.ndim:
        return input.expand(index._data.shape).clone()
    place = axis(dim, input._data.ndim)
    _require_within("gather", index, place, input._data.shape)
    return read_at(input, _along(place, index, input._data.ndim), GatherBackward0)


def _require_within(name: str, index: Tensor, dim: int, shape: tuple[int, ...]) -> None:
    """Raise RuntimeError unless an index for `gather` or `scatter` holds integers from 0 on that fit the shape."""
    found = index._data
    if found.dtype.kind not in "iu":
        raise RuntimeError(f"{name}(): Expected dtype int32/int64 for index")
    if found.ndim != len(shape):
        raise RuntimeError("Index tensor must have the same number of dimensions as input tensor")
    if any(have > size for place, (have, size) in enumerate(zip(found.shape, shape, strict=True)) if place != dim):
        raise RuntimeError(
            f"Size does not match at dimension {dim} expected index {list(found.shape)} to be no larger than self "
            f"{list(shape)} apart from dimension {dim}"
        )
    outside = (found < 0) | (found >= shape[dim])
    if outside.any():
        wrong = int(found[outside][0])
        raise RuntimeError(f"index {wrong} is out of bounds for dimension {dim} with size {shape[dim]}")


def _scattered(kind: type[Node], input: Tensor, dim: int, index: Tensor, src: Any, accumulate: bool) -> Tensor:
    shape = index._data.shape
    if input._data.ndim and index._data.size:
        _require_within("scatter", index, axis(dim, input._data.ndim), input._data.shape)
    if isinstance(src, Tensor):
        require_one_dtype("scatter", input, src)
        part = src[tuple(slice(0, size) for size in shape)] if src._data.shape != shape else src
    else:
        part = from_array(np.full(shape, src, dtype=input._data.dtype))
    return index_put(input, _along(axis(dim, input._data.ndim), index, input._data.ndim), part, accumulate, kind)


def scatter(input: Tensor, dim: int, index: Tensor, src: Any = None, value: Any = None) -> Tensor:
    """Return a copy with out[index[i, j, ...], j, ...] = src[i, j, ...] (for dim = 0); src or value may be a number."""
    return _scattered(ScatterBackward0, input, dim, index, value if src is None else src, False)


def scatter_add(input: Tensor, dim: int, index: Tensor, src: Tensor) -> Tensor:
    """Return a copy with out[index[i, j, ...], j, ...] += src[i, j, ...] (for dim = 0)."""
    return _scattered(ScatterAddBackward0, input, dim, index, src, True)


def _line(name: str, input: Tensor, dim: int, index: Tensor) -> Key:
    """Return the subscript of the slices of an axis that an index vector names; raises as `require_places`."""
    place = axis(dim, input._data.ndim)
    require_whole(name, index)
    if input._data.ndim:
        require_places(index, input._data.shape[place])
    return (slice(None),) * place + (index,)


def index_select(input: Tensor, dim: int, index: Tensor) -> Tensor:
    """Return the slices of an axis at an index vector; raises IndexError where there is none, or it is negative."""
    return read_at(input, _line("index_select", input, dim, index), IndexSelectBackward0)


def index_add(input: Tensor, dim: int, index: Tensor, source: Tensor, *, alpha: Any = 1) -> Tensor:
    """Return a copy with alpha * source added to the slices of an axis at an index vector; see `index_select`."""
    require_one_dtype("index_add", input, source)
    require_rows(input, axis(dim, input._data.ndim), index, source)
    added = source if alpha == 1 else source * alpha
    return index_put(input, _line("index_add", input, dim, index), added, True, IndexAddBackward0)


def index_copy(input: Tensor, dim: int, index: Tensor, source: Tensor) -> Tensor:
    """Return a copy with source written to the slices of an axis at an index vector; see `index_select`."""
    require_one_dtype("index_copy", input, source)
    return index_put(input, _line("index_copy", input, dim, index), source, False, IndexCopyBackward0)


def take(input: Tensor, index: Tensor) -> Tensor:
    """Return the elements at positions of the flattened tensor, in the shape of the index; raises IndexError."""
    size = input._data.size
    require_whole("take", index)
    outside = index._data[(index._data < -size) | (index._data >= size)]
    if outside.size:
        raise IndexError(f"out of range: tried to access index {outside[0]} on a tensor of {size} elements.")
    key = _unravelled(index, input._data.shape)
    if not key:
        return input.expand(index._data.shape).clone()
    return record(TakeBackward0, input._data[key], (input,), (index,), shape=input._data.shape)


def _unravelled(index: Tensor, shape: tuple[int, ...]) -> Key:
    size = math.prod(shape)
    return np.unravel_index(index._data % size, shape) if size else ()


def masked_select(input: Tensor, mask: Tensor) -> Tensor:
    """Return a vector of the elements where the mask is True; input and mask are broadcast."""
    check_broadcast(mask._data.shape, input._data.shape)
    shape = np.broadcast_shapes(input._data.shape, mask._data.shape)
    whole = input if input._data.shape == shape else input.expand(shape)
    return read_at(whole, (mask.expand(shape),), MaskedSelectBackward0)
