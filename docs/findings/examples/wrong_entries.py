"""A leaky rectifier whose backward forgets the leak.

Every entry where x is positive is right, so a test at positive inputs passes.
"""

from gradcli.engine.autograd import Function


class Wrong(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.clamp(min=0) + 0.1 * x.clamp(max=0)

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return grad_output * (x > 0)


class Fixed(Wrong):
    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return grad_output * (x > 0) + 0.1 * grad_output * (x <= 0)
