"""Reshaping, expanding, permuting: views where the memory allows it, else copies."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from gradcli.engine.dtypes import Array, Size
from gradcli.engine.dtypes import dtype as ElementType  # noqa: N812  (arguments are named dtype)
from gradcli.engine.graph import Node
from gradcli.engine.ops.copies import clone
from gradcli.engine.ops.kernels import laid_out, summed_to
from gradcli.engine.ops.operands import axes, axis, sizes
from gradcli.engine.recording import record, record_view
from gradcli.engine.tensor import Tensor

NOT_VIEWABLE = (
    "view size is not compatible with input tensor's size and stride (at least one dimension "
    "spans across two contiguous "
    "subspaces). Use .reshape(...) instead."
)


class _Reshaped(Node):
    """The cotangent in the shape of the input."""

    _on_arrays = True
    shape: tuple[int, ...]

    def _vjp(self, g: Any) -> Any:
        return g.reshape(self.shape)


class ViewBackward0(_Reshaped):
    """Of `view`, and of `reshape` of contiguous memory."""


class ReshapeAliasBackward0(_Reshaped):
    """Of a `reshape` that is a view of memory that is not contiguous."""


class UnsafeViewBackward0(_Reshaped):
    """Of the view of a fresh copy, in `reshape` and `matmul`."""


class UnsqueezeBackward0(_Reshaped):
    """The new axis of length 1 is dropped."""


class SqueezeBackward0(_Reshaped):
    """All axes of length 1 are put back."""


class SqueezeBackward1(_Reshaped):
    """The squeezed axis is put back."""


class SqueezeBackward3(SqueezeBackward0):
    """Of `squeeze_`."""


class SqueezeBackward4(_Reshaped):
    """The axis that `matmul` adds to a vector, or that `squeeze_` took away, is put back."""


class UnsqueezeBackward1(UnsqueezeBackward0):
    """Of `unsqueeze_`."""


SqueezeBackward0._in_place, SqueezeBackward1._in_place = SqueezeBackward3, SqueezeBackward4
UnsqueezeBackward0._in_place = UnsqueezeBackward1


class ExpandBackward0(Node):
    """The cotangent is summed over the axes that were expanded."""

    _on_arrays = True
    shape: tuple[int, ...]

    def _vjp(self, g: Any) -> Any:
        return sum_to(g, self.shape)


class PermuteBackward0(Node):
    """The inverse permutation."""

    _on_arrays = True
    inverse: tuple[int, ...]

    def _vjp(self, g: Any) -> Any:
        return permute(g, self.inverse) if isinstance(g, Tensor) else g.transpose(self.inverse)


class TransposeBackward0(Node):
    """The two axes are swapped back."""

    _on_arrays = True
    first: int
    second: int

    def _vjp(self, g: Any) -> Any:
        if isinstance(g, Tensor):
            return transpose(g, self.first, self.second)
        return g.swapaxes(self.first, self.second) if g.ndim else g


class TBackward0(Node):
    """The matrix is transposed back."""

    _on_arrays = True

    def _vjp(self, g: Any) -> Any:
        return t(g) if isinstance(g, Tensor) else g.T


class TransposeBackward1(TransposeBackward0):
    """Of `transpose_`."""


class TBackward1(TBackward0):
    """Of `t_`."""


TransposeBackward0._in_place, TBackward0._in_place = TransposeBackward1, TBackward1


class AliasBackward0(Node):
    """The cotangent itself."""

    _on_arrays = True

    def _vjp(self, g: Any) -> Any:
        return g


def sum_to(input: Any, shape: tuple[int, ...]) -> Any:
    """Return a tensor or an array summed to `shape`, from which it was broadcast: the adjoint of broadcasting."""
    if not isinstance(input, Tensor):
        return summed_to(input, shape)
    have = input._data.shape
    if have == shape:
        return input
    lead = len(have) - len(shape)
    dims = [*range(lead), *(lead + i for i, size in enumerate(shape) if size == 1 and have[lead + i] != 1)]
    summed = input.sum(dims, keepdim=True) if dims else input
    return summed.reshape(shape) if lead else summed


def resolved(shape: Sequence[int], count: int) -> tuple[int, ...]:
    """Return a shape for `count` elements, with its -1 replaced by the length that is left.

    Raises:
        RuntimeError: the shape does not have `count` elements, or has several -1.
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
    """Return the array in another shape on the same memory, or None where this needs a copy."""
    result = array.reshape(shape)
    return result if array.flags.c_contiguous or not array.size or np.may_share_memory(result, array) else None


def _as_shape(kind: type[_Reshaped], input: Tensor, shape: tuple[int, ...], array: Array) -> Tensor:
    return record_view(kind, array, input, lambda root: view(root, shape), shape=input._data.shape)


def view(input: Tensor, *shape: Any) -> Tensor:
    """Return the same memory in another shape; with an element type, the memory read as this type (not recorded).

    Raises:
        RuntimeError: the shape has another number of elements, or the strides do not allow a view.
    """
    if len(shape) == 1 and isinstance(shape[0], ElementType):
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
        kind = ViewBackward0 if input._data.flags.c_contiguous else ReshapeAliasBackward0
        return _as_shape(kind, input, wanted, array)
    copied = clone(input)
    return record(UnsafeViewBackward0, copied._data.reshape(wanted), (copied,), shape=input._data.shape)


def flatten(input: Tensor, start_dim: int = 0, end_dim: int = -1) -> Tensor:
    """Return the tensor with the axes from start_dim to end_dim merged into one."""
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
    known = math.prod(size for size in sizes if size != -1)
    if known != shape[spot] if -1 not in sizes else not known or shape[spot] % known:
        raise RuntimeError(
            f"unflatten: Provided sizes {list(sizes)} don't multiply up to the size of dim {dim} ({shape[spot]}) in "
            "the input tensor"
        )
    return view(input, *shape[:spot], *resolved(sizes, shape[spot]), *shape[spot + 1 :])


