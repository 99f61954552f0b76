"""The input is kept on the class instead of on ctx.

With one call it works. With two, the second overwrites what the first one's backward needs.
"""

from gradcli.engine.autograd import Function


class Wrong(Function):
    kept = None

    @staticmethod
    def forward(ctx, x):
        Wrong.kept = x.clone()
        return x * x

    @staticmethod
    def backward(ctx, grad_output):
        return 2 * Wrong.kept * grad_output


class Fixed(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return 2 * x * grad_output
