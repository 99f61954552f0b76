"""Reductions over axes: sums, means, products, extremes, and their positions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from gradcli.engine.dtypes import BY_NUMPY, Array, numpy_dtype
from gradcli.engine.graph import Node
from gradcli.engine.module_name import PRINTED_MODULE
from gradcli.engine.ops.generic import over, restored
from gradcli.engine.ops.operands import axes, axis, conj, numpy_names, refuse_kinds
from gradcli.engine.recording import record
from gradcli.engine.tensor import Tensor, from_array

Dims = int | Sequence[int] | None


class ValuesIndices(NamedTuple):
    """What a reduction along one axis returns: the values, and their positions along the axis (int64)."""

    values: Tensor
    indices: Tensor

    def __repr__(self) -> str:
        name = type(self).__name__
        return f"{PRINTED_MODULE}.return_types.{name}(\nvalues={self.values!r},\nindices={self.indices!r})"


def named_result(name: str) -> type[ValuesIndices]:
    """Return the subclass of ValuesIndices that prints as `return_types.<name>`."""
    return type(name, (ValuesIndices,), {"__slots__": (), "__module__": __name__})


MAX, MIN = named_result("max"), named_result("min")


class SumBackward0(Node):
    """The cotangent, expanded to the input."""

    shape: tuple[int, ...]
    dims: tuple[int, ...]
    _on_arrays = True

    def _vjp(self, g: Any) -> Any:
        return restored(g, self.shape, self.dims)


class SumBackward1(SumBackward0):
    """As SumBackward0, where axes were named."""


class NansumBackward0(Node):
    """The cotangent, expanded to the input, and 0 where an element is NaN."""

    _saved_names = ("self",)
    dims: tuple[int, ...]

    def _vjp(self, g: Tensor) -> Any:
        (x,) = self._unpack()
        return restored(g, x._data.shape, self.dims).masked_fill(x.isnan(), 0)


class MeanBackward0(Node):
    """The cotangent divided by the number of elements, expanded to the input."""

    shape: tuple[int, ...]
    dims: tuple[int, ...]
    count: int
    _on_arrays = True

    def _vjp(self, g: Any) -> Any:
        return over(restored(g, self.shape, self.dims), self.count)


class MeanBackward1(MeanBackward0):
    """As MeanBackward0, where axes were named."""


class ProdBackward0(Node):
    """d prod = sum of (prod / x_i) dx_i; where an element is 0, products of the others are multiplied instead."""

    _saved_names = ("self", "result")
    dims: tuple[int, ...]

    def _vjp(self, g: Tensor) -> Any:
        x, y = self._unpack()
        shape = x._data.shape
        if not shape:
            return g
        if not bool((x._data == 0).any()):
            return restored(g * conj(y), shape, self.dims) / conj(x)
        return restored(g, shape, self.dims) * conj(_others(x, self.dims))


class ProdBackward1(ProdBackward0):
    """As ProdBackward0, along one axis."""


def _others(x: Tensor, dims: tuple[int, ...]) -> Tensor:
    """Return, for every element, the product of the others along the reduced axes."""
    shape = x._data.shape
    rest = [place for place in range(len(shape)) if place not in dims]
    order = rest + list(dims)
    flat = x.permute(order).reshape([shape[place] for place in rest] + [-1])
    count = flat._data.shape[-1]
    ones = from_array(np.ones_like(flat._data[..., :1]))
    left, right = ones, ones
    before, after = [], []
    for place in range(count):
        before.append(left)
        after.append(right)
        left = left * flat[..., place : place + 1]
        right = right * flat[..., count - 1 - place : count - place]
    products = before[0].cat([a * b for a, b in zip(before, reversed(after), strict=True)], -1)
    back = [order.index(place) for place in range(len(shape))]
    return products.reshape([shape[place] for place in order]).permute(back)


class ExtremeBackward(Node):
    """Elements equal to the result share the cotangent equally; NaN equals NaN."""

    _saved_names = ("self", "result")
    dims: tuple[int, ...]

    def _vjp(self, g: Tensor) -> Any:
        whole, hits, count = self._shared(g, of_nan=True)
        return (whole / count).masked_fill(~hits, 0)

    def _shared(self, g: Tensor, *, of_nan: bool) -> tuple[Tensor, Tensor, Tensor]:
        """Return the cotangent in the input's shape, where the input equals the result, and how often it does."""
        x, y = self._unpack()
        peak = restored(y.detach(), x._data.shape, self.dims)
        hits = x._data == peak._data
        if of_nan:
            hits = hits | (np.isnan(x._data) & np.isnan(peak._data))
        count = hits.sum(axis=self.dims, keepdims=True).astype(x._data.dtype)
        return restored(g, x._data.shape, self.dims), from_array(hits), from_array(count)


class MaxBackward1(ExtremeBackward):
    """Of `max` of all elements."""


