"""Multiplication by a number, which is not a tensor and has no gradient."""

from typing import Any

from gradcli.engine.autograd import Function


class MulConstant(Function):
    """tensor * constant."""

    @staticmethod
    def forward(ctx: Any, tensor: Any, constant: float) -> Any:
        """The product; the number is kept as an attribute, since only tensors can be saved for backward."""
        ctx.constant = constant
        return tensor * constant

    @staticmethod
    def backward(ctx: Any, grad_output: Any) -> tuple[Any, None]:
        """The chain rule's factor is the constant itself."""
        return grad_output * ctx.constant, None
