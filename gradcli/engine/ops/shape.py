"""Views and copies with other axes, each with its adjoint."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gradcli.engine.dtypes import BY_NUMPY, Array, Size, numpy_dtype, require_cpu
from gradcli.engine.dtypes import dtype as Dtype
from gradcli.engine.graph import Node
from gradcli.engine.ops.operands import axes, axis, sizes
from gradcli.engine.recording import record, record_view
from gradcli.engine.tensor import Tensor

NOT_VIEWABLE = (
    "view size is not compatible with input tensor's size and stride (at least one dimension spans across two contiguous "
    "subspaces). Use .reshape(...) instead."
)


class _Reshaped(Node):
    """The cotangent in the shape of the input."""

    shape: tuple[int, ...]

    def _vjp(self, g: Tensor) -> Any:
        return g.reshape(self.shape)


class ViewBackward0(_Reshaped):
    """The adjoint of a view is the view back."""


class UnsafeViewBackward0(_Reshaped):
    """As ViewBackward0, of a fresh copy."""


class UnsqueezeBackward0(_Reshaped):
    """An axis of length 1 goes away again."""


class SqueezeBackward0(_Reshaped):
    """The axes of length 1 come back."""


class SqueezeBackward1(_Reshaped):
    """The axis of length 1 comes back."""


class SqueezeBackward4(_Reshaped):
    """The axis of length 1 of a product with a vector comes back."""


class ExpandBackward0(Node):
    """The adjoint of repeating is summing."""

    shape: tuple[int, ...]

    def _vjp(self, g: Tensor) -> Any:
        return sum_to(g, self.shape)


class PermuteBackward0(Node):
    """The axes go back."""

    inverse: tuple[int, ...]

    def _vjp(self, g: Tensor) -> Any:
        return permute(g, self.inverse)


class TransposeBackward0(Node):
    """The two axes are exchanged again."""

    first: int
    second: int

    def _vjp(self, g: Tensor) -> Any:
        return transpose(g, self.first, self.second)


class TBackward0(Node):
    """A transposed matrix is transposed back."""

    def _vjp(self, g: Tensor) -> Any:
        return t(g)


class CloneBackward0(Node):
    """A copy hands its cotangent on."""

    def _vjp(self, g: Tensor) -> Any:
        return g


class AliasBackward0(Node):
    """The same memory hands its cotangent on."""

    def _vjp(self, g: Tensor) -> Any:
        return g


class ToCopyBackward0(Node):
    """The cotangent is cast back (the backward pass does so)."""

    def _vjp(self, g: Tensor) -> Any:
        return g


class FlipBackward0(Node):
    """The axes are reversed again."""

    dims: tuple[int, ...]

    def _vjp(self, g: Tensor) -> Any:
        return flip(g, self.dims)


class RollBackward0(Node):
    """The elements are rolled back."""

    shifts: tuple[int, ...]
    dims: tuple[int, ...] | None

    def _vjp(self, g: Tensor) -> Any:
        return roll(g, tuple(-shift for shift in self.shifts), self.dims)


class RepeatBackward0(Node):
    """The copies are summed."""

    shape: tuple[int, ...]
    repeats: tuple[int, ...]

    def _vjp(self, g: Tensor) -> Any:
        padded = (1,) * (len(self.repeats) - len(self.shape)) + self.shape
        split = [size for pair in zip(self.repeats, padded, strict=True) for size in pair]
        if 0 in split:
            return g.new_zeros(self.shape)
        return g.reshape(split).sum(tuple(range(0, len(split), 2))).reshape(self.shape)


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


def sum_to(input: Tensor, shape: tuple[int, ...]) -> Tensor:
    """Return the input summed over the axes along which `shape` would be broadcast to it."""
    have = input._data.shape
    if have == shape:
        return input
    lead = len(have) - len(shape)
    dims = [*range(lead), *(lead + i for i, size in enumerate(shape) if size == 1 and have[lead + i] != 1)]
    summed = input.sum(dims, keepdim=True) if dims else input
    return summed.reshape(shape) if lead else summed


def resolved(shape: Sequence[int], count: int) -> tuple[int, ...]:
    """Return a shape with its -1 worked out.

    Raises:
        RuntimeError: the shape cannot hold so many elements.
    """
    fixed = tuple(shape)
    if -1 in fixed:
        known = math.prod(size for size in fixed if size != -1)
        if fixed.count(-1) > 1:
            raise RuntimeError("only one dimension can be inferred")
        if known == 0 or count % known:
            raise RuntimeError(f"shape '{list(fixed)}' is invalid for input of size {count}")
        fixed = tuple(count // known if size == -1 else size for size in fixed)
    if math.prod(fixed) != count:
        raise RuntimeError(f"shape '{list(shape)}' is invalid for input of size {count}")
    return fixed


def _viewed(array: Array, shape: tuple[int, ...]) -> Array | None:
    """Return the array in another shape on the same memory, or None where that cannot be."""
    result = array.reshape(shape)
    return result if array.flags.c_contiguous or not array.size or np.may_share_memory(result, array) else None


def _as_shape(kind: type[_Reshaped], input: Tensor, shape: tuple[int, ...], array: Array) -> Tensor:
    return record_view(kind, array, input, lambda root: view(root, shape), shape=input._data.shape)


def view(input: Tensor, *shape: Any) -> Any:
    """Return the same memory in another shape; with an element type, the same memory read as that type.

    Raises:
        RuntimeError: the memory is not laid out for it.
    """
    if len(shape) == 1 and isinstance(shape[0], Dtype):
        return record(Node, input._data.view(shape[0].numpy), ())
    wanted = resolved(sizes(shape), input._data.size)
    array = _viewed(input._data, wanted)
    if array is None:
        raise RuntimeError(NOT_VIEWABLE)
    return _as_shape(ViewBackward0, input, wanted, array)


def reshape(input: Tensor, *shape: Any) -> Tensor:
    """Return the elements in another shape: a view where that is possible, else a copy."""
    wanted = resolved(sizes(shape), input._data.size)
    array = _viewed(input._data, wanted)
    if array is not None:
        return _as_shape(ViewBackward0, input, wanted, array)
    copied = clone(input)
    return record(UnsafeViewBackward0, copied._data.reshape(wanted), (copied,), shape=input._data.shape)


def flatten(input: Tensor, start_dim: int = 0, end_dim: int = -1) -> Tensor:
    """Return the tensor with a range of axes made one."""
    shape = input._data.shape
    if not shape:
        return reshape(input, 1)
    first, last = axis(start_dim, len(shape)), axis(end_dim, len(shape))
    if first > last:
        raise RuntimeError("flatten() has invalid args: start_dim cannot come after end_dim")
    if first == last:
        return input
    return reshape(input, *shape[:first], math.prod(shape[first : last + 1]), *shape[last + 1 :])


def unflatten(input: Tensor, dim: int, sizes: Sequence[int]) -> Tensor:
    """Return the tensor with one axis split into several."""
    shape, spot = input._data.shape, axis(dim, input._data.ndim)
    return view(input, *shape[:spot], *resolved(sizes, shape[spot]), *shape[spot + 1 :])


def ravel(input: Tensor) -> Tensor:
    """Return the elements along one axis."""
    return reshape(input, -1)


def view_as(input: Tensor, other: Tensor) -> Tensor:
    """Return the view that has the shape of another tensor."""
    return view(input, *other._data.shape)


def reshape_as(input: Tensor, other: Tensor) -> Tensor:
    """Return the elements in the shape of another tensor."""
    return reshape(input, *other._data.shape)


def unsqueeze(input: Tensor, dim: int) -> Tensor:
    """Return a view with an axis of length 1 put in."""
    spot = axis(dim, input._data.ndim + 1)
    array = np.expand_dims(input._data, spot)
    return record_view(UnsqueezeBackward0, array, input, lambda root: unsqueeze(root, spot), shape=input._data.shape)


def squeeze(input: Tensor, dim: Any = None) -> Tensor:
    """Return a view without the axes of length 1, or without the named ones of them."""
    shape = input._data.shape
    named = range(len(shape)) if dim is None else axes(dim, len(shape))
    gone = tuple(place for place in named if len(shape) and shape[place] == 1)
    kind = SqueezeBackward0 if dim is None else SqueezeBackward1
    return record_view(kind, input._data.squeeze(gone), input, lambda root: squeeze(root, dim), shape=shape)


def expand(input: Tensor, *shape: Any) -> Tensor:
    """Return a view in which axes of length 1 are repeated; -1 keeps a length.

    Raises:
        RuntimeError: another length cannot be repeated.
    """
    wanted, have = sizes(shape), input._data.shape
    lead = len(wanted) - len(have)
    if lead < 0:
        raise RuntimeError(
            f"expand: the number of sizes provided ({len(wanted)}) must be greater or equal to the number of dimensions "
            f"in the tensor ({len(have)})"
        )
    full = tuple(have[i - lead] if size == -1 and i >= lead else size for i, size in enumerate(wanted))
    for place, (size, old) in enumerate(zip(full[lead:], have, strict=True)):
        if old not in (1, size):
            raise RuntimeError(
                f"The expanded size of the tensor ({size}) must match the existing size ({old}) at non-singleton "
                f"dimension {place + lead}.  Target sizes: {list(full)}.  Tensor sizes: {list(have)}"
            )
    return record_view(
        ExpandBackward0, np.broadcast_to(input._data, full), input, lambda root: expand(root, full), shape=have
    )


def expand_as(input: Tensor, other: Tensor) -> Tensor:
    """Return the tensor expanded to the shape of another."""
    return expand(input, *other._data.shape)


def broadcast_to(input: Tensor, shape: Sequence[int]) -> Tensor:
    """Return the tensor expanded to a shape."""
    return expand(input, *shape)


def permute(input: Tensor, *dims: Any) -> Tensor:
    """Return a view with the axes in another order.

    Raises:
        RuntimeError: not every axis is named once.
    """
    order = tuple(axis(place, input._data.ndim) for place in sizes(dims))
    if sorted(order) != list(range(input._data.ndim)):
        raise RuntimeError(
            f"permute(sparse_coo): number of dimensions in the tensor input does not match the length of the desired "
            f"ordering of dimensions i.e. input.dim() = {input._data.ndim} is not equal to len(dims) = {len(order)}"
        )
    inverse = tuple(int(place) for place in np.argsort(order)) if order else ()
    return record_view(
        PermuteBackward0, input._data.transpose(order), input, lambda root: permute(root, order), inverse=inverse
    )


def transpose(input: Tensor, dim0: int, dim1: int) -> Tensor:
    """Return a view with two axes exchanged."""
    first, second = axis(dim0, input._data.ndim), axis(dim1, input._data.ndim)
    array = input._data.swapaxes(first, second) if input._data.ndim else input._data
    return record_view(
        TransposeBackward0, array, input, lambda root: transpose(root, first, second), first=first, second=second
    )


def t(input: Tensor) -> Tensor:
    """Return a matrix transposed; a vector as it is.

    Raises:
        RuntimeError: there are more than two axes.
    """
    if input._data.ndim > 2:
        raise RuntimeError(f"t() expects a tensor with <= 2 dimensions, but self is {input._data.ndim}D")
    return record_view(TBackward0, input._data.T, input, t)


def reverse_axes(input: Tensor) -> Tensor:
    """Return a view with all axes in reverse order (the attribute `T`)."""
    return permute(input, tuple(range(input._data.ndim - 1, -1, -1)))


def matrix_transpose(input: Tensor) -> Tensor:
    """Return a view with the last two axes exchanged (the attribute `mT`)."""
    return transpose(input, -2, -1)


def movedim(input: Tensor, source: Any, destination: Any) -> Tensor:
    """Return a view with some axes moved to other places."""
    ndim = input._data.ndim
    start, goal = axes(source, ndim), axes(destination, ndim)
    order = [place for place in range(ndim) if place not in start]
    for to, place in sorted(zip(goal, start, strict=True)):
        order.insert(to, place)
    return permute(input, order)


def clone(input: Tensor, *, memory_format: Any = None) -> Tensor:  # noqa: ARG001  (there is one memory format)
    """Return a copy that hands gradients back to the original."""
    return record(CloneBackward0, input._data.copy(), (input,))


def contiguous(input: Tensor, memory_format: Any = None) -> Tensor:  # noqa: ARG001  (there is one memory format)
    """Return the tensor itself when its elements lie in order, else a copy in order."""
    if input._data.flags.c_contiguous:
        return input
    return record(CloneBackward0, np.ascontiguousarray(input._data), (input,))


def alias(input: Tensor) -> Tensor:
    """Return another tensor on the same memory, in the graph."""
    return record_view(AliasBackward0, input._data, input, alias)


def to(input: Tensor, *args: Any, dtype: Any = None, device: Any = None, copy: bool = False, **options: Any) -> Tensor:
    """Return the tensor as another element type (or like another tensor); itself when nothing changes.

    Raises:
        RuntimeError: another device than the CPU is asked for.
    """
    for value in args:
        if isinstance(value, Tensor):
            dtype = BY_NUMPY[value._data.dtype]
        elif isinstance(value, Dtype) or value in (float, int, bool, complex):
            dtype = value
        elif not isinstance(value, bool):
            device = value
    require_cpu(device)
    unknown = set(options) - {"non_blocking", "memory_format"}
    if unknown:
        raise TypeError(f"to() got an unexpected keyword argument '{sorted(unknown)[0]}'")
    kind = input._data.dtype if dtype is None else numpy_dtype(dtype)
    if kind == input._data.dtype and not copy:
        return input
    array = input._data.real if input._data.dtype.kind == "c" and kind.kind != "c" else input._data
    inputs = (input,) if kind.kind in "fc" else ()
    return record(ToCopyBackward0, array.astype(kind), inputs)


def flip(input: Tensor, *dims: Any) -> Tensor:
    """Return a copy with some axes reversed."""
    places = axes(sizes(dims), input._data.ndim) if sizes(dims) else ()
    return record(FlipBackward0, np.flip(input._data, places).copy(), (input,), dims=places)


def roll(input: Tensor, shifts: Any, dims: Any = None) -> Tensor:
    """Return a copy with the elements moved along some axes, those that fall off coming back in front."""
    by = sizes((shifts,))
    along = None if dims is None else sizes((dims,))
    return record(
        RollBackward0, np.roll(input._data, by if along is not None else by[0], along), (input,), shifts=by, dims=along
    )


def repeat(input: Tensor, *repeats: Any) -> Tensor:
    """Return copies of the whole tensor side by side along every axis."""
    times = sizes(repeats)
    if len(times) < input._data.ndim:
        raise RuntimeError("Number of dimensions of repeat dims can not be smaller than number of dimensions of tensor")
    return record(RepeatBackward0, np.tile(input._data, times), (input,), shape=input._data.shape, repeats=times)


def tile(input: Tensor, *dims: Any) -> Tensor:
    """As `repeat`, with missing counts taken as 1."""
    times = sizes(dims)
    return repeat(input, *(1,) * (input._data.ndim - len(times)), *times)


def narrow(input: Tensor, dim: int, start: int, length: int) -> Tensor:
    """Return a view of a range of an axis."""
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
        SelectBackward0, input, lambda array: _kept_array(array, key), lambda root: select(root, spot, index)
    )


def _kept_array(array: Array, key: tuple[Any, ...]) -> Array:
    return array[(*key, Ellipsis)]


def slice_axis(input: Tensor, dim: int, part: slice) -> Tensor:
    """Return a view of a slice of an axis."""
    key = (slice(None),) * dim + (part,)
    return part_view(SliceBackward0, input, lambda array: array[key], lambda root: slice_axis(root, dim, part))


def diagonal(input: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    """Return a view of a diagonal of two axes, as the last axis."""

    def region(array: Array) -> Array:
        lines = np.diagonal(array, offset, dim1, dim2)
        if array.flags.writeable:
            lines.flags.writeable = True
        return lines

    return part_view(DiagonalBackward0, input, region, lambda root: diagonal(root, offset, dim1, dim2))


def unfold(input: Tensor, dimension: int, size: int, step: int) -> Tensor:
    """Return windows of `size` along an axis, `step` apart, as a last axis."""
    spot = axis(dimension, input._data.ndim)
    windows = np.lib.stride_tricks.sliding_window_view(input._data, size, axis=spot)
    array = windows[(slice(None),) * spot + (slice(None, None, step),)]
    return record(UnfoldBackward0, array, (input,), shape=input._data.shape, dim=spot, size=size, step=step)


def size(input: Tensor, dim: int | None = None) -> Any:
    """Return the shape, or the length of one axis."""
    return Size(input._data.shape) if dim is None else input._data.shape[axis(dim, input._data.ndim)]
