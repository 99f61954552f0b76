"""forward takes two arguments, and backward returns one value.

backward returns one value for each argument of forward, also for a number.
"""

from gradcli.engine.autograd import Function


class Wrong(Function):
    @staticmethod
    def forward(ctx, x, scale):
        ctx.scale = scale
        return x * scale

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output * ctx.scale


class Fixed(Wrong):
    @staticmethod
    def backward(ctx, grad_output):
        return grad_output * ctx.scale, None
