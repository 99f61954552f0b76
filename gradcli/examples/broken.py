"""Functions with the mistakes that tutorials and their readers make, each wrong in one place that it names."""
# ruff: noqa: ARG004 (autograd calls forward, backward and setup_context with these arguments, used or not)

from typing import Any

from gradcli.engine.autograd import Function


class LinearSwapped(Function):
    """A dense layer whose weight gradient is assigned to the input's variable."""

    @staticmethod
    def forward(ctx: Any, input: Any, weight: Any, bias: Any = None) -> Any:
        """Right: input @ weight.T + bias."""
        ctx.save_for_backward(input, weight)
        output = input.mm(weight.t())
        return output if bias is None else output + bias.unsqueeze(0)

    @staticmethod
    def backward(ctx: Any, grad_output: Any) -> tuple[Any, ...]:
        """Wrong: the second branch writes into grad_input, and grad_weight stays None."""
        input, weight = ctx.saved_tensors
        grad_input = grad_weight = grad_bias = None
        if ctx.needs_input_grad[0]:
            grad_input = grad_output.mm(weight)
        if ctx.needs_input_grad[1]:
            grad_input = grad_output.t().mm(input)
        if any(ctx.needs_input_grad[2:]):
            grad_bias = grad_output.sum(0)
        return grad_input, grad_weight, grad_bias


class MulConstantForgotten(Function):
    """Multiplication by a constant whose backward forgets the constant."""

    @staticmethod
    def forward(ctx: Any, tensor: Any, constant: float) -> Any:
        """Right: tensor * constant."""
        return tensor * constant

    @staticmethod
    def backward(ctx: Any, grad_output: Any) -> tuple[Any, None]:
        """Wrong: the factor is missing."""
        return grad_output, None


class ReLUWithoutClone(Function):
    """The rectifier whose backward edits the gradient it was handed."""

    @staticmethod
    def forward(ctx: Any, input: Any) -> Any:
        """Right: the positive part."""
        ctx.save_for_backward(input)
        return input.clamp(min=0)

    @staticmethod
    def backward(ctx: Any, grad_output: Any) -> Any:
        """Wrong: grad_output belongs to the caller; without a clone the caller's gradient changes too."""
        (input,) = ctx.saved_tensors
        grad_output[input < 0] = 0
        return grad_output


class CubeSavedIntermediate(Function):
    """The cube whose backward uses a saved intermediate that is neither an input nor an output."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        """Right: x ** 3, but only the square is kept."""
        square = x * x
        ctx.save_for_backward(square)
        return square * x

    @staticmethod
    def backward(ctx: Any, grad_output: Any) -> Any:
        """Right once, wrong twice: the square has no history, so that the second derivative is zero."""
        (square,) = ctx.saved_tensors
        return grad_output * 3 * square
