"""Variances, norms, and running sums and products."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gradcli.engine.dtypes import BY_NUMPY, Array, real_of
from gradcli.engine.graph import Node
from gradcli.engine.ops.generic import restored
from gradcli.engine.ops.operands import axes, axis, conj, floating, numpy_names
from gradcli.engine.ops.reduction import Dims, _require_real_numbers
from gradcli.engine.recording import record
from gradcli.engine.tensor import Tensor, from_array


class VarBackward0(Node):
    """d var = 2 (x - mean) / (n - correction) dx."""

    _saved_names = ("self",)
    dims: tuple[int, ...]
    divisor: float

    def _vjp(self, g: Tensor) -> Any:
        (x,) = self._unpack()
        centred = x - x.mean(self.dims, keepdim=True) if self.dims else x - x
        return restored(g, x._data.shape, self.dims) * centred * _ratio(2.0, self.divisor)


class StdBackward0(Node):
    """d std = (x - mean) / ((n - correction) std) dx, 0 where std is 0."""

    _saved_names = ("self", "result")
    dims: tuple[int, ...]
    divisor: float

    def _vjp(self, g: Tensor) -> Any:
        x, y = self._unpack()
        centred = x - x.mean(self.dims, keepdim=True) if self.dims else x - x
        zero = y == 0
        scaled = (g / y.masked_fill(zero, 1)).masked_fill(zero, 0)
        return restored(scaled, x._data.shape, self.dims) * centred * _ratio(1.0, self.divisor)


class LogsumexpBackward0(Node):
    """d logsumexp = softmax dx."""

    _saved_names = ("self", "result")
    dims: tuple[int, ...]

    def _vjp(self, g: Tensor) -> Any:
        x, y = self._unpack()
        shape = x._data.shape
        return restored(g, shape, self.dims) * conj((x - restored(y, shape, self.dims)).exp())


class LinalgVectorNormBackward0(Node):
    """d (sum |x|^p)^(1/p) = x |x|^(p-2) norm^(1-p) dx; 0 where x is 0; for p = +-inf, equal extremes share it."""

    _saved_names = ("self", "result")
    _constant_names = ("ord",)
    dims: tuple[int, ...]
    ord: float

    def _vjp(self, g: Tensor) -> Any:
        x, y = self._unpack()
        shape, p = x._data.shape, self.ord
        whole, norm = restored(g, shape, self.dims), restored(y, shape, self.dims)
        zero = norm == 0
        if p == 0:
            return None
        if p == 1:
            return whole * x.sgn()
        if p == 2:
            return whole * (x / norm).masked_fill(zero, 0)
        if math.isinf(p):
            hits = from_array(np.abs(x._data) == norm._data)
            count = from_array(hits._data.sum(axis=self.dims, keepdims=True).astype(g._data.dtype))
            return x.sgn() * (whole / count).masked_fill(~hits, 0)
        flat = x == 0
        size = x.abs().masked_fill(flat, 1)
        slope = x.sgn() * size ** (p - 1) if p < 2 else x * size ** (p - 2)
        # For p < 0 the norm is 0 where one element is, and so are the other gradients; else only where all are.
        return (slope * whole * (norm if p < 0 else norm.masked_fill(zero, 1)) ** (1 - p)).masked_fill(flat, 0)


class CumsumBackward0(Node):
    """The cotangent of x_i is the sum of the cotangents at i and after it."""

    dim: int

    def _vjp(self, g: Tensor) -> Any:
        return g.flip(self.dim).cumsum(self.dim).flip(self.dim)


class CumprodBackward0(Node):
    """The cotangent of x_i is the sum over k >= i of g_k y_k / x_i; where an element is 0, by products without it."""

    _saved_names = ("self", "result")
    dim: int

    def _vjp(self, g: Tensor) -> Any:
        x, y = self._unpack()
        if not x._data.ndim:
            return g
        if not bool((x._data == 0).any()):
            return (g * conj(y)).flip(self.dim).cumsum(self.dim).flip(self.dim) / conj(x)
        pieces = []
        size = x._data.shape[self.dim]
        for place in range(size):
            before = x.narrow(self.dim, 0, place).prod(self.dim, keepdim=True)
            after = x.narrow(self.dim, place + 1, size - place - 1).cumprod(self.dim)
            ahead = before.cat([before, before * after], self.dim)
            pieces.append((g.narrow(self.dim, place, size - place) * conj(ahead)).sum(self.dim, keepdim=True))
        return pieces[0].cat(pieces, self.dim)


def _ratio(value: float, divisor: float) -> float:
    return value / divisor if divisor > 0 else math.nan


def _spread(
    kind: type[Node], input: Tensor, dim: Any, unbiased: bool | None, correction: float | None, keepdim: bool
) -> Tensor:
    if isinstance(dim, bool):
        dim, unbiased = None, dim
    if unbiased is not None and correction is not None:
        raise TypeError("std and var take unbiased or correction, not both")
    _require_real_numbers("std and var", input._data)
    dims = axes(dim, input._data.ndim)
    less = correction if correction is not None else 0 if unbiased is False else 1
    count = math.prod(input._data.shape[place] for place in dims)
    with np.errstate(all="ignore"):
        centred = input._data - input._data.sum(axis=dims, keepdims=True) / np.float64(count).astype(input._data.dtype)
        square = (centred.conj() * centred).real
        array = square.sum(axis=dims, keepdims=keepdim) / (count - less if count > less else np.float64(0))
    array = np.asarray(array).astype(real_of(input._data.dtype))
    if kind is StdBackward0:
        return record(kind, np.sqrt(array), (input,), (input,), keep=True, dims=dims, divisor=count - less)
    return record(kind, array, (input,), (input,), dims=dims, divisor=count - less)


@numpy_names
def var(
    input: Tensor,
    dim: Any = None,
    unbiased: bool | None = None,
    keepdim: bool = False,
    *,
    correction: float | None = None,
) -> Tensor:
    """Return the variance over some axes or all: squared deviations from the mean over n - correction (default 1)."""
    return _spread(VarBackward0, input, dim, unbiased, correction, keepdim)


@numpy_names
def std(
    input: Tensor,
    dim: Any = None,
    unbiased: bool | None = None,
    keepdim: bool = False,
    *,
    correction: float | None = None,
) -> Tensor:
    """Return the square root of the variance; the gradient is 0 where it is 0."""
    return _spread(StdBackward0, input, dim, unbiased, correction, keepdim)


@numpy_names
def logsumexp(input: Tensor, dim: Dims, keepdim: bool = False) -> Tensor:
    """Return log(sum(exp(x))) over some axes, without overflow; integers are computed in the default type."""
    x = floating(input._data)
    dims = axes(dim, x.ndim)
    peak = x.max(axis=dims, keepdims=True, initial=-np.inf)
    peak = np.where(np.isfinite(peak), peak, 0)
    with np.errstate(all="ignore"):
        array = np.log(np.exp(x - peak).sum(axis=dims, keepdims=True)) + peak
    array = array if keepdim else array.squeeze(dims)
    return record(LogsumexpBackward0, array, (input,), (input,), keep=True, dims=dims)


def vector_norm(input: Tensor, ord: float = 2, dim: Dims = None, keepdim: bool = False) -> Tensor:
    """Return the p-norm of the elements over some axes or all: (sum |x|^p)^(1/p).

    For p = inf, -inf and 0 it is max |x|, min |x|, and the number of elements that are not 0. The gradient is 0 where
    x is 0.

    Raises:
        RuntimeError: the elements are integers.
        TypeError: the order is not a number.
    """
    if input._data.dtype.kind not in "fc":
        raise RuntimeError(
            "linalg.vector_norm: Expected a floating point or complex tensor as input. Got "
            f"{BY_NUMPY[input._data.dtype].letter}"
        )
    if not isinstance(ord, (int, float, np.number)):
        raise TypeError(f"linalg_vector_norm(): argument 'ord' (position 2) must be Number, not {type(ord).__name__}")
    x, p = input._data, float(ord)
    dims = axes(dim, x.ndim)
    if math.isinf(p) or p < 0:
        _require_elements(p, x.shape, dims)
    size = np.abs(x)
    if math.isinf(p):
        array = size.max(axis=dims, keepdims=keepdim) if p > 0 else size.min(axis=dims, keepdims=keepdim)
    elif p == 0:
        array = (size != 0).sum(axis=dims, keepdims=keepdim).astype(size.dtype)
    elif p == 2:
        array = np.sqrt((size * size).sum(axis=dims, keepdims=keepdim))
    else:
        array = (size**p).sum(axis=dims, keepdims=keepdim) ** (1 / p)
    array = np.asarray(array).astype(size.dtype)
    return record(LinalgVectorNormBackward0, array, (input,), (input,), keep=True, dims=dims, ord=p)


def _require_elements(p: float, shape: tuple[int, ...], dims: tuple[int, ...]) -> None:
    """Raise RuntimeError where a norm that is infinite for no elements has none."""
    empty = [place for place in dims if not shape[place]]
    if not empty:
        return
    where = "an empty tensor " if len(dims) == len(shape) else f"the dimension {empty[0]}"
    of_this = "" if len(dims) == len(shape) else "this dimension is empty and "
    raise RuntimeError(
        f"linalg.vector_norm cannot compute the {p:g} norm on {where}because {of_this}the operation does not have an "
        "identity"
    )


@numpy_names
def norm(input: Tensor, p: Any = 2, dim: Dims = None, keepdim: bool = False) -> Tensor:
    """Return the p-norm of the elements over some axes or all; "fro" is the 2-norm.

    Raises:
        NotImplementedError: p is "nuc", a norm of matrices: use `linalg.matrix_norm`.
        RuntimeError: the order is unknown.
    """
    if isinstance(p, str) and p not in ("fro", "nuc"):
        raise RuntimeError(f"linalg.matrix_norm: Order {p} not supported.")
    if p == "nuc":
        raise NotImplementedError("norm: p='nuc' is not supported by gradcli.engine; use linalg.matrix_norm(x, 'nuc')")
    return vector_norm(input, 2.0 if p in ("fro", None) else float(p), dim, keepdim)


def _counted(array: Array, kind: Any) -> Array:
    """Return integers and booleans as int64, unless a type was asked for; with an axis."""
    whole = array.astype(np.int64) if kind is None and array.dtype.kind in "iub" else array
    return whole if whole.ndim else whole.reshape(1)


@numpy_names
def cumsum(input: Tensor, dim: int, *, dtype: Any = None) -> Tensor:
    """Return the cumulative sum along an axis, cast to `dtype` first if given."""
    input = input if dtype is None else input.to(dtype=dtype)
    place = axis(dim, input._data.ndim)
    array = np.cumsum(_counted(input._data, dtype), axis=place).reshape(input._data.shape)
    return record(CumsumBackward0, array, (input,), dim=place)


@numpy_names
def cumprod(input: Tensor, dim: int, *, dtype: Any = None) -> Tensor:
    """Return the cumulative product along an axis, cast to `dtype` first if given."""
    input = input if dtype is None else input.to(dtype=dtype)
    place = axis(dim, input._data.ndim)
    array = np.cumprod(_counted(input._data, dtype), axis=place).reshape(input._data.shape)
    return record(CumprodBackward0, array, (input,), (input,), keep=True, dim=place)
