"""Functions composed of other operations; they have no backward rule of their own."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from gradcli.engine.dtypes import complex128, float64
from gradcli.engine.graph import Undifferentiable
from gradcli.engine.module_name import printed_as
from gradcli.engine.ops.comparison import where
from gradcli.engine.ops.linalg import matmul
from gradcli.engine.ops.operands import (
    Operand,
    axis,
    check_broadcast,
    numpy_names,
    operand,
    refuse_kinds,
    require_one_dtype,
)
from gradcli.engine.ops.reduction import ValuesIndices, amax, amin, named_result
from gradcli.engine.ops.shape import movedim
from gradcli.engine.ops.statistics import norm, std, var
from gradcli.engine.recording import record
from gradcli.engine.tensor import Tensor, from_array

CUMMAX, CUMMIN, KTHVALUE = named_result("cummax"), named_result("cummin"), named_result("kthvalue")


# --- elementwise
def fmax(input: Tensor, other: Tensor) -> Tensor:
    """Return the larger of the two, elementwise, and the number where one is NaN; input gets the gradient at a tie."""
    larger: Tensor = where((input >= other) | other.isnan(), input, other)
    return larger


def fmin(input: Tensor, other: Tensor) -> Tensor:
    """Return the smaller of the two, elementwise, and the number where one is NaN; input gets the gradient at a tie."""
    smaller: Tensor = where((input <= other) | other.isnan(), input, other)
    return smaller


def heaviside(input: Tensor, values: Tensor) -> Tensor:
    """Return `values` where input is 0, 1 where it is above, else 0 (also for NaN); it has no derivative."""
    x = input._data
    array = np.where(x == 0, values._data, (x > 0).astype(x.dtype))
    return record(Undifferentiable, array, (input, values), what="heaviside")


def lerp(input: Tensor, end: Tensor, weight: Operand) -> Tensor:
    """Return input + weight * (end - input).

    Raises:
        RuntimeError: the tensors have different element types.
    """
    require_one_dtype("lerp", input, end, weight)
    share: Tensor = (end - input) * operand(weight, "weight")
    return input + share


def addcmul(input: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: Any = 1) -> Tensor:
    """Return input + value * tensor1 * tensor2."""
    product = tensor1 * tensor2
    return input + (product if value == 1 else product * value)


def addcdiv(input: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: Any = 1) -> Tensor:
    """Return input + value * tensor1 / tensor2."""
    quotient = tensor1 / tensor2
    return input + (quotient if value == 1 else quotient * value)


def nan_to_num(
    input: Tensor, nan: float | None = None, posinf: float | None = None, neginf: float | None = None
) -> Tensor:
    """Return a copy with NaN (by 0) and infinities (by the limits of the type) replaced; the gradient there is 0."""
    x = input._data
    if x.dtype.kind not in "f":
        return input.clone()
    limit = np.finfo(x.dtype)
    high = float(limit.max) if posinf is None else posinf
    low = float(limit.min) if neginf is None else neginf
    result = input.masked_fill(input.isnan(), 0.0 if nan is None else nan)
    return result.masked_fill(from_array(np.isposinf(x)), high).masked_fill(from_array(np.isneginf(x)), low)


def float_power(input: Operand, exponent: Operand) -> Tensor:
    """Return input raised to a power, computed in float64 (or complex128)."""
    base, power = (_doubled(value) if isinstance(value, Tensor) else value for value in (input, exponent))
    result: Tensor = base**power
    return result


def _doubled(input: Tensor) -> Any:
    return input.to(complex128 if input._data.dtype.kind == "c" else float64)


def ldexp(input: Tensor, other: Tensor) -> Tensor:
    """Return input * 2^other."""
    return input * 2.0**other


def logaddexp2(input: Tensor, other: Tensor) -> Tensor:
    """Return the logarithm to base 2 of 2^input + 2^other, without overflow."""
    factor = math.log(2)
    return (input * factor).logaddexp(other * factor) / factor


# --- products
def cross(input: Tensor, other: Tensor, dim: int | None = None) -> Tensor:
    """Return the cross products along an axis of length 3: `dim`, or the first of this length.

    Raises:
        RuntimeError: the axis has another length, no axis has it, or the shapes do not fit.
    """
    require_one_dtype("linalg.cross", input, other)
    first, second = input._data.shape, other._data.shape
    if dim is None and 3 not in first:
        raise RuntimeError("no dimension of size 3 in input")
    named = first.index(3) if dim is None else dim
    if len(first) != len(second):
        raise RuntimeError("linalg.cross: inputs must have the same number of dimensions.")
    spot = axis(named, len(first))
    if first[spot] != 3 or second[spot] != 3:
        raise RuntimeError(
            f"linalg.cross: inputs dimension {named} must have length 3. Got {first[spot]} and {second[spot]}"
        )
    check_broadcast(first, second)
    shape = np.broadcast_shapes(first, second)
    x, y = input.expand(shape), other.expand(shape)
    return x.roll(-1, spot) * y.roll(-2, spot) - x.roll(-2, spot) * y.roll(-1, spot)


def linalg_cross(input: Tensor, other: Tensor, *, dim: int = -1) -> Tensor:
    """Return the cross products along an axis of length 3; see `cross`."""
    return cross(input, other, dim)


def vdot(input: Tensor, tensor: Tensor) -> Tensor:
    """Return sum(conj(input) * tensor) of two vectors."""
    return (input.conj() if input._data.dtype.kind == "c" else input).dot(tensor)


def vecdot(x: Tensor, y: Tensor, *, dim: int = -1) -> Tensor:
    """Return sum(conj(x) * y) along an axis."""
    return ((x.conj() if x._data.dtype.kind == "c" else x) * y).sum(dim)


def addmv(input: Tensor, mat: Tensor, vec: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
    """Return beta * input + alpha * (mat @ vec)."""
    return input * beta + mat.mv(vec) * alpha


def addr(input: Tensor, vec1: Tensor, vec2: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
    """Return beta * input + alpha * outer(vec1, vec2)."""
    return input * beta + vec1.outer(vec2) * alpha


def addbmm(input: Tensor, batch1: Tensor, batch2: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
    """Return beta * input + alpha * sum_b(batch1[b] @ batch2[b])."""
    return input * beta + batch1.bmm(batch2).sum(0) * alpha


def multi_dot(tensors: Sequence[Tensor]) -> Tensor:
    """Return the product of several matrices, multiplied from left to right (PyTorch chooses the cheapest order)."""
    result = tensors[0]
    for factor in tensors[1:]:
        result = matmul(result, factor)
    return result


def matrix_power(input: Tensor, n: int) -> Tensor:
    """Return the n-th power of square matrices [..., m, m], by squaring; a negative n inverts them first."""
    if n < 0:
        return matrix_power(input.inv(), -n)
    if n == 0:
        size = input._data.shape
        return from_array(np.broadcast_to(np.eye(size[-1], dtype=input._data.dtype), size).copy())
    half = matrix_power(input, n // 2) if n > 1 else None
    square = None if half is None else matmul(half, half)
    return input if square is None else matmul(square, input) if n % 2 else square


# --- over axes
@numpy_names
def var_mean(
    input: Tensor,
    dim: Any = None,
    unbiased: bool | None = None,
    keepdim: bool = False,
    *,
    correction: float | None = None,
) -> tuple[Tensor, Tensor]:
    """Return (var, mean) over some axes or all; see `var`."""
    over = None if isinstance(dim, bool) else dim
    return var(input, dim, unbiased, keepdim, correction=correction), input.mean(over, keepdim)


@numpy_names
def std_mean(
    input: Tensor,
    dim: Any = None,
    unbiased: bool | None = None,
    keepdim: bool = False,
    *,
    correction: float | None = None,
) -> tuple[Tensor, Tensor]:
    """Return (std, mean) over some axes or all; see `std`."""
    over = None if isinstance(dim, bool) else dim
    return std(input, dim, unbiased, keepdim, correction=correction), input.mean(over, keepdim)


@printed_as("aminmax")
class Extremes(NamedTuple):
    """The least and the largest elements."""

    min: Tensor
    max: Tensor


def aminmax(input: Tensor, *, dim: int | None = None, keepdim: bool = False) -> Extremes:
    """Return (min, max) along an axis or of all elements; equal extremes share the gradient."""
    return Extremes(amin(input, dim, keepdim), amax(input, dim, keepdim))


@numpy_names
def nanmean(input: Tensor, dim: Any = None, keepdim: bool = False) -> Tensor:
    """Return the mean of the elements that are not NaN, over some axes or all."""
    count = from_array((~np.isnan(input._data)).astype(input._data.dtype)).sum(dim, keepdim)
    return input.nansum(dim, keepdim) / count


def dist(input: Tensor, other: Tensor, p: float = 2) -> Tensor:
    """Return the p-norm of the difference."""
    return norm(input - other, p)


def _running(kind: type[ValuesIndices], input: Tensor, dim: int, sign: int) -> ValuesIndices:
    if not input._data.ndim:
        if dim not in (0, -1):
            name = kind.__name__
            raise IndexError(f"{name}(): Expected reduction dim -1 or 0 for scalar but got {dim}")
        return kind(input.clone(), from_array(np.zeros((), dtype=np.int64)))
    spot = axis(dim, input._data.ndim)
    x = np.moveaxis(input._data * sign, spot, 0)
    best, places = x[:1].copy(), np.zeros(x.shape, dtype=np.int64)
    for place in range(1, len(x)):
        newer = (x[place] >= best[0]) | np.isnan(x[place])
        best[0] = np.where(newer, x[place], best[0])
        places[place] = np.where(newer, place, places[place - 1])
    indices = from_array(np.ascontiguousarray(np.moveaxis(places, 0, spot)))
    return kind(input.gather(spot, indices), indices)


def cummax(input: Tensor, dim: int) -> ValuesIndices:
    """Return (values, indices) of the running maximum along an axis; of equal elements the last one counts."""
    refuse_kinds("cummax", input._data, "c")
    return _running(CUMMAX, input, dim, 1)


def cummin(input: Tensor, dim: int) -> ValuesIndices:
    """Return (values, indices) of the running minimum along an axis; of equal elements the last one counts."""
    refuse_kinds("cummin", input._data, "c")
    return _running(CUMMIN, input, dim, -1)


def logcumsumexp(input: Tensor, dim: int) -> Tensor:
    """Return log(cumsum(exp(x))) along an axis, without overflow."""
    spot = axis(dim, input._data.ndim)
    if not input._data.ndim:
        return input.clone()
    count = input._data.shape[spot]
    pieces: list[Tensor] = []
    for piece in input.split(1, spot):
        pieces.append(pieces[-1].logaddexp(piece) if pieces else piece)
    return pieces[0].cat(pieces, spot) if count else input.clone()


def kthvalue(input: Tensor, k: int, dim: int = -1, keepdim: bool = False) -> ValuesIndices:
    """Return (values, indices) of the k-th smallest element along an axis; k counts from 1.

    Raises:
        RuntimeError: k is below 1 or above the length of the axis.
    """
    refuse_kinds("kthvalue", input._data, "c")
    spot = axis(dim, input._data.ndim)
    if not 1 <= k <= (input._data.shape[spot] if input._data.ndim else 1):
        raise RuntimeError(f"kthvalue(): selected number k out of range for dimension {spot}")
    values, indices = input.sort(dim)
    if not input._data.ndim:
        return KTHVALUE(values, indices)
    if not keepdim:
        return KTHVALUE(values.select(spot, k - 1), indices.select(spot, k - 1))
    return KTHVALUE(values.narrow(spot, k - 1, 1), indices.narrow(spot, k - 1, 1))


def msort(input: Tensor) -> Tensor:
    """Return the elements sorted along the first axis."""
    values: Tensor = input.sort(0)[0]
    return values


@numpy_names
def quantile(input: Tensor, q: Any, dim: int | None = None, keepdim: bool = False) -> Tensor:
    """Return quantiles along an axis or of all elements, interpolated linearly; NaN where an element is NaN.

    Args:
        input: real numbers.
        q: a number between 0 and 1, or a vector of such, whose axis becomes the first of the result.
        dim: the axis; all elements for None.
        keepdim: keep the axis, with length 1.

    Raises:
        RuntimeError: q is not between 0 and 1, or the input holds no real numbers, or nothing.
    """
    if not input._data.size:
        raise RuntimeError("quantile() input tensor must be non-empty")
    if input._data.dtype.kind != "f":
        raise RuntimeError("quantile() input tensor must be either float or double dtype")
    wanted = np.asarray(q._data if isinstance(q, Tensor) else q, dtype=input._data.dtype)
    if not bool(((wanted >= 0) & (wanted <= 1)).all()):
        raise RuntimeError(f"quantile() q values must be in the range [0, 1] but got {q}")
    flat = input.reshape(-1) if dim is None else movedim(input, dim, -1)
    ordered = flat.sort(-1)[0]
    ranks = wanted * (flat._data.shape[-1] - 1)
    below = np.floor(ranks).astype(np.int64)
    above = np.ceil(ranks).astype(np.int64)
    share = from_array(np.asarray(ranks - below, dtype=input._data.dtype).reshape(-1))
    low, high = (ordered.index_select(-1, from_array(places.reshape(-1))) for places in (below, above))
    found = low + (high - low) * share
    if flat._data.shape[-1]:
        found = where(ordered[..., -1:].isnan(), ordered[..., -1:], found)  # NaN is sorted last
    if keepdim:
        rest = input._data.ndim if dim is None else 1
        found = found.reshape([1] * rest + [-1]) if dim is None else movedim(found.unsqueeze(-2), -2, dim)
    found = movedim(found, -1, 0)
    return found if ranks.ndim else found.squeeze(0)


def trapezoid(y: Tensor, x: Tensor | None = None, *, dx: float = 1, dim: int = -1) -> Tensor:
    """Return the integral along an axis by the trapezoidal rule, at points x or at distance dx."""
    return _trapezoids(y, x, dx, dim).sum(axis(dim, y._data.ndim)) / 2


def cumulative_trapezoid(y: Tensor, x: Tensor | None = None, *, dx: float = 1, dim: int = -1) -> Tensor:
    """Return the running integral along an axis by the trapezoidal rule: one element less than y has."""
    return _trapezoids(y, x, dx, dim).cumsum(axis(dim, y._data.ndim)) / 2


def _trapezoids(y: Tensor, x: Tensor | None, dx: float, dim: int) -> Tensor:
    """Return twice the area between neighbours along an axis."""
    spot, count = axis(dim, y._data.ndim), y._data.shape[dim]
    heights = y.narrow(spot, 0, count - 1) + y.narrow(spot, 1, count - 1)
    if x is None:
        return heights * dx
    steps = x.diff() if x._data.ndim > 1 else x.diff().reshape([-1] + [1] * (y._data.ndim - 1 - spot))
    return heights * steps
