"""Activation functions, elementwise, and the softmax family along an axis."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gradcli.engine.graph import Node
from gradcli.engine.in_place import in_place
from gradcli.engine.ops.constant import constant_in
from gradcli.engine.ops.generic import exp, total, values, without
from gradcli.engine.ops.operands import axis, numpy_names, refuse_kinds, require_one_dtype
from gradcli.engine.recording import record
from gradcli.engine.tensor import Tensor, from_array


class ReluBackward0(Node):
    """The cotangent where the result is positive, else 0 (also at 0)."""

    _on_arrays = True
    _saved_names = ("result",)

    def _vjp(self, g: Any) -> Any:
        (y,) = self._unpack_like(g)
        return constant_in(without(g, values(y) <= 0), y)


class LeakyReluBackward0(Node):
    """The cotangent where x > 0, negative_slope times it elsewhere (also at 0)."""

    _saved_names = ("self",)
    _constant_names = ("negative_slope",)
    negative_slope: float

    def _vjp(self, g: Tensor) -> Any:
        (x,) = self._unpack()
        return constant_in(_choose(x, g, self.negative_slope), x)


class EluBackward0(Node):
    """d = scale alpha k exp(k x) dx where x <= 0, else scale dx, with k = input_scale; the second is 0 at 0."""

    _saved_names = ("self",)
    alpha: float
    scale: float
    input_scale: float

    def _vjp(self, g: Tensor) -> Any:
        (x,) = self._unpack()
        below = (x.masked_fill(~(x < 0), 0) * self.input_scale).exp() * (self.alpha * self.scale * self.input_scale)
        return g * below.masked_fill(~(x <= 0), self.scale)


class CeluBackward0(EluBackward0):
    """Of `celu`."""


class SoftplusBackward0(Node):
    """d softplus = sigmoid(beta x) dx, and dx where beta x > threshold."""

    _saved_names = ("self",)
    beta: float
    threshold: float

    def _vjp(self, g: Tensor) -> Any:
        (x,) = self._unpack()
        linear = from_array(x._data * self.beta > self.threshold)
        return g * (x * self.beta).sigmoid().masked_fill(linear, 1)


class LogSigmoidBackward0(Node):
    """d log sigmoid(x) = sigmoid(-x) dx."""

    _saved_names = ("self",)

    def _vjp(self, g: Tensor) -> Any:
        (x,) = self._unpack()
        return g * (-x).sigmoid()


class SiluBackward0(Node):
    """d(x s) = s (1 + x (1 - s)) dx, with s = sigmoid(x)."""

    _saved_names = ("self",)

    def _vjp(self, g: Tensor) -> Any:
        (x,) = self._unpack()
        s = x.sigmoid()
        return g * (s * (x * (1 - s) + 1))


class GeluBackward0(Node):
    """d(x Phi(x)) = (Phi(x) + x phi(x)) dx, with the standard normal distribution function Phi and its density phi."""

    _saved_names = ("self",)

    def _vjp(self, g: Tensor) -> Any:
        (x,) = self._unpack()
        density = (x * x * -0.5).exp() * (1 / math.sqrt(2 * math.pi))
        return g * (_normal(x) + x * density)


class HardtanhBackward0(Node):
    """The cotangent strictly between the limits, 0 on them and outside."""

    _saved_names = ("self",)
    low: float
    high: float

    def _vjp(self, g: Tensor) -> Any:
        (x,) = self._unpack()
        return constant_in(g.masked_fill(from_array((x._data <= self.low) | (x._data >= self.high)), 0), x)


class PreluKernelBackward0(Node):
    """The cotangent where x > 0, weight times it elsewhere; the weight gets x times the cotangent there."""

    _saved_names = ("self", "weight")

    def _vjp(self, g: Tensor) -> Any:
        x, weight = self._unpack()
        positive = from_array(x._data > 0)
        by_x = by_weight = None
        if self._needs(0):
            by_x = constant_in(g.masked_fill(~positive, 0) + (g * weight).masked_fill(positive, 0), x)
        if self._needs(1):
            by_weight = constant_in((g * x).masked_fill(positive, 0), weight)
        return by_x, by_weight


class SoftmaxBackward0(Node):
    """d softmax_i = y_i (dx_i - sum_j y_j dx_j)."""

    _saved_names = ("result",)
    _constant_names = ("dim",)
    dim: int
    _on_arrays = True

    def _vjp(self, g: Any) -> Any:
        (y,) = self._unpack_like(g)
        weighted = g * y
        return weighted - y * total(weighted, self.dim)


class LogSoftmaxBackward0(Node):
    """d log softmax_i = dx_i - sum_j y_j dx_j, with y the softmax."""

    _saved_names = ("result",)
    _constant_names = ("dim",)
    dim: int
    _on_arrays = True

    def _vjp(self, g: Any) -> Any:
        (y,) = self._unpack_like(g)
        return g - exp(y) * total(g, self.dim)


def _choose(x: Tensor, g: Tensor, slope: float) -> Tensor:
    factor = np.where(x._data > 0, x._data.dtype.type(1), x._data.dtype.type(slope))
    return g * from_array(factor)


def _normal(x: Tensor) -> Tensor:
    return ((x * (1 / math.sqrt(2))).erf() + 1) * 0.5


def relu(input: Tensor, inplace: bool = False) -> Tensor:
    """Return max(x, 0); the gradient at 0 is 0.

    Raises:
        RuntimeError: the tensor is boolean.
        NotImplementedError: it is complex.
    """
    if inplace:
        return input.relu_()
    refuse_kinds("relu", input._data, "c")
    if input._data.dtype.kind == "b":
        raise RuntimeError("Boolean inputs not supported for relu")
    return record(ReluBackward0, np.maximum(input._data, 0), (input,), keep=True)


def leaky_relu(input: Tensor, negative_slope: float = 0.01, inplace: bool = False) -> Tensor:
    """Return x where x > 0, else negative_slope * x."""
    if inplace:
        return in_place(input, leaky_relu, negative_slope)
    x = input._data
    array = np.where(x > 0, x, x * x.dtype.type(negative_slope))
    return record(LeakyReluBackward0, array, (input,), (input,), negative_slope=negative_slope)


def _elu(
    input: Tensor, alpha: float, scale: float = 1.0, input_scale: float = 1.0, kind: type[Node] = EluBackward0
) -> Tensor:
    x = input._data
    below = np.expm1(np.minimum(x, 0) * x.dtype.type(input_scale)) * x.dtype.type(alpha * scale)
    array = np.where(x > 0, x * x.dtype.type(scale), below)
    return record(kind, array, (input,), (input,), alpha=alpha, scale=scale, input_scale=input_scale)


def elu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """Return x where x > 0, else alpha (exp(x) - 1) (Clevert et al., arXiv 1511.07289)."""
    if inplace:
        return in_place(input, elu, alpha)
    return _elu(input, alpha)


def selu(input: Tensor, inplace: bool = False) -> Tensor:
    """Return scale * elu(x, alpha) with the constants of Klambauer et al., arXiv 1706.02515."""
    if inplace:
        return in_place(input, selu)
    result: Tensor = _elu(input, 1.6732632423543772848170429916717, 1.0507009873554804934193349852946)
    return result


def celu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """Return x where x > 0, else alpha (exp(x / alpha) - 1) (Barron, arXiv 1704.07483)."""
    if inplace:
        return in_place(input, celu, alpha)
    result: Tensor = _elu(input, alpha, 1.0, 1.0 / alpha, CeluBackward0)
    return result


def softplus(input: Tensor, beta: float = 1.0, threshold: float = 20.0) -> Tensor:
    """Return log(1 + exp(beta x)) / beta, and x where beta x > threshold."""
    scaled = input._data * input._data.dtype.type(beta)
    array = np.where(scaled > threshold, input._data, np.logaddexp(0, scaled) / beta).astype(input._data.dtype)
    return record(SoftplusBackward0, array, (input,), (input,), beta=beta, threshold=threshold)


def logsigmoid(input: Tensor) -> Tensor:
    """Return log(sigmoid(x)), without overflow."""
    array = -np.logaddexp(0, -input._data).astype(input._data.dtype)
    return record(LogSigmoidBackward0, array, (input,), (input,))


def silu(input: Tensor, inplace: bool = False) -> Tensor:
    """Return x sigmoid(x), also called swish."""
    if inplace:
        return in_place(input, silu)
    result: Tensor = record(SiluBackward0, input._data * input.detach().sigmoid()._data, (input,), (input,))
    return result


def gelu(input: Tensor, approximate: str = "none") -> Tensor:
    """Return x Phi(x), with the standard normal distribution function Phi (Hendrycks and Gimpel, arXiv 1606.08415).

    Args:
        input: x.
        approximate: "none" or "tanh": 0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))).

    Raises:
        RuntimeError: `approximate` is neither "none" nor "tanh".
    """
    if approximate not in ("none", "tanh"):
        raise RuntimeError("approximate argument must be either none or tanh.")
    if approximate == "tanh":
        inner = (input + input**3 * 0.044715) * math.sqrt(2 / math.pi)
        return input * 0.5 * (inner.tanh() + 1)
    return record(GeluBackward0, input._data * _normal(input.detach())._data, (input,), (input,))


def mish(input: Tensor, inplace: bool = False) -> Tensor:
    """Return x tanh(softplus(x))."""
    if inplace:
        return in_place(input, mish)
    result: Tensor = input * softplus(input).tanh()
    return result


def hardtanh(input: Tensor, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> Tensor:
    """Return x clamped to [min_val, max_val]; the gradient at the limits is 0 (of `clamp`, it is 1)."""
    if inplace:
        return in_place(input, hardtanh, min_val, max_val)
    array = np.clip(input._data, min_val, max_val)
    result: Tensor = record(HardtanhBackward0, array, (input,), (input,), low=min_val, high=max_val)
    return result


def relu6(input: Tensor, inplace: bool = False) -> Tensor:
    """Return x clamped to [0, 6]; the gradient at the limits is 0."""
    return hardtanh(input, 0.0, 6.0, inplace)


@numpy_names
def softmax(input: Tensor, dim: int, *, dtype: Any = None) -> Tensor:
    """Return exp(x) / sum(exp(x)) along an axis, without overflow; cast to `dtype` first if given."""
    source = input if dtype is None else input.to(dtype=dtype)
    refuse_kinds("softmax", source._data, "biuc")
    x = source._data
    spot = axis(dim, x.ndim)
    if not x.ndim:
        return source * 0 + 1
    powers = np.exp(x - x.max(axis=spot, keepdims=True)) if x.size else x.copy()
    return record(SoftmaxBackward0, powers / powers.sum(axis=spot, keepdims=True), (source,), keep=True, dim=spot)


@numpy_names
def log_softmax(input: Tensor, dim: int, *, dtype: Any = None) -> Tensor:
    """Return log(softmax(x)) along an axis, without overflow; cast to `dtype` first if given."""
    source = input if dtype is None else input.to(dtype=dtype)
    refuse_kinds("log_softmax", source._data, "biuc")
    x = source._data
    spot = axis(dim, x.ndim)
    if not x.ndim:
        return source * 0
    shifted = x - x.max(axis=spot, keepdims=True) if x.size else x.copy()
    array = shifted - np.log(np.exp(shifted).sum(axis=spot, keepdims=True))
    return record(LogSoftmaxBackward0, array, (source,), keep=True, dim=spot)


def softmin(input: Tensor, dim: int) -> Tensor:
    """Return softmax(-x) along an axis."""
    return softmax(-input, dim)


def softsign(input: Tensor) -> Tensor:
    """Return x / (1 + |x|)."""
    return input / (input.abs() + 1)


def tanhshrink(input: Tensor) -> Tensor:
    """Return x - tanh(x)."""
    return input - input.tanh()


def prelu(input: Tensor, weight: Tensor) -> Tensor:
    """Return x where x > 0, else weight * x.

    Args:
        input: x: [N, C, ...], or any shape for a single weight.
        weight: one slope, or C slopes.
    """
    require_one_dtype("prelu", input, weight)
    if weight._data.size != 1 and input._data.ndim > 1:
        weight = weight.reshape([1, -1] + [1] * (input._data.ndim - 2))
    array = np.where(input._data > 0, input._data, input._data * weight._data)
    return record(PreluKernelBackward0, array, (input, weight), (input, weight))


def glu(input: Tensor, dim: int = -1) -> Tensor:
    """Return the first half of an axis times the sigmoid of the second (Dauphin et al., arXiv 1612.08083).

    Raises:
        RuntimeError: the axis has an odd length.
    """
    place = axis(dim, input._data.ndim)
    size = input._data.shape[place] if input._data.ndim else 1
    if size % 2:
        raise RuntimeError(f"Halving dimension must be even, but dimension {place} is size {size}")
    first, second = input.chunk(2, dim)
    return first * second.sigmoid()
