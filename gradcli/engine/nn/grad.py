"""The namespace `nn.grad`: gradients of convolutions, for backward functions that are written by hand.

A convolution is linear in its input and in its weight, so the gradient with respect to one needs only its shape.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gradcli.engine.backward.api import grad
from gradcli.engine.grad_mode import enable_grad, is_grad_enabled
from gradcli.engine.nn.functional import conv2d
from gradcli.engine.tensor import Tensor

__all__ = [
    "conv1d_input",
    "conv1d_weight",
    "conv2d_input",
    "conv2d_weight",
    "conv3d_input",
    "conv3d_weight",
]


def conv2d_input(input_size: Any, weight: Tensor, grad_output: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """Return the gradient of a convolution (1D, 2D or 3D) with respect to its input.

    Args:
        input_size: the shape of the input.
        weight: the weight.
        grad_output: the gradient with respect to the output.
        args: stride, padding, dilation and groups of the convolution, in this order.
        kwargs: the same by name.
    """
    return _pulled(weight.new_zeros(tuple(input_size)), lambda image: (image, weight), grad_output, args, kwargs)


def conv2d_weight(input: Tensor, weight_size: Any, grad_output: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """Return the gradient with respect to the weight, whose shape is `weight_size`; see `conv2d_input`."""
    return _pulled(input.new_zeros(tuple(weight_size)), lambda weight: (input, weight), grad_output, args, kwargs)


def _pulled(
    start: Tensor,
    both: Callable[[Tensor], tuple[Tensor, Tensor]],
    grad_output: Tensor,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> Tensor:
    wanted = is_grad_enabled()
    with enable_grad():
        start.requires_grad_()
        result = conv2d(*both(start), None, *args, **kwargs)
        (found,) = grad(result, start, grad_output, create_graph=wanted)
    gradient: Tensor = found
    return gradient


conv1d_input = conv3d_input = conv2d_input
conv1d_weight = conv3d_weight = conv2d_weight
