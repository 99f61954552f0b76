"""bfloat16 in Triton's interpreter: rounded to nearest when it is stored, and computed in float32.

The interpreter keeps bfloat16 as 16 bits. It cuts off the digits of a float32 instead of rounding, takes a float64 for
a whole number, and adds and multiplies the bits as whole numbers. A GPU computes in float32 and rounds each result.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

OPERATIONS = ("binary_op", "ternary_op", "unary_op", "create_fma", "create_erf", "create_rsqrt", "create_dot")
"""The methods of the interpreter's builder that compute with floating-point numbers."""
_NAN = 0x7FC0


def converted(interpreter: Any, cast: Callable[..., Any], builder: Any, source: Any, wanted: Any) -> Any:
    """A conversion from or to bfloat16, by float32; any other as the interpreter makes it."""
    half, single = interpreter.tl.bfloat16, interpreter.tl.float32
    old, new = source.dtype.scalar, wanted.scalar
    if (old == half) == (new == half):
        return cast(builder, source, wanted)
    if old == half:
        return cast(builder, _widened(interpreter, source), wanted)
    return _rounded(interpreter, source if old == single else cast(builder, source, single))


def computed(interpreter: Any, operation: Callable[..., Any]) -> Callable[..., Any]:
    """An operation that computes with bfloat16 in float32, and rounds its result where its last operand is bfloat16."""
    handle, half, single = interpreter.TensorHandle, interpreter.tl.bfloat16, interpreter.tl.float32

    def is_half(value: object) -> bool:
        return isinstance(value, handle) and bool(value.dtype.scalar == half)

    def in_float32(builder: Any, *operands: Any) -> Any:
        halves = [is_half(operand) for operand in operands]
        if not any(halves):
            return operation(builder, *operands)
        wide = [_widened(interpreter, o) if narrow else o for o, narrow in zip(operands, halves, strict=True)]
        found = operation(builder, *wide)
        last = [o for o in operands if isinstance(o, handle)][-1]
        if not is_half(last) or found.dtype.scalar != single or found.data.dtype != np.float32:
            return found
        return _rounded(interpreter, found)

    return in_float32


def _widened(interpreter: Any, source: Any) -> Any:
    values = (source.data.astype(np.uint32) << 16).view(np.float32)
    return interpreter.TensorHandle(values, interpreter.tl.float32)


def _rounded(interpreter: Any, source: Any) -> Any:
    """float32 to the nearest bfloat16, ties to even."""
    values = np.ascontiguousarray(source.data, np.float32)
    bits = values.view(np.uint32)
    rounded = (bits + np.uint32(0x7FFF) + ((bits >> 16) & np.uint32(1))) >> 16
    kept = np.where(np.isnan(values), _NAN, rounded).astype(np.uint16).reshape(source.data.shape)
    return interpreter.TensorHandle(kept, interpreter.tl.bfloat16)
