"""A dense layer with an optional bias."""

from typing import Any

from gradcli.engine.autograd import Function


class LinearFunction(Function):
    """input @ weight.T + bias; input is (n, d), weight (m, d), bias (m) or None."""

    @staticmethod
    def forward(ctx: Any, input: Any, weight: Any, bias: Any = None) -> Any:
        """The layer's output, shape (n, m)."""
        ctx.save_for_backward(input, weight)
        output = input.mm(weight.t())
        return output if bias is None else output + bias.unsqueeze(0)

    @staticmethod
    def backward(ctx: Any, grad_output: Any) -> tuple[Any, ...]:
        """A gradient for each argument that needs one."""
        input, weight = ctx.saved_tensors
        need_input, need_weight, *need_bias = ctx.needs_input_grad
        grad_input = grad_output.mm(weight) if need_input else None
        grad_weight = grad_output.t().mm(input) if need_weight else None
        grad_bias = grad_output.sum(0) if any(need_bias) else None
        return grad_input, grad_weight, grad_bias
