"""A dense layer that never trains its bias: backward returns None for it.

The framework takes None for "this input does not matter", and the parameter silently keeps its first values.
"""

from gradcli.engine.autograd import Function


class Wrong(Function):
    @staticmethod
    def forward(ctx, x, weight, bias):
        ctx.save_for_backward(x, weight)
        return x.mm(weight) + bias

    @staticmethod
    def backward(ctx, grad_output):
        x, weight = ctx.saved_tensors
        return grad_output.mm(weight.t()), x.t().mm(grad_output), None


class Fixed(Wrong):
    @staticmethod
    def backward(ctx, grad_output):
        x, weight = ctx.saved_tensors
        return grad_output.mm(weight.t()), x.t().mm(grad_output), grad_output.sum(0)
