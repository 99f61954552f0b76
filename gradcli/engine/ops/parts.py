"""Views of a part of a tensor: select, slice, diagonal, windows. In backward, the cotangent is put into zeros."""

from __future__ import annotations

import functools
import itertools
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gradcli.engine.dtypes import BY_NUMPY, Array
from gradcli.engine.graph import Node
from gradcli.engine.ops.operands import axis, require_axes
from gradcli.engine.ops.shape import movedim, unsqueeze
from gradcli.engine.recording import record, record_view, record_views
from gradcli.engine.tensor import Tensor, from_array


class PlaceBackward0(Node):
    """The cotangent of a part that was put into zeros is this part of the cotangent."""

    take: Callable[[Tensor], Tensor]

    def _vjp(self, g: Tensor) -> Any:
        return self.take(g)


class _Part(Node):
    """The rule of a view of a part: zeros of the input's shape with the cotangent in place of the part."""

    shape: tuple[int, ...]
    take: Callable[[Tensor], Tensor]
    region: Callable[[Array], Array]

    def _vjp(self, g: Tensor) -> Any:
        return place(g, self.shape, self.region, self.take)


class SelectBackward0(_Part):
    """One index of an axis."""


class SliceBackward0(_Part):
    """A range of an axis."""


class DiagonalBackward0(_Part):
    """A diagonal."""


class UnfoldBackward0(Node):
    """Windows along an axis: an element gets the sum of the cotangents of all windows that contain it."""

    shape: tuple[int, ...]
    dim: int
    size: int
    step: int

    def _vjp(self, g: Tensor) -> Any:
        count = g._data.shape[self.dim]
        start = np.arange(count)[:, None] * self.step + np.arange(self.size)[None, :]
        index = g.new_tensor(start.reshape(-1), dtype=BY_NUMPY[np.dtype(np.int64)])
        moved = movedim(g, -1, self.dim + 1)
        flat = moved.reshape([*self.shape[: self.dim], count * self.size, *self.shape[self.dim + 1 :]])
        return g.new_zeros(self.shape).index_add(self.dim, index, flat)


class SplitBackward0(Node):
    """The cotangents of the parts, joined; zeros for a part that was not used."""

    dim: int

    def _vjp(self, *gs: Tensor | None) -> Any:
        return _joined(_filled(self, gs), self.dim)


class SplitWithSizesBackward0(SplitBackward0):
    """As SplitBackward0, for a list of lengths."""


class UnbindBackward0(Node):
    """The cotangents of the parts, stacked; zeros for a part that was not used."""

    dim: int

    def _vjp(self, *gs: Tensor | None) -> Any:
        return _joined([unsqueeze(g, self.dim) for g in _filled(self, gs)], self.dim)


def _filled(node: Node, cotangents: Sequence[Tensor | None]) -> list[Tensor]:
    return [from_array(np.zeros(*meta)) if g is None else g for g, meta in zip(cotangents, node._outputs, strict=True)]


def _joined(tensors: list[Tensor], dim: int) -> Tensor:
    joined: Tensor = tensors[0].cat(tensors, dim)
    return joined


def place(
    part: Tensor, shape: tuple[int, ...], region: Callable[[Array], Array], take: Callable[[Tensor], Tensor]
) -> Tensor:
    """Return zeros of `shape` with `part` written to a region.

    Args:
        part: the values.
        shape: the shape of the result.
        region: returns the region of an array, as a view to write to.
        take: returns the same region of a tensor; the rule of backward.
    """
    whole = np.zeros(shape, dtype=part._data.dtype)
    region(whole)[...] = part._data
    return record(PlaceBackward0, whole, (part,), take=take)


def part_view(
    kind: type[_Part], input: Tensor, region: Callable[[Array], Array], take: Callable[[Tensor], Tensor]
) -> Tensor:
    """Return the view `region(array)` of the input; `take` is the same on tensors, for replaying the view."""
    return record_view(kind, region(input._data), input, take, shape=input._data.shape, region=region, take=take)


