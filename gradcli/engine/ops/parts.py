"""Views of some of the elements; the adjoint of taking a part is putting it into zeros."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gradcli.engine.dtypes import BY_NUMPY, Array
from gradcli.engine.graph import Node
from gradcli.engine.ops.operands import axis, require_axes
from gradcli.engine.ops.shape import movedim
from gradcli.engine.recording import record, record_view
from gradcli.engine.tensor import Tensor


class PlaceBackward0(Node):
    """The adjoint of putting a part into zeros is taking the part."""

    take: Callable[[Tensor], Tensor]

    def _vjp(self, g: Tensor) -> Any:
        return self.take(g)


class _Part(Node):
    """The rule of a view of some of the elements: the cotangent is put into zeros."""

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
    """Windows along an axis: what overlaps is summed."""

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


def place(
    part: Tensor, shape: tuple[int, ...], region: Callable[[Array], Array], take: Callable[[Tensor], Tensor]
) -> Tensor:
    """Return zeros of `shape` with `part` in a region; `take` is the same region of a tensor."""
    whole = np.zeros(shape, dtype=part._data.dtype)
    region(whole)[...] = part._data
    return record(PlaceBackward0, whole, (part,), take=take)


def part_view(
    kind: type[_Part], input: Tensor, region: Callable[[Array], Array], take: Callable[[Tensor], Tensor]
) -> Tensor:
    """Return a view of a region of the input."""
    return record_view(kind, region(input._data), input, take, shape=input._data.shape, region=region, take=take)


def narrow(input: Tensor, dim: int, start: int, length: int) -> Tensor:
    """Return a view of a range of an axis."""
    require_axes("narrow", input)
    size = input._data.shape[axis(dim, input._data.ndim)]
    if length < 0:
        raise RuntimeError(f"narrow(): length must be non-negative, got {length}.")
    if not -size <= start <= size:
        raise IndexError(f"start out of range (expected to be in range of [-{size}, {size}], but got {start})")
    start = start + size if start < 0 else start
    if start + length > size:
        raise RuntimeError(f"start ({start}) + length ({length}) exceeds dimension size ({size}).")
    return slice_axis(input, axis(dim, input._data.ndim), slice(int(start), int(start) + int(length), 1))


def select(input: Tensor, dim: int, index: int) -> Tensor:
    """Return a view of one index of an axis.

    Raises:
        IndexError: there is no such index.
    """
    spot, size = axis(dim, input._data.ndim), 0
    if not input._data.ndim:
        raise IndexError("select() cannot be applied to a 0-dim tensor.")
    size = input._data.shape[spot]
    if not -size <= index < size:
        raise IndexError(f"index {index} is out of bounds for dimension {spot} with size {size}")
    key = (slice(None),) * spot + (index,)
    return part_view(
        SelectBackward0, input, lambda array: _array_at(array, key), lambda root: select(root, spot, index)
    )


def _array_at(array: Array, key: tuple[Any, ...]) -> Array:
    return array[(*key, Ellipsis)]


def slice_axis(input: Tensor, dim: int, part: slice) -> Tensor:
    """Return a view of a slice of an axis."""
    key = (slice(None),) * dim + (part,)
    return part_view(SliceBackward0, input, lambda array: array[key], lambda root: slice_axis(root, dim, part))


def diagonal(input: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    """Return a view of a diagonal of two axes, as the last axis."""
    dim1, dim2 = axis(dim1, input._data.ndim), axis(dim2, input._data.ndim)

    def region(array: Array) -> Array:
        lines = np.diagonal(array, offset, dim1, dim2)
        if array.flags.writeable:
            lines.flags.writeable = True
        return lines

    return part_view(DiagonalBackward0, input, region, lambda root: diagonal(root, offset, dim1, dim2))


def unfold(input: Tensor, dimension: int, size: int, step: int) -> Tensor:
    """Return windows of `size` along an axis, `step` apart, as a last axis."""
    spot = axis(dimension, input._data.ndim)
    if not input._data.ndim:
        return unfold(input.reshape(1), 0, size, step).reshape(size)
    windows = np.lib.stride_tricks.sliding_window_view(input._data, size, axis=spot)
    array = windows[(slice(None),) * spot + (slice(None, None, step),)]
    return record(UnfoldBackward0, array, (input,), shape=input._data.shape, dim=spot, size=size, step=step)
