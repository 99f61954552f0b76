"""What a hand-written derivative returned, read by its shape: a gradient, a Jacobian, or an elementwise derivative."""

from collections.abc import Callable, Sequence
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from gradcli.backends.numpy.kept_state import KeptState, kept_on_object
from gradcli.cases import Argument
from gradcli.frozen import dataclass


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class GradientPair:
    """A function with its hand-written derivative; None where the function returns (value, gradient) itself.

    `note` says how the derivative was found if nobody named it; `is_layer` that it gets what the function kept for it.
    """

    function: Callable[..., Any]
    gradient: Callable[..., Any] | None
    note: str = ""
    is_layer: bool = False

    @property
    def keeps_state(self) -> bool:
        """Whether the derivative reads what the function keeps on an object, as in a layer: it is of the last call."""
        return bool(self._kept)

    @property
    def takes_state(self) -> bool:
        """Whether the derivative also removes what it reads there, so that each call needs a forward of its own."""
        return self._kept.taken

    @property
    def _kept(self) -> KeptState:
        return KeptState() if self.gradient is None else kept_on_object(self.function, self.gradient)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """The derivative returned for one input, pulled back along a cotangent; `fits` says whether its shape was known."""

    value: NDArray[Any]
    fits: bool


def floating_positions(arguments: Sequence[Argument]) -> list[int]:
    """The positions of the floating arrays among the arguments."""
    return [i for i, a in enumerate(arguments) if a.is_tensor and a.value.dtype.kind in "fc"]


def needed_positions(arguments: Sequence[Argument]) -> list[int]:
    """The positions of the arrays that require a gradient; of all floating arrays if none does."""
    floating = floating_positions(arguments)
    return [i for i in floating if arguments[i].requires_grad] or floating


def pulled_back(
    derivative: NDArray[Any], x: NDArray[Any], y: NDArray[Any], cotangent: NDArray[Any], *, is_vjp: bool
) -> Claim:
    """The gradient of Re <cotangent, y> with respect to x that a derivative stands for.

    Args:
        derivative: what was returned for x. As a vjp it is the answer itself. Else it is read by its shape: y's shape
            and then x's, or (y.size, x.size), for a Jacobian; x's where y has one entry, for a gradient; that of both
            where they are equal, for an elementwise derivative.
        x: the input.
        y: the output.
        cotangent: of y's shape.
        is_vjp: whether the derivative was given the cotangent.

    Returns:
        The claim, of x's shape where the derivative's shape is one of these. A complex output has a complex derivative
        dy/dx, whose adjoint is its conjugate; of a real output the gradient itself is given, as PyTorch has it.
    """
    if is_vjp:
        return Claim(value=derivative, fits=derivative.shape == x.shape)
    adjoint = np.conj(derivative) if y.dtype.kind == "c" else derivative
    if derivative.shape == y.shape + x.shape:
        value = np.tensordot(cotangent, adjoint, axes=cotangent.ndim)
    elif y.size == 1 and derivative.shape == x.shape:
        value = cotangent.reshape(()) * adjoint
    elif derivative.shape == (y.size, x.size):
        value = (cotangent.reshape(-1) @ adjoint).reshape(x.shape)
    elif derivative.shape == x.shape == y.shape:
        value = cotangent * adjoint
    else:
        single = cotangent.reshape(()) * adjoint if y.size == 1 else adjoint
        return Claim(value=np.asarray(single), fits=False)
    return Claim(value=np.asarray(value), fits=True)


def is_number(value: object) -> bool:
    """Whether a value is a single number: of Python, of NumPy, or an array with one entry and no axes."""
    if isinstance(value, np.ndarray):
        return value.ndim == 0
    return isinstance(value, int | float | complex | np.number) and not isinstance(value, bool)
