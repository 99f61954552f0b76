"""The cube, twice: from the input alone, and with an intermediate that is also returned.

A tensor that forward computes has no history, so that a derivative of backward with respect to it is lost, unless it
is an output: then backward receives its gradient, and the chain is whole again.
"""

from typing import Any

from gradcli.engine.autograd import Function


class Cube(Function):
    """x ** 3, with the input saved."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        """The cube."""
        ctx.save_for_backward(x)
        return x * x * x

    @staticmethod
    def backward(ctx: Any, grad_output: Any) -> Any:
        """3 x² times the incoming gradient."""
        (x,) = ctx.saved_tensors
        return grad_output * 3 * x * x


class CubeWithIntermediate(Function):
    """(x ** 3, x ** 2): the square is saved for backward, and returned so that it can be differentiated."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> tuple[Any, Any]:
        """The cube and the square."""
        square = x * x
        ctx.save_for_backward(x, square)
        return square * x, square

    @staticmethod
    def backward(ctx: Any, grad_cube: Any, grad_square: Any) -> Any:
        """What the cube and the square contribute."""
        x, square = ctx.saved_tensors
        return grad_cube * 3 * square + grad_square * 2 * x
