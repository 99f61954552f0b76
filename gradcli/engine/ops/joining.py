"""Joining and splitting tensors, sorting, diagonal matrices, grids, Kronecker products, differences and slopes."""

from __future__ import annotations

import functools
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from gradcli.engine.dtypes import get_default_dtype
from gradcli.engine.graph import Node
from gradcli.engine.module_name import PRINTED_MODULE
from gradcli.engine.ops.operands import arrays, axes, axis, numpy_names, require_axes
from gradcli.engine.ops.parts import diagonal, narrow, place, select
from gradcli.engine.ops.reduction import ValuesIndices, named_result
from gradcli.engine.ops.shape import expand, reshape, unsqueeze
from gradcli.engine.recording import record
from gradcli.engine.tensor import Tensor, from_array

SORT, TOPK = named_result("sort"), named_result("topk")


class CatBackward0(Node):
    """Each tensor gets its slice of the cotangent."""

    dim: int
    lengths: tuple[int, ...]

    def _vjp(self, g: Tensor) -> Any:
        starts = np.cumsum((0, *self.lengths)).tolist()
        return tuple(
            narrow(g, self.dim, starts[i], length) if self._needs(i) else None for i, length in enumerate(self.lengths)
        )


class StackBackward0(Node):
    """Each tensor gets its index of the cotangent."""

    dim: int

    def _vjp(self, g: Tensor) -> Any:
        return tuple(select(g, self.dim, i) if self._needs(i) else None for i in range(len(self._edges)))


class SortBackward0(Node):
    """The cotangent is scattered to the places that the elements came from."""

    _saved_names = ("indices",)
    shape: tuple[int, ...]
    dim: int

    def _vjp(self, g: Tensor) -> Any:
        (indices,) = self._unpack()
        return g.new_zeros(self.shape).scatter_add(self.dim, indices, g) if self.shape else g


class TopkBackward0(SortBackward0):
    """As SortBackward0; elements that were not returned get 0."""


def _mismatch(shapes: list[tuple[int, ...]], spot: int) -> str:
    """Say which of the tensors to join does not fit the first."""
    first = shapes[0]
    for number, shape in enumerate(shapes):
        if len(shape) != len(first):
            return f"Tensors must have same number of dimensions: got {len(first)} and {len(shape)}"
        for dim, (expected, size) in enumerate(zip(first, shape, strict=True)):
            if size != expected and dim != spot:
                return (
                    f"Sizes of tensors must match except in dimension {spot}. Expected size {expected} but got size "
                    f"{size} for tensor number {number} in the list."
                )
    return f"Sizes of tensors must match except in dimension {spot}"


@numpy_names
def cat(tensors: Sequence[Tensor], dim: int = 0) -> Tensor:
    """Return tensors joined along an existing axis; tensors of shape [0] are left out.

    Raises:
        ValueError: there are no tensors.
        RuntimeError: they differ along another axis.
    """
    if isinstance(tensors, Tensor):
        raise TypeError("cat(): argument 'tensors' (position 1) must be tuple of Tensors, not Tensor")
    pieces = list(tensors)
    if not pieces:
        raise ValueError(f"{PRINTED_MODULE}.cat(): expected a non-empty list of Tensors")
    kept = [piece for piece in pieces if piece._data.shape != (0,)] or pieces[:1]
    spot = axis(dim, kept[0]._data.ndim)
    try:
        array = np.concatenate(arrays(*kept), axis=spot)
    except ValueError:
        raise RuntimeError(_mismatch([piece._data.shape for piece in kept], spot)) from None
    lengths = tuple(piece._data.shape[spot] for piece in kept)
    return record(CatBackward0, array, kept, dim=spot, lengths=lengths)


@numpy_names
def stack(tensors: Sequence[Tensor], dim: int = 0) -> Tensor:
    """Return tensors of one shape joined along a new axis.

    Raises:
        RuntimeError: there are no tensors, or their shapes differ.
    """
    pieces = list(tensors)
    if not pieces:
        raise RuntimeError("stack expects a non-empty TensorList")
    for number, piece in enumerate(pieces):
        if piece._data.shape != pieces[0]._data.shape:
            raise RuntimeError(
                f"stack expects each tensor to be equal size, but got {list(pieces[0]._data.shape)} at entry 0 and "
                f"{list(piece._data.shape)} at entry {number}"
            )
    spot = axis(dim, pieces[0]._data.ndim + 1)
    return record(StackBackward0, np.stack(arrays(*pieces), axis=spot), pieces, dim=spot)


def hstack(tensors: Sequence[Tensor]) -> Tensor:
    """Return tensors joined along their second axis; vectors and 0-d tensors along the first."""
    pieces = [reshape(piece, 1) if not piece._data.ndim else piece for piece in tensors]
    return cat(pieces, 0 if pieces[0]._data.ndim == 1 else 1)


