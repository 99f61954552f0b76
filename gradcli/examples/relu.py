"""The rectifier, whose backward edits a copy of the incoming gradient."""

from typing import Any

from gradcli.engine.autograd import Function


class MyReLU(Function):
    """max(input, 0)."""

    @staticmethod
    def forward(ctx: Any, input: Any) -> Any:
        """The positive part of the input."""
        ctx.save_for_backward(input)
        return input.clamp(min=0)

    @staticmethod
    def backward(ctx: Any, grad_output: Any) -> Any:
        """The gradient passes where the input is not negative; at 0 this is the slope from the right."""
        (input,) = ctx.saved_tensors
        grad_input = grad_output.clone()
        grad_input[input < 0] = 0
        return grad_input
