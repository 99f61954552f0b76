"""A mean over rows; backward returns one row where the input has several.

Some frameworks refuse such a gradient, and some broadcast it.
"""

from gradcli.engine.autograd import Function


class Wrong(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return (x * x).mean(1)

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return (grad_output.unsqueeze(1) * 2 * x / x.shape[1]).reshape(-1)


class Fixed(Wrong):
    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return grad_output.unsqueeze(1) * 2 * x / x.shape[1]
