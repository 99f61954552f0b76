"""The exponential, whose backward needs the output only."""

from typing import Any

from gradcli.engine.autograd import Function


class Exp(Function):
    """e ** x."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        """The exponential; it is its own derivative, so it is what is saved."""
        result = x.exp()
        ctx.save_for_backward(result)
        return result

    @staticmethod
    def backward(ctx: Any, grad_output: Any) -> Any:
        """The output times the incoming gradient."""
        (result,) = ctx.saved_tensors
        return grad_output * result
