"""Functions of single numbers beyond the usual ones: predicates, whole numbers, inverse error function, entropy."""

from __future__ import annotations

import math

import numpy as np

from gradcli.engine.dtypes import Array
from gradcli.engine.graph import Node
from gradcli.engine.ops.comparison import where
from gradcli.engine.ops.elementwise import erf, erfc, log, log1p
from gradcli.engine.ops.operands import Operand, floating, operand, pair, refuse_kinds
from gradcli.engine.recording import record
from gradcli.engine.tensor import Tensor, from_array


class ErfinvBackward0(Node):
    """With x = erf(y): dy = sqrt(pi)/2 exp(y^2) dx."""

    _saved_names = ("result",)

    def _vjp(self, g: Tensor) -> Tensor:
        (y,) = self._unpack()
        result: Tensor = g * (y * y).exp() * (math.sqrt(math.pi) / 2)
        return result


def _erfinv(x: float) -> float:
    """Take the normal distribution's quantile, and two steps of Newton's, on 1 - erf near 1 where erf is flat."""
    if not -1 < x < 1:
        return math.copysign(math.inf, x) if abs(x) == 1 else math.nan
    from statistics import NormalDist

    size = abs(x)
    y = NormalDist().inv_cdf((1 + size) / 2) / math.sqrt(2) if size < 1 - 1e-15 else 5.8
    for _ in range(3):
        rest = math.erf(y) - size if size < 0.5 else (1 - size) - math.erfc(y)
        y -= rest / (2 / math.sqrt(math.pi) * math.exp(-y * y))
    return math.copysign(y, x)


def erfinv(input: Tensor) -> Tensor:
    """Return y with erf(y) = x."""
    refuse_kinds("erfinv", input._data, "c")
    x = floating(input._data)
    return record(ErfinvBackward0, np.asarray(np.vectorize(_erfinv, otypes=[x.dtype])(x)), (input,), keep=True)


def ndtr(input: Tensor) -> Tensor:
    """Return the area below the standard normal density up to x."""
    half: Tensor = where(input < 0, erfc(-input / math.sqrt(2)), 1 + erf(input / math.sqrt(2)))
    return half / 2


def ndtri(input: Tensor) -> Tensor:
    """Return x with ndtr(x) = p."""
    return erfinv(2 * input - 1) * math.sqrt(2)


def entr(input: Tensor) -> Tensor:
    """Return -x log(x): 0 at 0, minus infinity below."""
    positive = input > 0
    inside = -input * log(where(positive, input, 1.0))
    result: Tensor = where(positive, inside, where(input == 0, 0.0, -math.inf))
    return where(input.isnan(), input, result)  # type: ignore[no-any-return]  # where gives a tensor for two values


def xlog1py(input: Tensor, other: Tensor) -> Tensor:
    """Return input * log(1 + other), 0 where input is 0."""
    zero = (input == 0) & ~other.isnan()
    return (input * log1p(other.masked_fill(zero, 0))).masked_fill(zero, 0)


def copysign(input: Tensor, other: Operand) -> Tensor:
    """Return the size of the input with the sign of the other."""
    sign = np.where(np.signbit(pair(input, operand(other))[1]), -1, 1)
    return input.abs() * from_array(np.asarray(sign, dtype=floating(input._data).dtype))


def isreal(input: Tensor) -> Tensor:
    """Tell of every element whether its imaginary part is zero."""
    return from_array(np.isreal(input._data))


def isposinf(input: Tensor) -> Tensor:
    """Tell of every element whether it is plus infinity."""
    return from_array(input._data == math.inf)


def isneginf(input: Tensor) -> Tensor:
    """Tell of every element whether it is minus infinity."""
    return from_array(input._data == -math.inf)


def signbit(input: Tensor) -> Tensor:
    """Tell of every element whether it is negative; -0.0 is."""
    return from_array(np.signbit(floating(input._data)))


def nextafter(input: Tensor, other: Tensor) -> Tensor:
    """Return the next number after the input towards the other."""
    return from_array(np.nextafter(*pair(input, other)))


def gcd(input: Tensor, other: Tensor) -> Tensor:
    """Return the greatest common divisor of whole numbers."""
    return from_array(_whole("gcd", np.gcd, input, other))


def lcm(input: Tensor, other: Tensor) -> Tensor:
    """Return the least common multiple of whole numbers."""
    return from_array(_whole("lcm", np.lcm, input, other))


def bitwise_left_shift(input: Tensor, other: Operand) -> Tensor:
    """Return input << other, for whole numbers."""
    return from_array(_whole("lshift", np.left_shift, input, other))


def bitwise_right_shift(input: Tensor, other: Operand) -> Tensor:
    """Return input >> other, for whole numbers."""
    return from_array(_whole("rshift", np.right_shift, input, other))


def _whole(name: str, function: np.ufunc, input: Tensor, other: Operand) -> Array:
    x, y = pair(input, operand(other))
    refuse_kinds(name, x, "bfc")
    return np.asarray(function(x, y))
