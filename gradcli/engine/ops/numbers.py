"""Rarer elementwise functions: inverse error function, normal distribution, predicates, integer functions."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from gradcli.engine.dtypes import Array
from gradcli.engine.graph import Node
from gradcli.engine.module_name import printed_as
from gradcli.engine.ops.comparison import where
from gradcli.engine.ops.elementwise import erf, erfc, lgamma
from gradcli.engine.ops.operands import Operand, floating, operand, pair, refuse_kinds
from gradcli.engine.recording import record
from gradcli.engine.tensor import Tensor, from_array


class CopysignBackward0(Node):
    """The cotangent with its sign changed where that of x was; 0 at 0, and for the other argument."""

    _saved_names = ("self", "result")

    def _vjp(self, g: Tensor) -> Any:
        x, result = self._unpack()
        return g * (result / x).masked_fill(x == 0, 0), g * 0 if self._needs(1) else None


class NextafterBackward0(Node):
    """The cotangent, 0 where both arguments are equal, and for the other argument, as in PyTorch."""

    _saved_names = ("self", "other")

    def _vjp(self, g: Tensor) -> Any:
        x, y = self._unpack()
        return g.masked_fill(x == y, 0), g * 0 if self._needs(1) else None


class FrexpBackward0(Node):
    """The cotangent over two to the exponent."""

    _saved_names = ("exponent",)

    def _vjp(self, g: Tensor) -> Any:
        (exponent,) = self._unpack()
        return g * from_array(np.ldexp(np.ones((), g._data.dtype), -exponent._data))


@printed_as("frexp")
class Frexp(NamedTuple):
    """Numbers between 1/2 and 1 in size, and the powers of two to multiply them by."""

    mantissa: Tensor
    exponent: Tensor


def frexp(input: Tensor) -> Frexp:
    """Return x as mantissa * 2^exponent.

    Raises:
        RuntimeError: the elements are not real numbers.
    """
    if input._data.dtype.kind != "f":
        raise RuntimeError("torch.frexp() only supports floating-point dtypes")
    mantissa, powers = np.frexp(input._data)
    exponent = from_array(np.asarray(powers, dtype=np.int32))
    return Frexp(record(FrexpBackward0, mantissa, (input,), (exponent,)), exponent)


class ErfinvBackward0(Node):
    """d erfinv(x) = sqrt(pi) / 2 exp(y^2) dx, with y = erfinv(x)."""

    _saved_names = ("result",)

    def _vjp(self, g: Tensor) -> Tensor:
        (y,) = self._unpack()
        result: Tensor = g * (y * y).exp() * (math.sqrt(math.pi) / 2)
        return result


class SpecialLogNdtrBackward0(Node):
    """d log F(x) = f(x) / F(x) dx, f the density of the normal distribution; by logarithms, as both may underflow."""

    _saved_names = ("self", "result")

    def _vjp(self, g: Tensor) -> Tensor:
        x, result = self._unpack()
        share: Tensor = (-x * x / 2 - result).exp() * (1 / math.sqrt(2 * math.pi))
        return g * share


def _erfinv(x: float) -> float:
    """Start from a quantile of the normal distribution, and take two Newton steps: for |x| > 1/2 on erfc.

    The quantile is that of (1 - |x|) / 2, which is exact near |x| = 1, where erf and the upper quantiles are not.
    """
    if not -1 < x < 1:
        return math.copysign(math.inf, x) if abs(x) == 1 else math.nan
    from statistics import NormalDist

    size = abs(x)
    y = -NormalDist().inv_cdf((1 - size) / 2) / math.sqrt(2)
    for _ in range(2):
        rest = math.erf(y) - size if size < 0.5 else (1 - size) - math.erfc(y)
        y -= rest / (2 / math.sqrt(math.pi) * math.exp(-y * y))
    return math.copysign(y, x)


def erfinv(input: Tensor) -> Tensor:
    """Return y with erf(y) = x: +-inf at +-1, NaN beyond."""
    refuse_kinds("erfinv", input._data, "c")
    x = floating(input._data)
    return record(ErfinvBackward0, np.asarray(np.vectorize(_erfinv, otypes=[x.dtype])(x)), (input,), keep=True)


def ndtr(input: Tensor) -> Tensor:
    """Return the standard normal distribution function at x."""
    half: Tensor = where(input < 0, erfc(-input / math.sqrt(2)), 1 + erf(input / math.sqrt(2)))
    return half / 2


def log_ndtr(input: Tensor) -> Tensor:
    """Return the logarithm of the standard normal distribution function at x, also where that underflows."""
    refuse_kinds("log_ndtr", input._data, "c")
    x = floating(input._data)
    with np.errstate(invalid="ignore"):
        array = np.asarray(np.vectorize(_log_ndtr, otypes=[x.dtype])(x))
    return record(SpecialLogNdtrBackward0, array, (input,), (input,), keep=True)


def _log_ndtr(x: float) -> float:
    """Below -30 by Laplace's fraction F(x) = f(x) / (-x + 1 / (-x + 2 / (-x + 3 / ...)))."""
    if x > 0:
        return math.log1p(-math.erfc(x / math.sqrt(2)) / 2)
    if not x <= -30:
        return math.log(math.erfc(-x / math.sqrt(2)) / 2)
    rest = -x
    for k in range(12, 0, -1):
        rest = -x + k / rest
    return -x * x / 2 - math.log(rest) - math.log(2 * math.pi) / 2


