"""A number has no gradient, and backward returns one for it.

PyTorch raises only when somebody trains with it.

Run: -i x=3 -a scale=5
"""

from gradcli.engine.autograd import Function


class Wrong(Function):
    @staticmethod
    def forward(ctx, x, scale):
        ctx.scale = scale
        return x * scale

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output * ctx.scale, grad_output.sum()


class Fixed(Wrong):
    @staticmethod
    def backward(ctx, grad_output):
        return grad_output * ctx.scale, None
