"""A bias is added to every row; its gradient is summed over the wrong axis.

With as many rows as columns the shape is right all the same.

Run: -i x=4x4 -i bias=4
"""

from gradcli.engine.autograd import Function


class Wrong(Function):
    @staticmethod
    def forward(ctx, x, bias):
        ctx.save_for_backward(x)
        return x * x + bias

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return 2 * x * grad_output, grad_output.sum(1)


class Fixed(Wrong):
    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return 2 * x * grad_output, grad_output.sum(0)
