"""Comparisons, logical and bitwise operations, maximum and minimum, where, and clamp."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradcli.engine.dtypes import BY_NUMPY
from gradcli.engine.graph import Node
from gradcli.engine.module_name import PRINTED_MODULE
from gradcli.engine.ops.generic import values, without
from gradcli.engine.ops.operands import Operand, arrays, check_broadcast, operand, pair, refuse_kinds, result_dtype
from gradcli.engine.recording import record
from gradcli.engine.tensor import Tensor, from_array


class MaximumBackward0(Node):
    """The larger operand gets the cotangent; at a tie each gets half."""

    _saved_names = ("self", "other")

    def _vjp(self, g: Tensor) -> Any:
        x, y = self._unpack()
        shared = g.masked_fill(x != y, 0) / 2 if bool(np.any(x._data == y._data)) else 0
        return g.masked_fill(x <= y, 0) + shared, g.masked_fill(y <= x, 0) + shared


class MinimumBackward0(Node):
    """The smaller operand gets the cotangent; at a tie each gets half."""

    _saved_names = ("self", "other")

    def _vjp(self, g: Tensor) -> Any:
        x, y = self._unpack()
        shared = g.masked_fill(x != y, 0) / 2 if bool(np.any(x._data == y._data)) else 0
        return g.masked_fill(x >= y, 0) + shared, g.masked_fill(y >= x, 0) + shared


class WhereBackward0(Node):
    """Each operand gets the cotangent where it was chosen."""

    _on_arrays = True
    _saved_names = ("condition",)

    def _vjp(self, g: Any) -> Any:
        mask = values(self._unpack_like(g)[0])
        return without(g, ~mask) if self._needs(0) else None, without(g, mask) if self._needs(1) else None


class ClampBackward1(Node):
    """d clamp(x) = dx within the limits and on them; 0 outside, and where a number is NaN."""

    _saved_names = ("self",)
    _constant_names = ("min", "max")
    min: Any
    max: Any
    _on_arrays = True

    def _vjp(self, g: Any) -> Any:
        x = values(self._unpack_like(g)[0])
        if self.max is None:
            return without(g, ~(x >= self.min))
        below = x <= self.max
        return without(g, ~(below if self.min is None else below & (x >= self.min)))


class ClampMinBackward0(ClampBackward1):
    """Of `clamp_min`."""


class ClampMaxBackward0(ClampBackward1):
    """Of `clamp_max`."""


class ClampBackward0(Node):
    """As ClampBackward1, with tensors for limits: a limit gets the cotangent where x was beyond it."""

    _saved_names = ("self", "min", "max")

    def _vjp(self, g: Tensor) -> Any:
        x, low, high = self._unpack()
        below = np.zeros(g._data.shape, dtype=np.bool_) if low is None else x._data < low._data
        above = np.zeros(g._data.shape, dtype=np.bool_) if high is None else x._data > high._data
        if low is not None and high is not None:
            crossed = low._data > high._data
            above = above | crossed
            below = below & ~crossed
        inside = np.ones(g._data.shape, dtype=np.bool_) if low is None else x._data >= low._data
        inside = inside if high is None else inside & (x._data <= high._data)
        return (
            g.masked_fill(from_array(~inside), 0),
            None if low is None else g.masked_fill(from_array(~below), 0),
            None if high is None else g.masked_fill(from_array(~above), 0),
        )


def _compare(function: Any, input: Operand, other: Operand, *, ordered: bool = True) -> Tensor:
    x, y = pair(operand(input, "input"), operand(other))
    if ordered and x.dtype.kind == "c":
        name = {"greater": "gt", "greater_equal": "ge", "less": "lt", "less_equal": "le"}.get(function.__name__)
        raise NotImplementedError(f"\"{name}_cpu\" not implemented for '{BY_NUMPY[x.dtype].letter}'")
    return from_array(function(x, y))


def eq(input: Operand, other: Operand) -> Tensor:
    """Return input == other, elementwise (boolean)."""
    return _compare(np.equal, input, other, ordered=False)


def ne(input: Operand, other: Operand) -> Tensor:
    """Return input != other, elementwise (boolean)."""
    return _compare(np.not_equal, input, other, ordered=False)


def lt(input: Operand, other: Operand) -> Tensor:
    """Return input < other, elementwise (boolean)."""
    return _compare(np.less, input, other)


def le(input: Operand, other: Operand) -> Tensor:
    """Return input <= other, elementwise (boolean)."""
    return _compare(np.less_equal, input, other)


def gt(input: Operand, other: Operand) -> Tensor:
    """Return input > other, elementwise (boolean)."""
    return _compare(np.greater, input, other)


def ge(input: Operand, other: Operand) -> Tensor:
    """Return input >= other, elementwise (boolean)."""
    return _compare(np.greater_equal, input, other)


def isnan(input: Tensor) -> Tensor:
    """Return, for every element, whether it is NaN."""
    return from_array(np.isnan(input._data))


def isinf(input: Tensor) -> Tensor:
    """Return, for every element, whether it is infinite."""
    return from_array(np.isinf(input._data))


def isfinite(input: Tensor) -> Tensor:
    """Return, for every element, whether it is finite."""
    return from_array(np.isfinite(input._data))


def isclose(input: Tensor, other: Tensor, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> Tensor:
    """Return |input - other| <= atol + rtol |other|, elementwise; NaN equals NaN with `equal_nan`.

    Raises:
        RuntimeError: the tensors have different element types.
    """
    if input._data.dtype != other._data.dtype:
        raise RuntimeError(f"{input.dtype.letter} did not match {other.dtype.letter}")
    return from_array(np.isclose(input._data, other._data, rtol=rtol, atol=atol, equal_nan=equal_nan))


def allclose(input: Tensor, other: Tensor, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> bool:
    """Tell whether all elements are close; see `isclose`."""
    return bool(isclose(input, other, rtol, atol, equal_nan)._data.all())


def equal(input: Tensor, other: Tensor) -> bool:
    """Tell whether shapes and all elements are equal; NaN equals nothing."""
    return bool(np.array_equal(input._data, other._data))


def logical_not(input: Tensor) -> Tensor:
    """Return whether each element is 0 or False."""
    return from_array(np.logical_not(input._data))


def logical_and(input: Tensor, other: Tensor) -> Tensor:
    """Return, elementwise, whether both are true (not 0)."""
    return from_array(np.logical_and(input._data, other._data))


def logical_or(input: Tensor, other: Tensor) -> Tensor:
    """Return, elementwise, whether at least one is true (not 0)."""
    return from_array(np.logical_or(input._data, other._data))


def logical_xor(input: Tensor, other: Tensor) -> Tensor:
    """Return, elementwise, whether exactly one is true (not 0)."""
    return from_array(np.logical_xor(input._data, other._data))


def _bits(function: Any, input: Tensor, other: Operand) -> Tensor:
    x, y = pair(input, operand(other))
    refuse_kinds(function.__name__, x, "fc")
    return from_array(function(x, y))


def bitwise_and(input: Tensor, other: Operand) -> Tensor:
    """Return input & other, of integers or booleans."""
    return _bits(np.bitwise_and, input, other)


def bitwise_or(input: Tensor, other: Operand) -> Tensor:
    """Return input | other, of integers or booleans."""
    return _bits(np.bitwise_or, input, other)


def bitwise_xor(input: Tensor, other: Operand) -> Tensor:
    """Return input ^ other, of integers or booleans."""
    return _bits(np.bitwise_xor, input, other)


def bitwise_not(input: Tensor) -> Tensor:
    """Return ~input, of integers or booleans.

    Raises:
        TypeError: the elements are of another kind.
    """
    if input._data.dtype.kind in "fc":
        raise TypeError("~ (operator.invert) is only implemented on integer and Boolean-type tensors")
    return from_array(np.invert(input._data))


def _refuse_complex(name: str, *values: object) -> None:
    if any(isinstance(value, Tensor) and value._data.dtype.kind == "c" for value in values):
        raise RuntimeError(f"{name} not implemented for complex tensors.")


def maximum(input: Tensor, other: Tensor) -> Tensor:
    """Return the larger of the two, elementwise, and NaN where one is NaN."""
    _refuse_complex("maximum", input, other)
    return record(MaximumBackward0, np.maximum(*pair(input, other)), (input, other), (input, other))


def minimum(input: Tensor, other: Tensor) -> Tensor:
    """Return the smaller of the two, elementwise, and NaN where one is NaN."""
    _refuse_complex("minimum", input, other)
    return record(MinimumBackward0, np.minimum(*pair(input, other)), (input, other), (input, other))


def where(condition: Tensor, input: Operand = None, other: Operand = None) -> Any:
    """Return input where the condition is True, else other; of a condition alone, its indices, a vector per axis.

    Raises:
        RuntimeError: the condition is not boolean.
    """
    if input is None and other is None:
        return tuple(from_array(positions) for positions in np.nonzero(condition._data))
    if condition._data.dtype.kind != "b":
        raise RuntimeError(
            f"where expected condition to be a boolean tensor, but got a tensor with dtype {condition.dtype.letter}"
        )
    first, second = operand(input, "input"), operand(other)
    x, y = arrays(first, second)
    for a, b in ((x, y), (condition._data, x), (condition._data, y)):
        check_broadcast(np.shape(a), np.shape(b))
    return record(WhereBackward0, np.where(condition._data, x, y), (first, second), (condition,))


def clamp(input: Tensor, min: Operand = None, max: Operand = None) -> Tensor:
    """Return the elements clamped to [min, max]: each a number, a tensor or None; where min > max, max.

    The gradient at a limit that is a number is 1, as in PyTorch.

    Raises:
        RuntimeError: no limit was given.
    """
    if min is None and max is None:
        raise RuntimeError(f"{PRINTED_MODULE}.clamp: At least one of 'min' or 'max' must not be None")
    refuse_kinds("clamp", input._data, "c")
    if isinstance(min, Tensor) or isinstance(max, Tensor):
        return _clamp_tensors(input, min, max)
    return _clamp_numbers(ClampBackward1, input, min, max)


def _clamp_numbers(kind: type[Node], input: Tensor, low: Any, high: Any) -> Tensor:
    x = input._data
    if x.dtype.kind != "f":
        x = arrays(input, *[value for value in (low, high) if value is not None])[0]
    result = x
    if low is not None:
        result = np.maximum(x, x.dtype.type(low))
    if high is not None:
        result = np.minimum(result, x.dtype.type(high))
    return record(kind, result, (input,), (input,), min=low, max=high)


def _clamp_tensors(input: Tensor, low: Any, high: Any) -> Tensor:
    lower = low if isinstance(low, Tensor) or low is None else input.new_tensor(low)
    upper = high if isinstance(high, Tensor) or high is None else input.new_tensor(high)
    kind = result_dtype(*[entry for entry in (input, lower, upper) if entry is not None])
    for limit in (lower, upper):
        if limit is not None:
            check_broadcast(input._data.shape, limit._data.shape)
    result = input._data.astype(kind, copy=False)
    if lower is not None:
        result = np.maximum(result, lower._data.astype(kind, copy=False))
    if upper is not None:
        result = np.minimum(result, upper._data.astype(kind, copy=False))
    return record(ClampBackward0, result, (input, lower, upper), (input, lower, upper))


def clamp_min(input: Tensor, min: Operand) -> Tensor:
    """Return the elements clamped to at least `min`; see `clamp`."""
    return clamp(input, min) if isinstance(min, Tensor) else _clamp_numbers(ClampMinBackward0, input, min, None)


def clamp_max(input: Tensor, max: Operand) -> Tensor:
    """Return the elements clamped to at most `max`; see `clamp`."""
    return clamp(input, None, max) if isinstance(max, Tensor) else _clamp_numbers(ClampMaxBackward0, input, None, max)
