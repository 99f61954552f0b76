"""sin(x)/x, with the hole at 0 filled by hand: the value there is 1, and so, wrongly, is the slope.

Random inputs never hit 0 exactly. Padding, masks and initial values do.

Run: -i x=3,value=[0.0,1.0,-2.0] --order 1
"""

from gradcli.engine.autograd import Function


class Wrong(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        safe = x.masked_fill(x == 0, 1.0)
        return (safe.sin() / safe).masked_fill(x == 0, 1.0)

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        safe = x.masked_fill(x == 0, 1.0)
        slope = (safe.cos() - safe.sin() / safe) / safe
        return grad_output * slope.masked_fill(x == 0, 1.0)


class Fixed(Wrong):
    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        safe = x.masked_fill(x == 0, 1.0)
        slope = (safe.cos() - safe.sin() / safe) / safe
        return grad_output * slope.masked_fill(x == 0, 0.0)
