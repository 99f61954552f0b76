"""The batch size of one data set is written into backward as a constant.

The gradient is right for three rows and wrong for any other number.

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