def narrow(input: Tensor, dim: int, start: int, length: int) -> Tensor:
    """Return a view of `length` elements of an axis from `start` on (negative: counted from the end).

    Raises:
        IndexError: `start` is out of range.
        RuntimeError: the length is negative, or reaches beyond the axis.
    """
    require_axes("narrow", input)
    start, length = operator.index(start), operator.index(length)
    size = input._data.shape[axis(dim, input._data.ndim)]
    if length < 0:
        raise RuntimeError(f"narrow(): length must be non-negative, got {length}.")
    if not -size <= start <= size:
        raise IndexError(f"start out of range (expected to be in range of [-{size}, {size}], but got {start})")
    start = start + size if start < 0 else start
    if start + length > size:
        raise RuntimeError(f"start ({start}) + length ({length}) exceeds dimension size ({size}).")
    return slice_axis(input, axis(dim, input._data.ndim), slice(start, start + length, 1))


def select(input: Tensor, dim: int, index: int) -> Tensor:
    """Return a view at one index of an axis, without this axis.

    Raises:
        IndexError: the index is out of range, or the tensor is 0-d.
    """
    spot = axis(dim, input._data.ndim)
    if not input._data.ndim:
        raise IndexError("select() cannot be applied to a 0-dim tensor.")
    size = input._data.shape[spot]
    if not -size <= index < size:
        raise IndexError(
            f"select(): index {index} out of range for tensor of size {list(input._data.shape)} at dimension {spot}"
        )
    return selected(input, spot, index, spot)


def selected(input: Tensor, spot: int, index: int, named: int) -> Tensor:
    """As `select`, of an axis that is counted from 0, and has another number in messages."""
    size = input._data.shape[spot]
    if not -size <= index < size:
        raise IndexError(f"index {index} is out of bounds for dimension {named} with size {size}")
    key = (slice(None),) * spot + (index,)
    return part_view(
        SelectBackward0, input, lambda array: _array_at(array, key), lambda root: select(root, spot, index)
    )


def _array_at(array: Array, key: tuple[Any, ...]) -> Array:
    return array[(*key, Ellipsis)]


def slice_of_ints(entry: slice) -> slice:
    """Return a subscript's slice with ints. Raises TypeError for no integers, and ValueError for a step below 1."""
    parts: list[int | None] = []
    for part in (entry.start, entry.stop, entry.step):
        if part is not None and not hasattr(type(part), "__index__"):
            raise TypeError("slice indices must be integers or None or have an __index__ method")
        parts.append(None if part is None else operator.index(part))
    if parts[2] is not None and parts[2] <= 0:
        raise ValueError("step must be greater than zero" if parts[2] else "slice step cannot be zero")
    return slice(*parts)


def slice_axis(input: Tensor, dim: int, part: slice) -> Tensor:
    """Return a view of a slice of an axis; `dim` is not negative, the slice lies within the axis."""
    key = (slice(None),) * dim + (part,)
    return part_view(SliceBackward0, input, lambda array: array[key], lambda root: slice_axis(root, dim, part))


