"""Sums, products, quotients and powers, with broadcasting and type promotion."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradcli.engine.dtypes import get_default_dtype
from gradcli.engine.graph import Node, Undifferentiable
from gradcli.engine.ops.generic import over, power
from gradcli.engine.ops.operands import (
    Operand,
    applied,
    both,
    conj,
    operand,
    pair,
    refuse_kinds,
    refuse_zero,
    result_dtype,
)
from gradcli.engine.recording import record
from gradcli.engine.tensor import Tensor, from_array

TWO_BOOLS = (
    "Subtraction, the `-` operator, with two bool tensors is not supported. Use the `^` or `logical_xor()` operator "
    "instead."
)
ONE_BOOL = (
    "Subtraction, the `-` operator, with a bool tensor is not supported. If you are trying to invert a mask, use the "
    "`~` or `logical_not()` operator instead."
)
NEGATED_BOOL = (
    "Negation, the `-` operator, on a bool tensor is not supported. If you are trying to invert a mask, use the `~` or "
    "`logical_not()` operator instead."
)


class AddBackward0(Node):
    """d(x + alpha y) = dx + alpha dy."""

    alpha: Any = 1

    _on_arrays = True

    def _vjp(self, g: Any) -> Any:
        return g, g if self.alpha == 1 else g * conj(self.alpha)


class SubBackward0(Node):
    """d(x - alpha y) = dx - alpha dy."""

    alpha: Any = 1

    _on_arrays = True

    def _vjp(self, g: Any) -> Any:
        return g, (-g if self.alpha == 1 else g * -conj(self.alpha)) if self._needs(1) else None


class RsubBackward1(Node):
    """d(c - x) = -dx for a number c."""

    _on_arrays = True

    def _vjp(self, g: Any) -> Any:
        return -g


class MulBackward0(Node):
    """d(x y) = y dx + x dy."""

    _on_arrays = True
    _saved_names = ("self", "other")

    def _vjp(self, g: Any) -> Any:
        x, y = self._unpack_like(g)
        return g * conj(y) if self._needs(0) else None, g * conj(x) if self._needs(1) else None


class DivBackward2(Node):
    """A rounded quotient is piecewise constant: both gradients are 0."""

    def _vjp(self, g: Tensor) -> Any:
        nothing = g * 0
        return tuple([nothing if self._needs(place) else None for place in range(2)])


class DivBackward0(Node):
    """d(x / y) = dx / y - x / y^2 dy."""

    _on_arrays = True
    _saved_names = ("self", "other")

    def _vjp(self, g: Any) -> Any:
        x, y = self._unpack_like(g)
        by_y = over(g, conj(y))
        return by_y, -by_y * conj(over(x, y)) if self._needs(1) else None


class NegBackward0(Node):
    """d(-x) = -dx."""

    _on_arrays = True

    def _vjp(self, g: Any) -> Any:
        return -g


class PowBackward0(Node):
    """d(x^n) = n x^(n-1) dx for a number n; 0 everywhere for n = 0."""

    _on_arrays = True
    _saved_names = ("self",)
    _constant_names = ("exponent",)
    exponent: Any

    def _vjp(self, g: Any) -> Any:
        (x,) = self._unpack_like(g)
        n = self.exponent
        if n == 0:
            return g.new_zeros(g.shape) if isinstance(g, Tensor) else np.zeros_like(g)
        if n == 1 and not isinstance(g, Tensor):
            return g
        return g * conj(power(x, n - 1) * n if isinstance(g, Tensor) or n != 2 else x * 2)


class PowBackward1(Node):
    """d(x^y) = y x^(y-1) dx + x^y ln(x) dy; the first is 0 where y = 0, the second where x = 0 and y >= 0."""

    _saved_names = ("self", "exponent", "result")

    def _vjp(self, g: Tensor) -> Any:
        x, y, result = self._unpack()
        by_x = by_y = None
        if self._needs(0):
            by_x = (g * conj(y * x ** (y - 1))).masked_fill(y == 0, 0)
        if self._needs(1):
            dead = (x == 0) & (y >= 0) if y._data.dtype.kind != "c" else x == 0
            # A negative number has a logarithm where the power is complex.
            x = x.to(result.dtype) if result._data.dtype.kind == "c" else x
            by_y = (g * conj(result * x.masked_fill(dead, 1).log())).masked_fill(dead, 0)
        return by_x, by_y


class PowBackward2(Node):
    """d(c^y) = c^y ln(c) dy for a number c; 0 for c = 0 and y >= 0."""

    _saved_names = ("exponent", "result")
    base: Any

    def _vjp(self, g: Tensor) -> Any:
        y, result = self._unpack()
        if self.base != 0:
            base = complex(self.base) if result._data.dtype.kind == "c" else self.base
            return g * conj(result * np.log(base).item())
        return (g * (result * -np.inf)).masked_fill(from_array(y._data.real >= 0), 0)


class ReciprocalBackward0(Node):
    """d(1/x) = -1/x^2 dx."""

    _on_arrays = True
    _saved_names = ("result",)

    def _vjp(self, g: Any) -> Any:
        (y,) = self._unpack_like(g)
        return -g * conj(y * y)


class RemainderBackward0(Node):
    """d(x mod c) = dx for a number c."""

    def _vjp(self, g: Tensor) -> Any:
        return g


class RemainderBackward1(Node):
    """d(x mod y) = dx - floor(x / y) dy."""

    _saved_names = ("self", "other")

    def _vjp(self, g: Tensor) -> Any:
        x, y = self._unpack()
        return g, -g * div(x, y, rounding_mode="floor") if self._needs(1) else None


class FmodBackward0(Node):
    """d fmod(x, c) = dx for a number c."""

    def _vjp(self, g: Tensor) -> Any:
        return g


class FmodBackward1(Node):
    """d fmod(x, y) = dx - trunc(x / y) dy."""

    _saved_names = ("self", "other")

    def _vjp(self, g: Tensor) -> Any:
        x, y = self._unpack()
        return g, -g * div(x, y, rounding_mode="trunc") if self._needs(1) else None


def add(input: Operand, other: Operand, *, alpha: Any = 1) -> Tensor:
    """Return input + alpha * other; of two booleans, whether one is True."""
    first, second, x, y = both(input, other)
    if alpha == 1:
        return record(AddBackward0, np.logical_or(x, y) if x.dtype.kind == "b" else x + y, (first, second))
    return record(AddBackward0, x + y * x.dtype.type(alpha), (first, second), alpha=alpha)


def sub(input: Operand, other: Operand, *, alpha: Any = 1) -> Tensor:
    """Return input - alpha * other.

    Raises:
        RuntimeError: one is a boolean, or a tensor of booleans.
    """
    first, second, x, y = both(input, other)
    of_numbers = not isinstance(first, Tensor)
    if any(v._data.dtype.kind == "b" if isinstance(v, Tensor) else isinstance(v, bool) for v in (first, second)):
        raise RuntimeError(TWO_BOOLS if x.dtype.kind == "b" else ONE_BOOL)
    if alpha == 1:
        return record(RsubBackward1, x - y, (second,)) if of_numbers else record(SubBackward0, x - y, (first, second))
    return record(SubBackward0, x - y * x.dtype.type(alpha), (first, second), alpha=alpha)


def rsub(input: Operand, other: Operand) -> Tensor:
    """Return other - input."""
    return sub(other, input)


def mul(input: Operand, other: Operand) -> Tensor:
    """Return input * other."""
    first, second, x, y = both(input, other) if isinstance(input, Tensor) else both(other, input)
    return record(MulBackward0, x * y, (first, second), crossed=True)


def div(input: Operand, other: Operand, *, rounding_mode: str | None = None) -> Tensor:
    """Return input / other; integers are divided in the default floating point type.

    Args:
        input: the dividend.
        other: the divisor.
        rounding_mode: None, "floor" (towards minus infinity) or "trunc" (towards 0). A rounded quotient keeps the type
            of its operands, and its gradient is 0.

    Raises:
        RuntimeError: another rounding mode.
    """
    if rounding_mode is not None:
        if rounding_mode not in ("floor", "trunc"):
            raise RuntimeError(
                f"div expected rounding_mode to be one of None, 'trunc', or 'floor' but found '{rounding_mode}'"
            )
        rounded = floor_divide if rounding_mode == "floor" else _trunc_divide
        return record(DivBackward2, rounded(input, other)._data, (input, other))
    first, second, x, y = both(input, other)
    if not isinstance(first, Tensor):
        return mul(reciprocal(second), first)
    if x.dtype.kind not in "fc":
        kind = get_default_dtype().numpy
        x, y = x.astype(kind), y.astype(kind)
    with np.errstate(divide="ignore", invalid="ignore"):
        quotient_array = x / y
    keep_first = first if isinstance(second, Tensor) and second.requires_grad else None
    return record(DivBackward0, quotient_array, (first, second), (keep_first, second))


def _trunc_divide(first: Operand, second: Operand) -> Tensor:
    x, y = pair(first, second)
    refuse_zero(x, y)
    with np.errstate(divide="ignore", invalid="ignore"):
        if x.dtype.kind not in "iu":
            return record(Node, np.trunc(x / y).astype(x.dtype), ())
        quotient = np.floor_divide(x, y)  # a float64 quotient would round large integers
        return record(Node, quotient + ((quotient < 0) & (quotient * y != x)).astype(x.dtype), ())


def floor_divide(input: Operand, other: Operand) -> Tensor:
    """Return the quotient rounded towards minus infinity; it has no derivative.

    Raises:
        RuntimeError: integers are divided by 0.
    """
    x, y = pair(input, other)
    refuse_kinds("div_floor_cpu", x, "b")
    refuse_zero(x, y)
    with np.errstate(divide="ignore", invalid="ignore"):
        array = applied("floor_divide", np.floor_divide, x, y)
    return record(Undifferentiable, array, (input, other), what="floor_divide")


def remainder(input: Operand, other: Operand) -> Tensor:
    """Return the remainder of input / other, with the sign of `other`, as Python's %.

    Raises:
        RuntimeError: integers are divided by 0.
    """
    first, second, x, y = both(input, other)
    refuse_kinds("remainder_cpu", x, "b")
    refuse_zero(x, y)
    with np.errstate(divide="ignore", invalid="ignore"):
        result = applied("remainder", np.remainder, x, y)
    if isinstance(second, Tensor):
        return record(RemainderBackward1, result, (first, second), (first, second))
    return record(RemainderBackward0, result, (first,))


def fmod(input: Operand, other: Operand) -> Tensor:
    """Return the remainder of input / other, with the sign of `input`, as C's fmod.

    Raises:
        RuntimeError: integers are divided by 0.
    """
    first, second, x, y = both(input, other)
    refuse_kinds("fmod_cpu", x, "b")
    refuse_zero(x, y)
    with np.errstate(divide="ignore", invalid="ignore"):
        result = applied("fmod", np.fmod, x, y)
    if isinstance(second, Tensor):
        return record(FmodBackward1, result, (first, second), (first, second))
    return record(FmodBackward0, result, (first,))


def neg(input: Tensor) -> Tensor:
    """Return -input.

    Raises:
        RuntimeError: the tensor is boolean.
    """
    try:
        array = -input._data
    except TypeError:
        raise RuntimeError(NEGATED_BOOL) from None
    return record(NegBackward0, array, (input,))


def positive(input: Tensor) -> Tensor:
    """Return the input itself."""
    return input


def reciprocal(input: Tensor) -> Tensor:
    """Return 1 / input."""
    x = input._data if input._data.dtype.kind in "fc" else input._data.astype(get_default_dtype().numpy)
    with np.errstate(divide="ignore", invalid="ignore"):
        return record(ReciprocalBackward0, 1 / x, (input,), keep=True)


def pow(input: Operand, exponent: Operand) -> Tensor:
    """Return input raised to a power, elementwise; input, exponent or both are tensors.

    Raises:
        RuntimeError: integers are raised to a negative integer.
    """
    first, second = operand(input, "input"), operand(exponent, "exponent")
    if isinstance(first, Tensor) and not isinstance(second, Tensor):
        return _power(first, second)
    x, y = pair(first, second)
    result = _array_power(x, y)
    if isinstance(first, Tensor):
        return record(PowBackward1, result, (first, second), (first, second), keep=True)
    return record(PowBackward2, result, (second,), (second,), keep=True, base=first)


def _array_power(x: Any, y: Any) -> Any:
    """Return x**y; of integers, 0 where it is a fraction."""
    whole = x.dtype.kind == "i" and y.dtype.kind == "i" and np.any(y < 0)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        return np.where((y < 0) & (np.abs(x) != 1), 0, np.power(x, np.abs(y))) if whole else np.power(x, y)


def _power(base: Tensor, exponent: Any) -> Tensor:
    x = base._data
    if x.dtype.kind not in "fc" or type(exponent) not in (int, float):
        x = x.astype(result_dtype(base, exponent), copy=False)
    if x.dtype.kind in "iu" and exponent < 0:
        raise RuntimeError("Integers to negative integer powers are not allowed.")
    return record(PowBackward0, power(x, exponent), (base,), (base,), exponent=exponent)


def square(input: Tensor) -> Tensor:
    """Return input squared."""
    return pow(input, 2)
