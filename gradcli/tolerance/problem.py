"""A function at a point, in the terms of the framework that its tensors belong to."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gradcli.backends.registry import backend_named
from gradcli.backends.tensor.containers import container_leaves
from gradcli.backends.tensor.function_backend import FunctionBackend

Array = NDArray[Any]
Function = Callable[..., Any]


NONE_TRACKED = (
    "gradcheck expects at least one input tensor to require gradient, but none of them have requires_grad=True."
)


class GradcheckError(RuntimeError):
    """A gradient that `gradcheck` does not accept."""

    __module__ = "gradcli"


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
        f"gradcheck expects tensors of PyTorch or gradcli.engine, got {type(tensor).__module__}.{type(tensor).__name__}"
    )


def is_tensor(value: object) -> bool:
    """Tell whether a value is a tensor of some framework."""
    return {"requires_grad", "grad_fn", "detach"} <= names_of(value)


def holds_tracked(value: object) -> bool:
    """Tell whether a value is a container with a tensor in it that requires a gradient."""
    if is_tensor(value):
        return False
    tensors: list[Any] = [leaf for path, leaf in container_leaves(value) if path and is_tensor(leaf)]
    return any(tensor.requires_grad for tensor in tensors)


def out_of_inference(value: Any) -> Any:
    """A copy that a graph can be made of, for a tensor that was made in inference mode; any other value itself."""
    if "is_inference" not in names_of(value) or not is_tensor(value) or not value.is_inference():
        return value
    return value.detach().clone().requires_grad_(value.requires_grad)


def names_of(value: object) -> frozenset[str]:
    """What the class of a value offers; a tensor's takes long to list."""
    owner: Any = type(value)
    return _names(owner)


@functools.lru_cache(maxsize=256)
def _names(owner: Any) -> frozenset[str]:
    return frozenset(dir(owner))


@functools.cache
def error_class(framework: ModuleType) -> type[GradcheckError]:
    """Return an error that is also the framework's own, where it has one."""
    theirs = sys.modules.get(framework.__name__ + ".autograd.gradcheck")
    own = vars(theirs).get("GradcheckError") if theirs is not None else None
    if own is None or own is GradcheckError:
        return GradcheckError
    return type("GradcheckError", (GradcheckError, own), {"__doc__": GradcheckError.__doc__, "__module__": "gradcli"})


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
    """A tensor's values as an array: its own memory where NumPy can see it, else a copy."""
    try:
        return np.asarray(tensor.detach().numpy())
    except (RuntimeError, TypeError):  # on a device, lazily conjugated or zero, or of half the usual bits
        if framework_of(tensor).__name__ != "torch":
            raise
        backend = backend_named("torch")
        if not isinstance(backend, FunctionBackend):
            raise
        return backend.framework.as_array(tensor)


def bits_of(tensor: Any) -> int:
    """The bits of a real number, or of each part of a complex one, in a tensor's element type."""
    digits = "".join(c for c in str(tensor.dtype) if c.isdigit())
    return int(digits) // (2 if tensor.is_complex() else 1)


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

    def tensor_outputs(self) -> list[Any]:
        """Return the outputs that have a gradient, and refuse an output that PyTorch cannot take differences of.

        Raises:
            AttributeError: an output is not a tensor.
            RuntimeError: an output holds booleans.
        """
        results = as_tuple(self.function(*self.inputs))
        for number, output in enumerate(results):
            if not is_tensor(output):
                kind = type(output).__name__
                raise AttributeError(
                    f"'{kind}' object has no attribute 'requires_grad': output {number} of the function is not a "
                    "tensor, and gradcheck compares tensors"
                )
            if str(output.dtype) == "torch.bool":
                raise RuntimeError(
                    "Subtraction, the `-` operator, with two bool tensors is not supported. Use the `^` or "
                    f"`logical_xor()` operator instead: output {number} of the function holds booleans, and gradcheck "
                    "takes differences of outputs"
                )
        return differentiable(results)

    def dense_outputs(self) -> list[Any]:
        """Return the outputs that have a gradient, and refuse what PyTorch refuses.

        Raises:
            ValueError: an output is sparse, or a container whose tensors would be passed over, or none is a tensor.
        """
        results = as_tuple(self.function(*self.inputs))
        for number, output in enumerate(results):
            if holds_tracked(output):
                raise ValueError(
                    f"output {number} is a {type(output).__name__} that holds tensors, and gradcheck compares tensors: "
                    "return them in one tuple"
                )
            if is_tensor(output) and "layout" in names_of(output) and str(output.layout) != "torch.strided":
                raise ValueError(
                    f"output {number} is {output.layout}, and gradcheck compares dense outputs: "
                    "call to_dense(masked_grad=...) on it inside the function"
                )
        if not any(is_tensor(output) for output in results):
            found = " and ".join(dict.fromkeys(type(output).__name__ for output in results)) or "an empty tuple"
            raise ValueError(f"the function returned {found}, and gradcheck compares tensors: return one or several")
        return differentiable(results)

    @functools.cached_property
    def output_positions(self) -> tuple[int, ...]:
        """The places of the outputs through which a gradient flows, among all that the function returns."""
        results = as_tuple(self.function(*self.inputs))
        kept = [result for result in differentiable(results) if result.requires_grad]
        return tuple(place for place, result in enumerate(results) if any(result is each for each in kept))

    def tensor(self, array: Any, like: Any) -> Any:
        """An array as a tensor of the framework, of the element type and on the device of another."""
        made = self.torch.tensor(np.asarray(array), dtype=like.dtype)
        return made if str(like.device) == "cpu" else made.to(like.device)

    def values(self) -> list[Array]:
        """Return copies of the outputs' values."""
        return [array_of(output).copy() for output in self.outputs()]

    def gradients(self, outputs: Sequence[Any], cotangents: Sequence[Any], **options: Any) -> list[Any]:
        """Return the gradients of all tracked inputs."""
        found = self.torch.autograd.grad(
            list(outputs), self.tracked(), list(cotangents), retain_graph=True, allow_unused=True, **options
        )
        return list(found)
