"""What is asked of inputs, and of a backward apart from its numbers."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

import numpy as np

from gradcli.tolerance.problem import Problem, array_of, as_tuple, bits_of, differentiable

LOW_PRECISION = (
    "Input #{} requires gradient and is not a double precision floating point or complex. This check will likely fail "
    "if all the inputs are not of double precision floating point or complex. "
)


def check_undefined_gradients(problem: Problem, outputs: Sequence[Any] | None = None) -> None:
    """Backward must take None for gradients of outputs (as it gets them from operations that give none).

    Args:
        problem: the function at its inputs.
        outputs: what it returned there, with a graph through which no backward pass has run; another call by default.
    """
    given = differentiable(problem.function(*problem.inputs)) if outputs is None else outputs
    outputs = [entry for entry in given if entry.requires_grad]
    if not outputs:
        return
    choices = [[True] * len(outputs)]
    if len(outputs) > 1:
        choices += [[place != kept for place in range(len(outputs))] for kept in range(len(outputs))]
    undefined = _undefiner(problem.torch)
    for choice in choices:
        passed = undefined(choice, *outputs)
        seeds = [problem.tensor(np.ones_like(array_of(entry)), entry) for entry in outputs]
        try:
            found = problem.gradients(as_tuple(passed), seeds)
        except Exception as error:
            what = "all are" if all(choice) else f"only output {choice.index(False)} is used and the others are"
            raise problem.error(
                f"Expected backward function to handle undefined output grads: where {what} None, it raises "
                f"{type(error).__name__}: {error}\nTest each grad_output for None, or leave set_materialize_grads "
                "on, so that zeros arrive."
            ) from error
        if all(choice) and any(entry is not None and bool((array_of(entry) != 0).any()) for entry in found):
            raise problem.error(
                "Expected all input grads to be undefined or zero when all output grads are undefined or zero."
            )


@functools.cache
def _undefiner(framework: ModuleType) -> Callable[..., Any]:
    """Return an identity whose backward gives None for chosen outputs; frameworks take long to make a class."""

    def forward(ctx: Any, choice: list[bool], *tensors: Any) -> Any:
        ctx.choice = choice
        return tuple(tensor.clone() for tensor in tensors)

    def backward(ctx: Any, *cotangents: Any) -> Any:
        return (None, *(None if drop else g for drop, g in zip(ctx.choice, cotangents, strict=True)))

    body = {"forward": staticmethod(forward), "backward": staticmethod(backward)}
    apply: Callable[..., Any] = type("Undefined", (framework.autograd.Function,), body).apply  # type: ignore[attr-defined]  # made at run time
    return apply


def check_gradients_fit(problem: Problem, outputs: list[Any], check_grad_dtypes: bool) -> None:
    """Gradients must have the shape, and where asked the type, of their inputs."""
    tracked = [output for output in outputs if output.requires_grad]
    if not tracked:
        raise problem.error("no Tensors requiring grad found in input")
    seeds = [problem.tensor(np.zeros_like(array_of(entry)), entry) for entry in tracked]
    for gradient, tensor in zip(problem.gradients(tracked, seeds), problem.tracked(), strict=True):
        if gradient is None:
            continue
        if bool((array_of(gradient) != 0).any()):
            raise problem.error("backward not multiplied by grad_output")
        if check_grad_dtypes and gradient.dtype != tensor.dtype:
            raise problem.error("grad is incorrect type")
        if gradient.shape != tensor.shape:
            raise problem.error("grad is incorrect size")


def warn_of_low_precision(problem: Problem) -> None:
    """Warn of tracked inputs that are not in double precision."""
    for place in problem.places:
        if bits_of(problem.inputs[place]) < 64:
            warnings.warn(LOW_PRECISION.format(place), UserWarning, stacklevel=4)


def refuse_overlaps(problem: Problem) -> None:
    """Refuse inputs whose elements share memory, as no step can be taken in one of them alone.

    Raises:
        RuntimeError: there is one.
    """
    for place in problem.places:
        tensor = problem.inputs[place]
        strides = tensor.stride()
        if any(step == 0 and size > 1 for step, size in zip(strides, tensor.shape, strict=True)):
            raise RuntimeError(
                f"The {place}th input has a dimension with stride 0. gradcheck only supports inputs that are "
                "non-overlapping to be able to compute the numerical gradients correctly. You should call "
                ".contiguous on "
                "the input before passing it to gradcheck."
            )
        if not tensor.is_leaf:
            tensor.retain_grad()