def vstack(tensors: Sequence[Tensor]) -> Tensor:
    """Return tensors joined along their first axis; a vector is one row."""
    return cat([reshape(piece, 1, -1) if piece._data.ndim < 2 else piece for piece in tensors], 0)


def argsort(input: Tensor, dim: int = -1, descending: bool = False, stable: bool = False) -> Tensor:  # noqa: ARG001
    """Return the indices that sort an axis (int64); always stable, NaN counts as the largest."""
    if input._data.dtype.kind == "c":
        raise RuntimeError("Sort does not support complex dtypes on CPU")
    if not input._data.ndim:
        return from_array(np.zeros((), dtype=np.int64))
    spot = axis(dim, input._data.ndim)
    if not descending:
        return from_array(np.argsort(input._data, axis=spot, kind="stable"))
    backwards = np.flip(np.argsort(np.flip(input._data, spot), axis=spot, kind="stable"), spot)
    return from_array(input._data.shape[spot] - 1 - backwards)


def sort(input: Tensor, dim: int = -1, descending: bool = False, stable: bool = False) -> ValuesIndices:
    """Return (values, indices) of an axis in order; always stable, NaN counts as the largest."""
    order = argsort(input, dim, descending, stable)
    return _picked(SortBackward0, SORT, input, order, axis(dim, input._data.ndim))


def _picked(kind: type[Node], result: type[ValuesIndices], input: Tensor, order: Tensor, spot: int) -> ValuesIndices:
    array = np.take_along_axis(input._data, order._data, spot) if input._data.ndim else input._data.copy()
    return result(record(kind, array, (input,), (order,), shape=input._data.shape, dim=spot), order)


def topk(input: Tensor, k: int, dim: int = -1, largest: bool = True, sorted: bool = True) -> ValuesIndices:  # noqa: ARG001
    """Return (values, indices) of the k largest (or smallest) elements of an axis, always in order.

    Raises:
        RuntimeError: the axis has fewer than k elements.
    """
    spot = axis(dim, input._data.ndim)
    if not 0 <= k <= (input._data.shape[spot] if input._data.ndim else 1):
        raise RuntimeError("selected index k out of range")
    if input._data.dtype.kind == "c":
        raise RuntimeError("topk does not support complex dtypes on CPU")
    order = argsort(input, spot, descending=largest)
    if not input._data.ndim:
        return _picked(TopkBackward0, TOPK, input, order, spot)
    return _picked(TopkBackward0, TOPK, input, narrow(order, spot, 0, k), spot)


def diag_embed(input: Tensor, offset: int = 0) -> Tensor:
    """Return matrices [..., n + |offset|, n + |offset|] with [..., n] on a diagonal, and zeros elsewhere."""
    size = input._data.shape[-1] + (offset if offset >= 0 else -offset)

    def region(array: Any) -> Any:
        lines = np.diagonal(array, offset, -2, -1)
        lines.flags.writeable = True
        return lines

    return place(input, (*input._data.shape[:-1], size, size), region, lambda root: diagonal(root, offset, -2, -1))


def diag(input: Tensor, diagonal: int = 0) -> Tensor:
    """Return the matrix with a vector on a diagonal, or a copy of a diagonal of a matrix.

    Raises:
        RuntimeError: the tensor is neither a vector nor a matrix.
    """
    require_axes("diag", input)
    if input._data.ndim > 2:
        raise RuntimeError(f"diag(): Supports 1D or 2D tensors. Got {input._data.ndim}D")
    if input._data.ndim == 1:
        return diag_embed(input, diagonal)
    return _diagonal_copy(input, diagonal)


def _diagonal_copy(input: Tensor, offset: int) -> Tensor:
    return diagonal(input, offset).clone()


def repeat_interleave(input: Tensor, repeats: Any, dim: int | None = None) -> Tensor:
    """Return each element (of the flattened tensor; with `dim`, each slice) repeated several times in a row."""
    source, spot = (reshape(input, -1), 0) if dim is None else (input, axis(dim, input._data.ndim))
    count = repeats._data if isinstance(repeats, Tensor) else operator.index(repeats)
    index = np.repeat(np.arange(source._data.shape[spot]), count)
    return source.index_select(spot, from_array(index))


