"""A weighted sum whose gradient reads the weights one place further on.

An index that is off by one gives the right numbers in the wrong places.
"""

from gradcli.engine.autograd import Function


class Wrong(Function):
    @staticmethod
    def forward(ctx, x, weight):
        ctx.save_for_backward(x, weight)
        return (x * weight).sum()

    @staticmethod
    def backward(ctx, grad_output):
        x, weight = ctx.saved_tensors
        return grad_output * weight.roll(1), grad_output * x


class Fixed(Wrong):
    @staticmethod
    def backward(ctx, grad_output):
        x, weight = ctx.saved_tensors
        return grad_output * weight, grad_output * x
