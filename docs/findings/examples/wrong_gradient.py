"""The forward of a tanh with a ripple was changed, and backward is still that of the tanh alone.

No simple rule connects the two, so the finding has the general name and shows the entries.
"""

from gradcli.engine.autograd import Function


class Wrong(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.tanh() + 0.37 * (1.7 * x + 0.4).sin() * (-0.3 * x * x).exp()

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return grad_output * (1 - x.tanh() ** 2)


class Fixed(Wrong):
    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        wave, slope = (1.7 * x + 0.4).sin(), 1.7 * (1.7 * x + 0.4).cos()
        ripple = 0.37 * (slope - 0.6 * x * wave) * (-0.3 * x * x).exp()
        return grad_output * (1 - x.tanh() ** 2 + ripple)
