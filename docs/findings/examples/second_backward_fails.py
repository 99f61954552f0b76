"""backward throws away what it needs, to save memory.

backward(retain_graph=True) promises a second pass, and the second pass raises.
"""

from gradcli.engine.autograd import Function


class Wrong(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.cosine = x.cos()
        return x.sin()

    @staticmethod
    def backward(ctx, grad_output):
        cosine = ctx.cosine
        del ctx.cosine
        return grad_output * cosine


class Fixed(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.sin()

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return grad_output * x.cos()