def ravel(input: Tensor) -> Tensor:
    """Return all elements as a vector; a view where that is possible."""
    return reshape(input, -1)


def view_as(input: Tensor, other: Tensor) -> Tensor:
    """Return a view in the shape of another tensor; see `view`."""
    return view(input, *other._data.shape)


def reshape_as(input: Tensor, other: Tensor) -> Tensor:
    """Return the elements in the shape of another tensor."""
    return reshape(input, *other._data.shape)


def unsqueeze(input: Tensor, dim: int) -> Tensor:
    """Return a view with a new axis of length 1 at `dim`."""
    spot = axis(dim, input._data.ndim + 1)
    array = np.expand_dims(input._data, spot)
    return record_view(UnsqueezeBackward0, array, input, lambda root: unsqueeze(root, spot), shape=input._data.shape)


def squeeze(input: Tensor, dim: Any = None) -> Tensor:
    """Return a view without axes of length 1: all of them, or those in `dim` that have it."""
    shape = input._data.shape
    named = range(len(shape)) if dim is None else axes(dim, len(shape))
    gone = tuple(place for place in named if len(shape) and shape[place] == 1)
    kind = SqueezeBackward0 if dim is None else SqueezeBackward1
    return record_view(kind, input._data.squeeze(gone), input, lambda root: squeeze(root, dim), shape=shape)


def expand(input: Tensor, *shape: Any) -> Tensor:
    """Return a view, broadcast to a shape; -1 keeps the length of an axis.

    Raises:
        RuntimeError: the tensor does not broadcast to the shape.
    """
    wanted, have = sizes(shape), input._data.shape
    lead = len(wanted) - len(have)
    if lead < 0:
        raise RuntimeError(
            f"expand: the number of sizes provided ({len(wanted)}) must be greater or equal to the "
            "number of dimensions "
            f"in the tensor ({len(have)})"
        )
    full = tuple(have[i - lead] if size == -1 and i >= lead else size for i, size in enumerate(wanted))
    if min(full[:lead], default=0) < 0:
        raise RuntimeError(f"expand: -1 is not allowed in a new, leading dimension: sizes={list(wanted)}")
    for place, (size, old) in enumerate(zip(full[lead:], have, strict=True)):
        if old not in (1, size):
            raise RuntimeError(
                f"The expanded size of the tensor ({size}) must match the existing size ({old}) at non-singleton "
                f"dimension {place + lead}.  Target sizes: {list(full)}.  Tensor sizes: {list(have)}"
            )
    return record_view(ExpandBackward0, laid_out(input._data, full), input, lambda root: expand(root, full), shape=have)


def expand_as(input: Tensor, other: Tensor) -> Tensor:
    """Return the tensor expanded to the shape of another; see `expand`."""
    return expand(input, *other._data.shape)


def broadcast_to(input: Tensor, *shape: Any) -> Tensor:
    """Return the tensor expanded to a shape; see `expand`."""
    return expand(input, *sizes(shape))


def permute(input: Tensor, *order: Any, dims: Any = None) -> Tensor:
    """Return a view with the axes in another order.

    Raises:
        RuntimeError: the order does not name every axis exactly once.
    """
    order = tuple(axis(place, input._data.ndim) for place in sizes(order if dims is None else (dims,)))
    if len(set(order)) != len(order):
        raise RuntimeError("permute(): duplicate dims are not allowed.")
    if len(order) != input._data.ndim:
        raise RuntimeError(
            f"permute(sparse_coo): number of dimensions in the tensor input does not match the length of the desired "
            f"ordering of dimensions i.e. input.dim() = {input._data.ndim} is not equal to len(dims) = {len(order)}"
        )
    inverse = tuple(int(place) for place in np.argsort(order)) if order else ()
    return record_view(
        PermuteBackward0, input._data.transpose(order), input, lambda root: permute(root, order), inverse=inverse
    )


def transpose(input: Tensor, dim0: int, dim1: int) -> Tensor:
    """Return a view with two axes swapped."""
    first, second = axis(dim0, input._data.ndim), axis(dim1, input._data.ndim)
    array = input._data.swapaxes(first, second) if input._data.ndim else input._data
    return record_view(
        TransposeBackward0, array, input, lambda root: transpose(root, first, second), first=first, second=second
    )


def t(input: Tensor) -> Tensor:
    """Return a view of a matrix with its axes swapped; a vector and a 0-d tensor keep theirs.

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
    """Return a view with the last two axes swapped (the attribute `mT`).

    Raises:
        RuntimeError: the tensor is a vector.
    """
    if input._data.ndim == 1:
        raise RuntimeError("tensor.mT is only supported on matrices or batches of matrices. Got 1-D tensor.")
    return transpose(input, -2, -1) if input._data.ndim else input


def movedim(input: Tensor, source: Any, destination: Any) -> Tensor:
    """Return a view with the axes `source` moved to the places `destination`; the others keep their order."""
    ndim = input._data.ndim
    start, goal = axes(source, ndim), axes(destination, ndim)
    order = [place for place in range(ndim) if place not in start]
    for to, place in sorted(zip(goal, start, strict=True)):
        order.insert(to, place)
    return permute(input, order)


def alias(input: Tensor) -> Tensor:
    """Return a view of the whole tensor, recorded as AliasBackward0."""
    return record_view(AliasBackward0, input._data, input, alias)


def size(input: Tensor, dim: int | None = None) -> Any:
    """Return the shape as a `Size`, or the length of one axis."""
    return Size(input._data.shape) if dim is None else input._data.shape[axis(dim, input._data.ndim)]