def diagonal_of_matrices(A: Tensor, *, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    """Return a view of the diagonals of matrices [..., m, n]; see `diagonal`, whose axes are the first two."""
    return diagonal(A, offset, dim1, dim2)


def diagonal(input: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    """Return a view of a diagonal of two axes; it becomes the last axis, and the two are dropped."""
    given = dim1, dim2
    dim1, dim2 = axis(dim1, input._data.ndim), axis(dim2, input._data.ndim)
    if dim1 == dim2:
        raise RuntimeError(f"diagonal dimensions cannot be identical {given[0]}, {given[1]}")

    def region(array: Array) -> Array:
        lines = np.diagonal(array, offset, dim1, dim2)
        if array.flags.writeable:
            lines.flags.writeable = True
        return lines

    return part_view(DiagonalBackward0, input, region, lambda root: diagonal(root, offset, dim1, dim2))


def unfold(input: Tensor, dimension: int, size: int, step: int) -> Tensor:
    """Return windows of `size` elements along an axis, `step` apart: [..., windows, ..., size].

    Unlike PyTorch's, windows that overlap in memory cannot be written to.

    Raises:
        RuntimeError: a window is larger than the axis, or the step is not positive.
    """
    spot = axis(dimension, input._data.ndim)
    length = input._data.shape[spot] if input._data.ndim else 1
    if size > length:
        raise RuntimeError(f"maximum size for tensor at dimension {spot} is {length} but size is {size}")
    if step <= 0:
        raise RuntimeError(f"step is {step} but must be > 0")
    if not input._data.ndim:
        return unfold(input.reshape(1), 0, size, step).reshape(size)
    shape, strides = list(input._data.shape), list(input._data.strides)
    shape[spot : spot + 1] = [(length - size) // step + 1]
    strides[spot] *= step
    lines = np.lib.stride_tricks.as_strided(
        input._data,
        (*shape, size),
        (*strides, input._data.strides[spot]),
        writeable=bool(input._data.flags.writeable) and size <= step,
    )
    options: dict[str, Any] = {"shape": input._data.shape, "dim": spot, "size": size, "step": step}
    return record_view(UnfoldBackward0, lines, input, lambda root: unfold(root, spot, size, step), **options)


def split(input: Tensor, split_size_or_sections: Any, dim: int = 0) -> tuple[Tensor, ...]:
    """Return views of consecutive parts of an axis.

    Args:
        input: the tensor.
        split_size_or_sections: the length of all parts (the last may be shorter), or a list of lengths.
        dim: the axis.

    Raises:
        RuntimeError: the lengths do not add up to that of the axis, or one is negative.
    """
    require_axes("split", input)
    kind = SplitBackward0
    spot = axis(dim, input._data.ndim)
    total = input._data.shape[spot]
    one = isinstance(split_size_or_sections, Tensor) and not split_size_or_sections._data.ndim
    if one or isinstance(split_size_or_sections, (int, np.integer)):
        size = operator.index(split_size_or_sections)
        if size < 0:
            raise RuntimeError(f"split expects split_size be non-negative, but got split_size={size}")
        if size == 0 and total:
            raise RuntimeError(f"split_size can only be 0 if dimension size is 0, but got dimension size of {total}")
        lengths = [min(size, total - start) for start in range(0, total, size)] if total else [0]
    else:
        lengths = [operator.index(size) for size in split_size_or_sections]
        if sum(lengths) != total:
            raise RuntimeError(
                f"split_with_sizes expects split_sizes to sum exactly to {total} (input tensor's size at dimension "
                f"{spot}), but got split_sizes={lengths}"
            )
        kind = SplitWithSizesBackward0
    places = [slice(end - length, end) for length, end in zip(lengths, itertools.accumulate(lengths), strict=True)]
    before = (slice(None),) * spot
    return record_views(
        kind,
        [input._data[(*before, part)] for part in places],
        input,
        [functools.partial(slice_axis, dim=spot, part=part) for part in places],
        dim=spot,
    )


def chunk(input: Tensor, chunks: int, dim: int = 0) -> tuple[Tensor, ...]:
    """Return views of at most `chunks` parts of an axis, of equal length (the last may be shorter)."""
    require_axes("chunk", input)
    if chunks <= 0:
        raise RuntimeError(f"chunk expects `chunks` to be greater than 0, got: {chunks}")
    total = input._data.shape[axis(dim, input._data.ndim)]
    if not total:
        return split(input, [0] * chunks, dim)
    return split(input, max(-(-total // chunks), 1), dim)


def unbind(input: Tensor, dim: int = 0) -> tuple[Tensor, ...]:
    """Return views at every index of an axis, without this axis."""
    spot = axis(dim, input._data.ndim)
    before = (slice(None),) * spot
    count = input._data.shape[spot]
    return record_views(
        UnbindBackward0,
        [_array_at(input._data, (*before, index)) for index in range(count)],
        input,
        [functools.partial(select, dim=spot, index=index) for index in range(count)],
        dim=spot,
    )
