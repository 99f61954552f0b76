"""Forward and setup_context apart: forward is then a plain function of its arguments."""
# ruff: noqa: ARG004 (autograd calls forward, backward and setup_context with these arguments, used or not)

from typing import Any

from gradcli.engine.autograd import Function


class MulAdd(Function):
    """x * y + z, elementwise on equal shapes."""

    @staticmethod
    def forward(x: Any, y: Any, z: Any) -> Any:
        """The product and the sum; no ctx."""
        return x * y + z

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        """What backward needs of the inputs."""
        x, y, _ = inputs
        ctx.save_for_backward(x, y)

    @staticmethod
    def backward(ctx: Any, grad_output: Any) -> tuple[Any, Any, Any]:
        """A product's gradients are the other factor's."""
        x, y = ctx.saved_tensors
        return grad_output * y, grad_output * x, grad_output
