"""Several outputs: backward receives one gradient for each."""
# ruff: noqa: ARG004 (autograd calls forward, backward and setup_context with these arguments, used or not)

from typing import Any

from gradcli.engine.autograd import Function


class SumAndDifference(Function):
    """(a + b, a - b), elementwise on equal shapes."""

    @staticmethod
    def forward(ctx: Any, a: Any, b: Any) -> tuple[Any, Any]:
        """Both results; nothing need be saved."""
        return a + b, a - b

    @staticmethod
    def backward(ctx: Any, grad_sum: Any, grad_difference: Any) -> tuple[Any, Any]:
        """Each input's share of both gradients."""
        return grad_sum + grad_difference, grad_sum - grad_difference


class DoubleWithMask(Function):
    """(2 x, x > 0): the mask is an output without a gradient."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> tuple[Any, Any]:
        """The double, and where the input is positive."""
        mask = x > 0
        ctx.mark_non_differentiable(mask)
        return x * 2, mask

    @staticmethod
    def backward(ctx: Any, grad_double: Any, grad_mask: Any) -> Any:
        """The mask's gradient is zeros and is ignored."""
        return grad_double * 2
