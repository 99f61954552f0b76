"""Gradient clipping, by norm and by value."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from gradcli.engine.creation import tensor
from gradcli.engine.grad_mode import no_grad
from gradcli.engine.ops.joining import stack
from gradcli.engine.ops.statistics import vector_norm
from gradcli.engine.tensor import Tensor


def _gradients(parameters: Tensor | Iterable[Tensor]) -> list[Tensor]:
    given = [parameters] if isinstance(parameters, Tensor) else list(parameters)
    return [parameter._grad for parameter in given if parameter._grad is not None]


def get_total_norm(
    tensors: Iterable[Tensor], norm_type: float = 2.0, error_if_nonfinite: bool = False, foreach: Any = None
) -> Tensor:
    """Return the p-norm of all elements of all tensors together; 0 of no tensors.

    Args:
        tensors: the tensors.
        norm_type: p.
        error_if_nonfinite: raise RuntimeError where the norm is not finite.
        foreach: has no effect.
    """
    del foreach
    norms = [vector_norm(entry, norm_type) for entry in tensors]
    total = vector_norm(stack(norms), norm_type) if norms else tensor(0.0)
    if error_if_nonfinite and not bool(total.isfinite()):
        raise RuntimeError(
            f"The total norm of order {norm_type} for gradients from `parameters` is non-finite, so it cannot be "
            "clipped. To disable this error and scale the gradients by the non-finite norm anyway, set "
            "`error_if_nonfinite=False`"
        )
    return total


@no_grad()
def clip_grad_norm(
    parameters: Tensor | Iterable[Tensor],
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: Any = None,
) -> Tensor:
    """Scale gradients in place to a total norm of at most `max_norm`, and return their norm before."""
    gradients = _gradients(parameters)
    total = get_total_norm(gradients, float(norm_type), error_if_nonfinite, foreach)
    factor = (float(max_norm) / (total + 1e-6)).clamp(max=1.0)
    for gradient in gradients:
        gradient.mul_(factor)
    return total


@no_grad()
def clip_grad_value(parameters: Tensor | Iterable[Tensor], clip_value: float, foreach: Any = None) -> None:
    """Clamp every element of the gradients of parameters to [-clip_value, clip_value] in place."""
    del foreach
    for gradient in _gradients(parameters):
        gradient.clamp_(-float(clip_value), float(clip_value))
