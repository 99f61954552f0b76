"""A function at a point, in the terms of the framework that its tensors belong to."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Function = Callable[..., Any]


NONE_TRACKED = (
    "gradcheck expects at least one input tensor to require gradient, but none of them have requires_grad=True."
)


class GradcheckError(RuntimeError):
    """A gradient that `gradcheck` does not accept."""


def framework_of(tensor: object) -> ModuleType:
    """Return the module in whose names a tensor is worked with: the package above its class that has `autograd`.

    Raises:
        TypeError: no such package is loaded.
    """
    parts = type(tensor).__module__.split(".")
    for length in range(len(parts), 0, -1):
        module = sys.modules.get(".".join(parts[:length]))
        if module is not None and {"Tensor", "autograd"} <= vars(module).keys():
            return module
    raise TypeError(
        f"gradcheck expects tensors of a loaded framework, got {type(tensor).__module__}.{type(tensor).__name__}"
    )


def is_tensor(value: object) -> bool:
    """Tell whether a value is a tensor of some framework."""
    return all(name in dir(type(value)) for name in ("requires_grad", "grad_fn", "detach"))


@functools.cache
def error_class(framework: ModuleType) -> type[GradcheckError]:
    """Return an error that is also the framework's own, where it has one."""
    theirs = sys.modules.get(framework.__name__ + ".autograd.gradcheck")
    own = vars(theirs).get("GradcheckError") if theirs is not None else None
    if own is None or own is GradcheckError:
        return GradcheckError
    return type("GradcheckError", (GradcheckError, own), {"__doc__": GradcheckError.__doc__})


def as_tuple(value: Any) -> tuple[Any, ...]:
    """Return a tuple of what was given alone, in a list, or in a tuple."""
    if isinstance(value, (tuple, list)):
        return tuple(value)
    return (value,)


def differentiable(result: Any) -> list[Any]:
    """Return the outputs whose elements are real or complex numbers."""
    outputs = as_tuple(result)
    return [entry for entry in outputs if is_tensor(entry) and (entry.is_floating_point() or entry.is_complex())]


def array_of(tensor: Any) -> Array:
    """Return the memory of a tensor as an array; writing to it changes the tensor."""
    return np.asarray(
        tensor.detach().resolve_conj().numpy() if "resolve_conj" in dir(tensor) else tensor.detach().numpy()
    )


def kind_of(tensor: Any) -> np.dtype[Any]:
    """Return the element type of a tensor."""
    return array_of(tensor).dtype


def wrap(problem: Problem, array: Array, like: Any) -> Any:
    """Return an array as a tensor of the framework, of the element type of another."""
    return problem.torch.tensor(array, dtype=like.dtype)


class Problem:
    """A function at a point: its tracked inputs, and its differentiable outputs."""

    def __init__(self, function: Function, inputs: tuple[Any, ...]) -> None:
        self.function = function
        self.inputs = inputs
        self.places = [i for i, value in enumerate(inputs) if is_tensor(value) and value.requires_grad]
        if not self.places:
            raise ValueError(NONE_TRACKED)
        self.torch = framework_of(inputs[self.places[0]])
        self.error = error_class(self.torch)

    def tracked(self) -> list[Any]:
        """Return the inputs that are differentiated by."""
        return [self.inputs[place] for place in self.places]

    def outputs(self) -> list[Any]:
        """Return the outputs that have a gradient."""
        return differentiable(self.function(*self.inputs))

    def values(self) -> list[Array]:
        """Return copies of the outputs' values."""
        return [array_of(output).copy() for output in self.outputs()]

    def gradients(self, outputs: Sequence[Any], cotangents: Sequence[Any], **options: Any) -> list[Any]:
        """Return the gradients of all tracked inputs."""
        found = self.torch.autograd.grad(
            list(outputs), self.tracked(), list(cotangents), retain_graph=True, allow_unused=True, **options
        )
        return list(found)