class MinBackward1(ExtremeBackward):
    """Of `min` of all elements."""


class AmaxBackward0(ExtremeBackward):
    """Of `amax`: NaN equals nothing, so that where the result is NaN, every gradient is."""

    def _vjp(self, g: Tensor) -> Any:
        whole, hits, count = self._shared(g, of_nan=False)
        return whole * hits / count


class AminBackward0(AmaxBackward0):
    """Of `amin`, likewise."""


class PickBackward(Node):
    """The element at the returned index gets the whole cotangent."""

    _saved_names = ("indices",)
    shape: tuple[int, ...]
    dim: int
    keepdim: bool

    def _vjp(self, g: Tensor) -> Any:
        (indices,) = self._unpack()
        if not self.shape:
            return g
        if not self.keepdim:
            g, indices = g.unsqueeze(self.dim), indices.unsqueeze(self.dim)
        return g.new_zeros(self.shape).scatter_add(self.dim, indices, g)


class MaxBackward0(PickBackward):
    """Of `max` along an axis: of equal elements, the first gets the cotangent."""


class MinBackward0(PickBackward):
    """Of `min` along an axis: of equal elements, the first gets the cotangent."""


@numpy_names
def sum(input: Tensor, dim: Dims = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    """Return the sum over some axes, or over all; booleans and integers are summed in int64 unless a dtype is given."""
    x = input._data
    dims = axes(dim, x.ndim)
    wide = numpy_dtype(dtype) if dtype is not None else np.dtype(np.int64) if x.dtype.kind in "biu" else x.dtype
    array = x.sum(axis=dims, keepdims=keepdim, dtype=wide)
    return record(SumBackward0 if dim is None else SumBackward1, array, (input,), shape=x.shape, dims=dims)


@numpy_names
def nansum(input: Tensor, dim: Dims = None, keepdim: bool = False) -> Tensor:
    """Return the sum over some axes, or over all, with NaN counted as 0."""
    dims = axes(dim, input._data.ndim)
    array = np.nansum(input._data, axis=dims, keepdims=keepdim)
    return record(NansumBackward0, array, (input,), (input,), dims=dims)


def _require_real_numbers(name: str, x: Array) -> None:
    if x.dtype.kind not in "fc" and name != "mean":
        raise RuntimeError(f"{name} only support floating point and complex dtypes")
    if x.dtype.kind not in "fc":
        raise RuntimeError(
            f"{name}(): could not infer output dtype. Input dtype must be either a floating point or complex dtype. "
            f"Got: {BY_NUMPY[x.dtype].letter}"
        )


@numpy_names
def mean(input: Tensor, dim: Dims = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    """Return the mean over some axes, or over all.

    Raises:
        RuntimeError: the elements are integers or booleans, and no floating point dtype is given.
    """
    if dtype is not None:
        input = input.to(dtype=dtype)
    x = input._data
    _require_real_numbers("mean", x)
    dims = axes(dim, x.ndim)
    count = math.prod(x.shape[place] for place in dims)
    with np.errstate(all="ignore"):
        array = x.sum(axis=dims, keepdims=keepdim) / x.dtype.type(count)
    kind = MeanBackward0 if dim is None else MeanBackward1
    return record(kind, array, (input,), shape=x.shape, dims=dims, count=count)


@numpy_names
def prod(input: Tensor, dim: int | None = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    """Return the product along one axis, or of all elements; integers are multiplied in int64."""
    input = input if dtype is None else input.to(dtype=dtype)
    dims = axes(dim, input._data.ndim)
    x = input._data.astype(np.int64) if input._data.dtype.kind in "biu" else input._data
    array = x.prod(axis=dims, keepdims=keepdim)
    kind = ProdBackward0 if dim is None else ProdBackward1
    return record(kind, array, (input,), (input,), keep=True, dims=dims)


def _pick(
    kind: type[Node], result: type[ValuesIndices], position: Any, input: Tensor, dim: int, keepdim: bool
) -> ValuesIndices:
    x, place = input._data, axis(dim, input._data.ndim)
    if not x.ndim:
        indices = np.zeros((), dtype=np.int64)
        return result(record(kind, x.copy(), (input,), (None,), shape=(), dim=0, keepdim=True), from_array(indices))
    _require_elements(result.__name__, x, (place,))
    where = np.expand_dims(np.asarray(position(x, axis=place)), place)
    values = np.take_along_axis(x, where, place)
    if not keepdim:
        where, values = where.squeeze(place), values.squeeze(place)
    indices_tensor = from_array(where)
    saved = (indices_tensor,)
    return result(record(kind, values, (input,), saved, shape=x.shape, dim=place, keepdim=keepdim), indices_tensor)


@numpy_names
def max(input: Tensor, dim: Any = None, keepdim: bool = False) -> Any:
    """Return the largest element; (values, indices) along an axis; with a tensor as `dim`, `maximum` of the two."""
    if isinstance(dim, Tensor):
        return input.maximum(dim)
    refuse_kinds("max", input._data, "c")
    if dim is None:
        _require_some("max", input._data)
        return record(MaxBackward1, input._data.max(), (input,), (input,), keep=True, dims=axes(None, input._data.ndim))
    return _pick(MaxBackward0, MAX, np.argmax, input, dim, keepdim)


@numpy_names
def min(input: Tensor, dim: Any = None, keepdim: bool = False) -> Any:
    """Return the smallest element; (values, indices) along an axis; with a tensor as `dim`, `minimum` of the two."""
    if isinstance(dim, Tensor):
        return input.minimum(dim)
    refuse_kinds("min", input._data, "c")
    if dim is None:
        _require_some("min", input._data)
        return record(MinBackward1, input._data.min(), (input,), (input,), keep=True, dims=axes(None, input._data.ndim))
    return _pick(MinBackward0, MIN, np.argmin, input, dim, keepdim)


def _require_elements(name: str, x: Array, dims: Sequence[int]) -> None:
    for place in dims:
        if x.shape[place] == 0:
            raise IndexError(f"{name}(): Expected reduction dim {place} to have non-zero size.")


def _require_some(name: str, x: Array) -> None:
    if not x.size:
        raise RuntimeError(
            f"{name}(): Expected reduction dim to be specified for input.numel() == 0. Specify the reduction dim with "
            "the 'dim' argument."
        )


@numpy_names
def amax(input: Tensor, dim: Dims = None, keepdim: bool = False) -> Tensor:
    """Return the maximum over some axes, or over all; equal maxima share the gradient."""
    refuse_kinds("amax", input._data, "c")
    if dim is None:
        _require_some("amax", input._data)
    dims = axes(dim, input._data.ndim)
    _require_elements("amax", input._data, dims)
    array = input._data.max(axis=dims, keepdims=keepdim)
    return record(AmaxBackward0, array, (input,), (input,), keep=True, dims=dims)


@numpy_names
def amin(input: Tensor, dim: Dims = None, keepdim: bool = False) -> Tensor:
    """Return the minimum over some axes, or over all; equal minima share the gradient."""
    refuse_kinds("amin", input._data, "c")
    if dim is None:
        _require_some("amin", input._data)
    dims = axes(dim, input._data.ndim)
    _require_elements("amin", input._data, dims)
    array = input._data.min(axis=dims, keepdims=keepdim)
    return record(AminBackward0, array, (input,), (input,), keep=True, dims=dims)


def _position(name: str, function: Any, input: Tensor, dim: int | None, keepdim: bool) -> Tensor:
    place = None if dim is None else axis(dim, input._data.ndim)
    if input._data.dtype.kind == "c":
        raise RuntimeError(f"{name}(): does not support complex input")
    if place is None and not input._data.size:
        raise IndexError(f"{name}(): Expected reduction dim to be specified for input.numel() == 0.")
    if place is not None and input._data.ndim:
        _require_elements(name, input._data, (place,))
    array = input._data if input._data.ndim else input._data.reshape(1)
    found = function(array, axis=place, keepdims=keepdim)
    return from_array(found if input._data.ndim else np.asarray(found).reshape(()))


@numpy_names
def argmax(input: Tensor, dim: int | None = None, keepdim: bool = False) -> Tensor:
    """Return the index of the first maximum along an axis, or in the flattened tensor (int64)."""
    return _position("argmax", np.argmax, input, dim, keepdim)


@numpy_names
def argmin(input: Tensor, dim: int | None = None, keepdim: bool = False) -> Tensor:
    """Return the index of the first minimum along an axis, or in the flattened tensor (int64)."""
    return _position("argmin", np.argmin, input, dim, keepdim)


@numpy_names
def all(input: Tensor, dim: Dims = None, keepdim: bool = False) -> Tensor:
    """Return whether all elements are true (not 0), over some axes or all."""
    return _truths(input, input._data.astype(np.bool_).all(axis=axes(dim, input._data.ndim), keepdims=keepdim))


@numpy_names
def any(input: Tensor, dim: Dims = None, keepdim: bool = False) -> Tensor:
    """Return whether any element is true (not 0), over some axes or all."""
    return _truths(input, input._data.astype(np.bool_).any(axis=axes(dim, input._data.ndim), keepdims=keepdim))


def _truths(input: Tensor, found: Any) -> Tensor:
    """Return booleans; of bytes bytes, as in PyTorch."""
    return from_array(np.asarray(found, dtype=np.uint8 if input._data.dtype == np.uint8 else np.bool_))


def count_nonzero(input: Tensor, dim: Dims = None) -> Tensor:
    """Return the number of elements that are not 0, over some axes or all (int64)."""
    return from_array(np.count_nonzero(input._data, axis=axes(dim, input._data.ndim)))
