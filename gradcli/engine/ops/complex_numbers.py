"""Complex numbers.

As in PyTorch, the gradient of a real loss is dL/dRe(z) + i dL/dIm(z), so gradient descent is `z - lr * z.grad`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gradcli.engine.dtypes import BY_NUMPY, complex_of, get_default_dtype, real_of
from gradcli.engine.graph import Node
from gradcli.engine.ops.constant import passed
from gradcli.engine.ops.operands import pair
from gradcli.engine.ops.parts import select
from gradcli.engine.recording import record, record_view
from gradcli.engine.tensor import Tensor, from_array


class ConjBackward0(Node):
    """The conjugate of the cotangent."""

    def _vjp(self, g: Tensor) -> Any:
        return conj(g)


class ViewAsRealBackward0(Node):
    """The cotangent's pairs as complex numbers."""

    def _vjp(self, g: Tensor) -> Any:
        return view_as_complex(g.contiguous())


class ViewAsComplexBackward0(Node):
    """The complex cotangent as pairs."""

    def _vjp(self, g: Tensor) -> Any:
        return view_as_real(g)


class ComplexBackward0(Node):
    """The real and the imaginary part of the cotangent."""

    def _vjp(self, g: Tensor) -> Any:
        return real(g), imag(g)


class AngleBackward0(Node):
    """d arg(z) = Im(conj(z) dz) / |z|^2; 0 for real numbers and at 0."""

    _saved_names = ("self",)

    def _vjp(self, g: Tensor) -> Any:
        (z,) = self._unpack()
        if z._data.dtype.kind != "c":
            return g * 0
        x, y = z.real, z.imag
        size = x * x + y * y
        zero = size == 0
        scaled = (g / size.masked_fill(zero, 1)).masked_fill(zero, 0)
        return complex(-scaled * y, scaled * x)


def conj(input: Tensor) -> Tensor:
    """Return the complex conjugate; a real tensor is returned itself."""
    if input._data.dtype.kind != "c":
        return input
    return record(ConjBackward0, input._data.conj(), (input,))


def resolve_conj(input: Tensor) -> Tensor:
    """Return the tensor itself: conjugates are computed at once."""
    return input


def view_as_real(input: Tensor) -> Tensor:
    """Return a view [..., 2] (real, imaginary) of a complex tensor [...].

    Raises:
        RuntimeError: the tensor is real.
    """
    if input._data.dtype.kind != "c":
        raise RuntimeError("view_as_real is only supported for complex tensors")
    array = input._data[..., None].view(real_of(input._data.dtype))
    return record_view(ViewAsRealBackward0, array, input, view_as_real)


def view_as_complex(input: Tensor) -> Tensor:
    """Return a complex view [...] of pairs (real, imaginary) [..., 2].

    Raises:
        RuntimeError: the last axis does not have length 2.
    """
    if not input._data.ndim or input._data.shape[-1] != 2:
        raise RuntimeError("Tensor must have a last dimension of size 2")
    array = input._data.view(complex_of(input._data.dtype))[..., 0]
    return record_view(ViewAsComplexBackward0, array, input, view_as_complex)


def real(input: Tensor) -> Tensor:
    """Return a view of the real part; a real tensor is returned itself."""
    return input if input._data.dtype.kind != "c" else select(view_as_real(input), -1, 0)


def imag(input: Tensor) -> Tensor:
    """Return a view of the imaginary part.

    Raises:
        RuntimeError: the tensor is real.
    """
    if input._data.dtype.kind != "c":
        raise RuntimeError("imag is not implemented for tensors with non-complex dtypes.")
    return select(view_as_real(input), -1, 1)


def complex(real: Tensor, imag: Tensor) -> Tensor:
    """Return real + i imag; raises RuntimeError unless both are real tensors of one type."""
    x, y = _parts(real, imag)
    array = np.empty(np.broadcast_shapes(x.shape, y.shape), dtype=complex_of(x.dtype))
    array.real, array.imag = x, y
    return record(ComplexBackward0, array, (real, imag))


def _parts(first: Tensor, second: Tensor) -> tuple[Any, Any]:
    """Return the arrays of two real tensors of one type."""
    x, y = pair(first, second)
    letters = [BY_NUMPY[part._data.dtype].letter for part in (first, second)]
    if any(part._data.dtype.kind != "f" for part in (first, second)):
        raise RuntimeError(
            f"Expected both inputs to be Half, Float or Double tensors but got {letters[0]} and {letters[1]}"
        )
    if letters[0] != letters[1]:
        raise RuntimeError(
            f"Expected object of scalar type {letters[0]} but got scalar type {letters[1]} for second argument"
        )
    return x, y


def polar(abs: Tensor, angle: Tensor) -> Tensor:
    """Return abs * (cos(angle) + i sin(angle)); raises RuntimeError unless both are real tensors of one type."""
    _parts(abs, angle)
    radius = passed(abs, abs)
    return complex(radius * angle.cos(), radius * angle.sin())


def angle(input: Tensor) -> Tensor:
    """Return the argument of each number, in radians from -pi to pi."""
    x = input._data if input._data.dtype.kind in "fc" else input._data.astype(get_default_dtype().numpy)
    return record(AngleBackward0, np.angle(x), (input,), (input,))


def is_complex(input: Tensor) -> bool:
    """Tell whether the elements are complex numbers."""
    return input._data.dtype.kind == "c"


def is_real(input: Tensor) -> Tensor:
    """Return, for every element, whether its imaginary part is 0."""
    return from_array(np.isreal(input._data))
