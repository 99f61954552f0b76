"""Somebody wrote the batch size of their own data into backward.

Right for three rows, wrong for any other number.

Run: -i x=3x4 -i scale=4
"""

from gradcli.engine.autograd import Function


class Wrong(Function):
    @staticmethod
    def forward(ctx, x, scale):
        ctx.save_for_backward(x, scale)
        return x * scale

    @staticmethod
    def backward(ctx, grad_output):
        x, scale = ctx.saved_tensors
        return grad_output * scale, 3 * (grad_output * x).mean(0)


class Fixed(Wrong):
    @staticmethod
    def backward(ctx, grad_output):
        x, scale = ctx.saved_tensors
        return grad_output * scale, (grad_output * x).sum(0)
