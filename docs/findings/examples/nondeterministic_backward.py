"""Dropout that draws a new mask in backward.

The gradient belongs to another mask than the output does.
"""

from gradcli import engine as torch
from gradcli.engine.autograd import Function


class Wrong(Function):
    @staticmethod
    def forward(ctx, x):
        return x * (torch.rand(x.shape) > 0.5)

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output * (torch.rand(grad_output.shape) > 0.5)


class Fixed(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.mask = torch.rand(x.shape) > 0.5
        return x * ctx.mask

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output * ctx.mask