def meshgrid(*tensors: Any, indexing: str = "ij") -> tuple[Tensor, ...]:
    """Return vectors as views of a common grid: vector i varies along axis i ("xy": the first two axes swapped)."""
    given = list(tensors[0]) if len(tensors) == 1 and isinstance(tensors[0], (list, tuple)) else list(tensors)
    if any(entry._data.ndim > 1 for entry in given):
        wrong = next(entry for entry in given if entry._data.ndim > 1)
        raise RuntimeError(f"{PRINTED_MODULE}.meshgrid: Expected 0D or 1D tensor in the tensor list but got: {wrong}")
    if indexing == "xy" and len(given) > 1:
        swapped = meshgrid(given[1], given[0], *given[2:])
        return (swapped[1], swapped[0], *swapped[2:])
    shape = [entry._data.size for entry in given]
    return tuple(
        expand(reshape(entry, *[-1 if i == k else 1 for k in range(len(given))]), shape)
        for i, entry in enumerate(given)
    )


def kron(input: Tensor, other: Tensor) -> Tensor:
    """Return the Kronecker product."""
    ndim = max(input._data.ndim, other._data.ndim)
    a = input[(None,) * (ndim - input._data.ndim)] if input._data.ndim < ndim else input
    b = other[(None,) * (ndim - other._data.ndim)] if other._data.ndim < ndim else other
    for spot in range(ndim):
        a, b = unsqueeze(a, 2 * spot + 1), unsqueeze(b, 2 * spot)
    shape = [a._data.shape[2 * i] * b._data.shape[2 * i + 1] for i in range(ndim)]
    return reshape(a * b, shape)


def diff(input: Tensor, n: int = 1, dim: int = -1) -> Tensor:
    """Return the differences of neighbours along an axis, taken n times; each time the axis loses one element."""
    require_axes("diff", input)
    spot = axis(dim, input._data.ndim)
    for _ in range(n):
        size = input._data.shape[spot]
        if size:
            input = narrow(input, spot, 1, size - 1) - narrow(input, spot, 0, size - 1)
    return input


def gradient(input: Tensor, *, spacing: Any = 1, dim: Any = None, edge_order: int = 1) -> tuple[Tensor, ...]:
    """Estimate derivatives along axes by differences of neighbours, central ones but at the ends.

    Args:
        input: the values.
        spacing: the distance of neighbours: a number, one for each axis, or a vector of coordinates for each axis.
        dim: the axes; all unless given.
        edge_order: the order of accuracy at the ends, 1 or 2.

    Raises:
        RuntimeError: an axis is too short, or the spacings are not one for each axis.
    """
    places = tuple(range(input._data.ndim)) if dim is None else axes(dim, input._data.ndim)
    steps = list(spacing) if isinstance(spacing, Sequence) else [spacing] * len(places)
    if len(steps) != len(places):
        raise RuntimeError(
            "torch.gradient expected spacing to be unspecified, a scalar, or a list of length equal to the number of "
            f"axes, {len(places)}, but got a list of length {len(steps)}"
        )
    if edge_order not in (1, 2):
        raise RuntimeError("torch.gradient only supports edge_order=1 and edge_order=2.")
    for spot in places:
        if input._data.shape[spot] < edge_order + 1:
            raise RuntimeError("torch.gradient expected each dimension size to be at least edge_order+1")
    return tuple(_along(input, spot, step, edge_order) for spot, step in zip(places, steps, strict=True))


def _along(input: Tensor, spot: int, step: Any, edge_order: int) -> Tensor:
    size = input._data.shape[spot]
    gaps = np.diff(step._data) if isinstance(step, Tensor) and step._data.ndim else np.full(size - 1, float(step))
    kind = input._data.dtype if input._data.dtype.kind in "fc" else get_default_dtype().numpy

    def summed(start: int, length: int, *weights: Any) -> Tensor:
        """Return the sum of the slices from start on, from start + 1 on..., times their weights."""
        shape = (-1, *(1,) * (input._data.ndim - spot - 1))
        terms = [
            input.narrow(spot, start + number, length) * from_array(np.atleast_1d(each).astype(kind).reshape(shape))
            for number, each in enumerate(weights)
            if np.any(each)
        ]
        return functools.reduce(lambda total, term: total + term, terms)

    left, right = gaps[:-1], gaps[1:]
    first = _at_end(*gaps[:edge_order])
    last = tuple(-each for each in _at_end(*gaps[::-1][:edge_order])[::-1])
    pieces = [summed(0, 1, *first)]
    if size > 2:
        inner = -right / (left * (left + right)), (right - left) / (left * right), left / (right * (left + right))
        pieces.append(summed(0, size - 2, *inner))
    return cat([*pieces, summed(size - edge_order - 1, 1, *last)], spot)


def _at_end(near: float, far: float | None = None) -> tuple[float, ...]:
    """Return the weights of two or three values for the derivative at the first: that of the parabola through them."""
    if far is None:
        return -1 / near, 1 / near
    whole = near + far
    return -(near + whole) / (near * whole), whole / (near * far), -near / (far * whole)
