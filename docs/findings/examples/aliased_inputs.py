"""A shortcut for a * a that tells its operands apart by identity.

Product.apply(x, x) gets half the gradient.
"""

from gradcli.engine.autograd import Function


class Wrong(Function):
    @staticmethod
    def forward(ctx, a, b):
        ctx.same = a is b
        ctx.save_for_backward(a, b)
        return a * b

    @staticmethod
    def backward(ctx, grad_output):
        a, b = ctx.saved_tensors
        if ctx.same:
            return grad_output * a, None
        return grad_output * b, grad_output * a


class Fixed(Wrong):
    @staticmethod
    def backward(ctx, grad_output):
        a, b = ctx.saved_tensors
        return grad_output * b, grad_output * a