def mvlgamma(input: Tensor, p: int) -> Tensor:
    """Return the logarithm of the multivariate gamma function: p (p - 1) / 4 log(pi) + sum_j log Gamma(x - j / 2).

    Raises:
        RuntimeError: p is below 1.
    """
    if p < 1:
        raise RuntimeError("p has to be greater than or equal to 1")
    halves = from_array((np.arange(p) / 2).astype(floating(input._data).dtype))
    return lgamma(input.unsqueeze(-1) - halves).sum(-1) + p * (p - 1) / 4 * math.log(math.pi)


def ndtri(input: Tensor) -> Tensor:
    """Return the quantile of the standard normal distribution: x with ndtr(x) = p."""
    return erfinv(2 * input - 1) * math.sqrt(2)


def copysign(input: Tensor, other: Operand) -> Tensor:
    """Return |input| with the sign of other; -0.0 counts as negative, and the gradient of other is 0."""
    second = operand(other)
    x, y = pair(input, second)
    array = np.copysign(floating(x), floating(np.asarray(y)))
    return record(CopysignBackward0, array, (input, second), (input,), keep=True)


def isreal(input: Tensor) -> Tensor:
    """Return, for every element, whether its imaginary part is 0."""
    return from_array(np.isreal(input._data))


def isposinf(input: Tensor) -> Tensor:
    """Return, for every element, whether it is inf."""
    return from_array(input._data == math.inf)


def isneginf(input: Tensor) -> Tensor:
    """Return, for every element, whether it is -inf."""
    return from_array(input._data == -math.inf)


def signbit(input: Tensor) -> Tensor:
    """Return, for every element, whether its sign bit is set, as of -0.0."""
    return from_array(np.signbit(floating(input._data)))


def nextafter(input: Tensor, other: Tensor) -> Tensor:
    """Return the next floating point number after input in the direction of other; the gradient of other is 0."""
    return record(NextafterBackward0, np.nextafter(*pair(input, other)), (input, other), (input, other))


def gcd(input: Tensor, other: Tensor) -> Tensor:
    """Return the greatest common divisor of integers, elementwise."""
    return from_array(_whole("gcd", np.gcd, input, other))


def lcm(input: Tensor, other: Tensor) -> Tensor:
    """Return the least common multiple of integers, elementwise."""
    return from_array(_whole("lcm", np.lcm, input, other))


def bitwise_left_shift(input: Tensor, other: Operand) -> Tensor:
    """Return input << other, of integers."""
    return from_array(_whole("lshift", np.left_shift, input, other))


def bitwise_right_shift(input: Tensor, other: Operand) -> Tensor:
    """Return input >> other, of integers."""
    return from_array(_whole("rshift", np.right_shift, input, other))


def _whole(name: str, function: np.ufunc, input: Tensor, other: Operand) -> Array:
    x, y = pair(input, operand(other))
    refuse_kinds(name, x, "bfc")
    return np.asarray(function(x, y))
