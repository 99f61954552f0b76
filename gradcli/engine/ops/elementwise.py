"""Elementwise functions, each with its derivative; integers are computed in the default floating point type."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from gradcli.engine.dtypes import Array
from gradcli.engine.graph import Node
from gradcli.engine.ops import generic
from gradcli.engine.ops.operands import Operand, applied, floating, operand, pair, refuse_kinds
from gradcli.engine.ops.slopes import rule
from gradcli.engine.recording import record
from gradcli.engine.tensor import Tensor, from_array


class _Flat(Node):
    """The rule of piecewise constant functions: 0 everywhere, also at jumps."""

    def _vjp(self, g: Tensor) -> Any:
        return from_array(np.zeros_like(g._data))


def _at_sinc(x: Tensor) -> Tensor:
    """Return the derivative of sin(z) / z times pi, with z = pi x; near 0, where it cancels, by its series."""
    z = x * math.pi
    near = z.abs() < 0.1
    safe = z.masked_fill(near, 1)
    slope = ((safe * safe.cos() - safe.sin()) / (safe * safe) * math.pi).masked_fill(near, 0)
    if near._data.any():
        small = z.masked_fill(~near, 0)
        for k in range(1, 7):
            slope = slope + small ** (2 * k - 1) * ((-1) ** k * 2 * k * math.pi / math.factorial(2 * k + 1))
    return slope


def _at_acosh(x: Any) -> Any:
    """Return 1 / sqrt(x^2 - 1), on the branch of acosh where x is complex."""
    if generic.values(x).dtype.kind == "c":
        return generic.rsqrt(x - 1) * generic.rsqrt(x + 1)
    return generic.rsqrt(x * x - 1)


ExpBackward0 = rule("ExpBackward0", lambda y: y, of_result=True)
Exp2Backward0 = rule("Exp2Backward0", lambda y: y * math.log(2), of_result=True)
Expm1Backward0 = rule("Expm1Backward0", lambda y: y + 1, of_result=True)
LogBackward0 = rule("LogBackward0", lambda x: x, divides=True)
Log1PBackward0 = rule("Log1PBackward0", lambda x: x + 1, divides=True)
Log2Backward0 = rule("Log2Backward0", lambda x: x * math.log(2), divides=True)
Log10Backward0 = rule("Log10Backward0", lambda x: x * math.log(10), divides=True)
SqrtBackward0 = rule("SqrtBackward0", lambda y: y * 2, of_result=True, divides=True)
RsqrtBackward0 = rule("RsqrtBackward0", lambda y: generic.power(y, 3) * -0.5, of_result=True)
SinBackward0 = rule("SinBackward0", generic.cos)
CosBackward0 = rule("CosBackward0", lambda x: -generic.sin(x))
TanBackward0 = rule("TanBackward0", lambda y: y * y + 1, of_result=True)
AsinBackward0 = rule("AsinBackward0", lambda x: generic.rsqrt(1 - x * x))
AcosBackward0 = rule("AcosBackward0", lambda x: -generic.rsqrt(1 - x * x))
AtanBackward0 = rule("AtanBackward0", lambda x: x * x + 1, divides=True)
SinhBackward0 = rule("SinhBackward0", generic.cosh)
CoshBackward0 = rule("CoshBackward0", generic.sinh)
TanhBackward0 = rule("TanhBackward0", lambda y: 1 - y * y, of_result=True)
AsinhBackward0 = rule("AsinhBackward0", lambda x: generic.rsqrt(x * x + 1))
AcoshBackward0 = rule("AcoshBackward0", _at_acosh)
AtanhBackward0 = rule("AtanhBackward0", lambda x: 1 - x * x, divides=True)
SigmoidBackward0 = rule("SigmoidBackward0", lambda y: y * (1 - y), of_result=True)
ErfBackward0 = rule("ErfBackward0", lambda x: generic.exp(-x * x) * (2 / math.sqrt(math.pi)))
ErfcBackward0 = rule("ErfcBackward0", lambda x: generic.exp(-x * x) * (-2 / math.sqrt(math.pi)))
LgammaBackward0 = rule("LgammaBackward0", lambda x: x.digamma(), on_arrays=False)
DigammaBackward0 = rule("DigammaBackward0", lambda x: polygamma(1, x), on_arrays=False)
SincBackward0 = rule("SincBackward0", _at_sinc, on_arrays=False)


class SignBackward0(_Flat):
    """Piecewise constant."""


class RoundBackward0(_Flat):
    """Piecewise constant."""


class FloorBackward0(_Flat):
    """Piecewise constant."""


class CeilBackward0(_Flat):
    """Piecewise constant."""


class TruncBackward0(_Flat):
    """Piecewise constant."""


class FracBackward0(Node):
    """The cotangent."""

    def _vjp(self, g: Tensor) -> Any:
        return g


class AbsBackward0(Node):
    """d|x| = sgn(x) dx, 0 at 0; for complex x, the real cotangent times x / |x|."""

    _saved_names = ("self",)

    def _vjp(self, g: Tensor) -> Any:
        (x,) = self._unpack()
        return g * x.sgn()


class SgnBackward0(Node):
    """For complex x with s = x / |x|: ds = (dx - s Re(conj(s) dx)) / |x|; 0 for real x and at 0."""

    _saved_names = ("self",)

    def _vjp(self, g: Tensor) -> Any:
        (x,) = self._unpack()
        if x._data.dtype.kind != "c":
            return g * 0
        size, direction = x.abs(), x.sgn()
        along = (g.conj() * direction).real
        return ((g - direction * along) / size.masked_fill(size == 0, 1)).masked_fill(size == 0, 0)


class PolygammaBackward0(Node):
    """d psi_n(x) = psi_(n+1)(x) dx."""

    _saved_names = ("self",)
    order: int

    def _vjp(self, g: Tensor) -> Any:
        (x,) = self._unpack()
        return g * polygamma(self.order + 1, x)


class HypotBackward0(Node):
    """d hypot(x, y) = (x dx + y dy) / hypot(x, y)."""

    _saved_names = ("self", "other", "result")

    def _vjp(self, g: Tensor) -> Any:
        x, y, result = self._unpack()
        return g * (x / result), g * (y / result)


class Atan2Backward0(Node):
    """d atan2(y, x) = (x dy - y dx) / (x^2 + y^2); 0 at the origin."""

    _saved_names = ("self", "other")

    def _vjp(self, g: Tensor) -> Any:
        y, x = self._unpack()
        square = x * x + y * y
        if square._data.all():
            scaled = g / square
        else:  # the second derivative at the origin, where there is none, is NaN
            scaled = g * square.reciprocal().masked_fill(square == 0, 0)
        return scaled * x, -scaled * y


def _elementwise(
    name: str, kind: type[Node], function: Callable[[Array], Any], sentence: str
) -> Callable[[Tensor], Tensor]:
    quiet = np.errstate(all="ignore")(function)
    keep = kind._saved_names == ("result",)

    def operation(input: Tensor) -> Tensor:
        array = quiet(floating(input._data))
        return record(kind, array, (input,), () if keep else (input,), keep)

    operation.__name__ = operation.__qualname__ = name
    operation.__doc__ = sentence
    return operation


def _through_math(function: Callable[[float], float], poles: float = math.nan) -> Callable[[Array], Array]:
    """Return a function of real arrays from a function of floats; the result is `poles` where that one raises."""

    def one(value: float) -> float:
        try:
            return function(value)
        except (ValueError, OverflowError):
            return poles

    table = np.frompyfunc(one, 1, 1)

    def whole(array: Array) -> Array:
        refuse_kinds(function.__name__, array, "c")
        return np.asarray(table(array), dtype=array.dtype)

    return whole


def _sigmoid(x: Array) -> Array:
    if x.dtype.kind == "c":
        return np.asarray(1 / (1 + np.exp(-x)))
    small = np.exp(-np.abs(x))
    return np.asarray(np.where(x >= 0, 1, small) / (1 + small), dtype=x.dtype)


def _frac(x: Array) -> Array:
    refuse_kinds("frac", x, "cb")
    return np.asarray(x - np.trunc(x))


exp = _elementwise("exp", ExpBackward0, np.exp, "Return e to the power of every element.")
exp2 = _elementwise("exp2", Exp2Backward0, np.exp2, "Return 2 to the power of every element.")
expm1 = _elementwise("expm1", Expm1Backward0, np.expm1, "Return exp(x) - 1, accurate near 0.")
log = _elementwise("log", LogBackward0, np.log, "Return the natural logarithm.")
log1p = _elementwise("log1p", Log1PBackward0, np.log1p, "Return log(1 + x), accurate near 0.")
log2 = _elementwise("log2", Log2Backward0, np.log2, "Return the logarithm to base 2.")
log10 = _elementwise("log10", Log10Backward0, np.log10, "Return the logarithm to base 10.")
sqrt = _elementwise("sqrt", SqrtBackward0, np.sqrt, "Return the square root.")
rsqrt = _elementwise("rsqrt", RsqrtBackward0, lambda x: 1 / np.sqrt(x), "Return 1 over the square root.")
sin = _elementwise("sin", SinBackward0, np.sin, "Return the sine.")
cos = _elementwise("cos", CosBackward0, np.cos, "Return the cosine.")
tan = _elementwise("tan", TanBackward0, np.tan, "Return the tangent.")
asin = _elementwise("asin", AsinBackward0, np.arcsin, "Return the inverse sine.")
acos = _elementwise("acos", AcosBackward0, np.arccos, "Return the inverse cosine.")
atan = _elementwise("atan", AtanBackward0, np.arctan, "Return the inverse tangent.")
sinh = _elementwise("sinh", SinhBackward0, np.sinh, "Return the hyperbolic sine.")
cosh = _elementwise("cosh", CoshBackward0, np.cosh, "Return the hyperbolic cosine.")
tanh = _elementwise("tanh", TanhBackward0, np.tanh, "Return the hyperbolic tangent.")
asinh = _elementwise("asinh", AsinhBackward0, np.arcsinh, "Return the inverse hyperbolic sine.")
acosh = _elementwise("acosh", AcoshBackward0, np.arccosh, "Return the inverse hyperbolic cosine.")
atanh = _elementwise("atanh", AtanhBackward0, np.arctanh, "Return the inverse hyperbolic tangent.")
sigmoid = _elementwise("sigmoid", SigmoidBackward0, _sigmoid, "Return 1 / (1 + exp(-x)), without overflow.")
erf = _elementwise("erf", ErfBackward0, _through_math(math.erf), "Return the error function.")
erfc = _elementwise("erfc", ErfcBackward0, _through_math(math.erfc), "Return 1 - erf(x), accurate for large x.")
lgamma = _elementwise("lgamma", LgammaBackward0, _through_math(math.lgamma, math.inf), "Return log |Gamma(x)|.")
sinc = _elementwise("sinc", SincBackward0, np.sinc, "Return sin(pi x) / (pi x), 1 at 0.")
frac = _elementwise("frac", FracBackward0, _frac, "Return x - trunc(x).")


def digamma(input: Tensor) -> Tensor:
    """Return psi(x), the derivative of lgamma: -inf at +0, inf at -0, NaN at negative integers."""
    refuse_kinds("digamma", input._data, "c")
    return record(DigammaBackward0, _polygamma_array(0, floating(input._data)), (input,), (input,))


def polygamma(n: int, input: Tensor) -> Tensor:
    """Return psi_n(x), the n-th derivative of digamma, for n >= 1; at 0 and negative integers (-1)^(n+1) inf."""
    return record(PolygammaBackward0, _polygamma_array(n, floating(input._data)), (input,), (input,), order=n)


_BERNOULLI = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510)


def _polygamma_array(n: int, x: Array) -> Array:
    """Shift x above 15 by the recurrence, then sum the asymptotic series (Abramowitz and Stegun 6.3.18, 6.4.11).

    For n = 0 and 1, negative x are reflected first (6.3.7, 6.4.7), so the number of shifts does not grow with |x|.
    """
    work = np.array(x, dtype=np.float64)
    total = np.zeros_like(work)
    sign = 1.0 if n % 2 else -1.0
    with np.errstate(all="ignore"):
        poles = (work <= 0) & (work == np.floor(work))
        work = np.where(poles, np.nan, work)
        mirrored = (work < 0) & (n < 2)
        angle = np.pi * np.where(mirrored, work - np.trunc(work), np.nan)
        work = np.where(mirrored, 1 - work, work)
        while bool(np.any(work < 15)):
            low = work < 15
            total = np.where(low, total + sign * math.factorial(n) / work ** (n + 1), total)
            work = np.where(low, work + 1, work)
        if n == 0:
            tail = np.log(work) - 0.5 / work
            for k, b in enumerate(_BERNOULLI, start=1):
                tail -= b / (2 * k * work ** (2 * k))
        else:
            tail = math.factorial(n - 1) / work**n + math.factorial(n) / (2 * work ** (n + 1))
            for k, b in enumerate(_BERNOULLI, start=1):
                tail += b * math.factorial(2 * k + n - 1) / (math.factorial(2 * k) * work ** (2 * k + n))
            tail *= sign
        result = total + tail
        if n < 2:
            turned = result - np.pi / np.tan(angle) if n == 0 else (np.pi / np.sin(angle)) ** 2 - result
            result = np.where(mirrored, turned, result)
    at_poles = (
        np.where(x == 0, np.copysign(np.inf, -x), np.nan) if n == 0 else sign * np.where(np.isinf(x), np.nan, np.inf)
    )
    return np.asarray(np.where(poles, at_poles, result), dtype=x.dtype)


def abs(input: Tensor) -> Tensor:
    """Return the absolute value; of complex numbers a real one."""
    refuse_kinds("abs", input._data, "b")
    return record(AbsBackward0, np.abs(input._data), (input,), (input,))


def sign(input: Tensor) -> Tensor:
    """Return -1, 0 or 1 by the sign of each real element; 0 for NaN, as in PyTorch."""
    refuse_kinds("sign", input._data, "c")
    return record(SignBackward0, _sign(input._data), (input,))


def _sign(x: Array) -> Array:
    return x.copy() if x.dtype.kind == "b" else np.subtract(x > 0, x < 0, dtype=x.dtype)


def sgn(input: Tensor) -> Tensor:
    """Return the sign of real numbers, and x / |x| (0 at 0) of complex numbers."""
    x = input._data
    if x.dtype.kind == "c":
        size = np.abs(x)
        direction = np.where(size == 0, 0, x / np.where(size == 0, 1, size)).astype(x.dtype)
    else:
        direction = _sign(x)
    return record(SgnBackward0, direction, (input,), (input,))


def round(input: Tensor, *, decimals: int = 0) -> Tensor:
    """Return the elements rounded to `decimals` digits after the point, halves to even."""
    refuse_kinds("round", input._data, "cb")
    return record(RoundBackward0, np.round(input._data, decimals), (input,))


def floor(input: Tensor) -> Tensor:
    """Return the largest integer that is not above each element, in the type of the input."""
    refuse_kinds("floor", input._data, "cb")
    return record(FloorBackward0, np.floor(input._data).astype(input._data.dtype, copy=False), (input,))


def ceil(input: Tensor) -> Tensor:
    """Return the smallest integer that is not below each element, in the type of the input."""
    refuse_kinds("ceil", input._data, "cb")
    return record(CeilBackward0, np.ceil(input._data).astype(input._data.dtype, copy=False), (input,))


def trunc(input: Tensor) -> Tensor:
    """Return the elements rounded towards 0, in the type of the input."""
    refuse_kinds("trunc", input._data, "cb")
    return record(TruncBackward0, np.trunc(input._data).astype(input._data.dtype, copy=False), (input,))


def atan2(input: Tensor, other: Operand) -> Tensor:
    """Return the angle, in radians from -pi to pi, of the point with x = other and y = input."""
    second = operand(other)
    y, x = pair(input, second)
    return record(
        Atan2Backward0,
        applied("atan2", np.arctan2, floating(y), floating(np.asarray(x))),
        (input, second),
        (input, second),
    )


def hypot(input: Tensor, other: Tensor) -> Tensor:
    """Return sqrt(input^2 + other^2), without overflow; the gradient at (0, 0) is NaN, as in PyTorch."""
    x, y = pair(input, other)
    array = applied("hypot", np.hypot, floating(x), floating(y))
    return record(HypotBackward0, array, (input, other), (input, other), keep=True)


def deg2rad(input: Tensor) -> Tensor:
    """Return x pi / 180."""
    return input * (math.pi / 180)


def rad2deg(input: Tensor) -> Tensor:
    """Return x 180 / pi."""
    return input * (180 / math.pi)
