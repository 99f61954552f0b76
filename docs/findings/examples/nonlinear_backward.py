"""backward clips grad_output, as if to keep training stable.

A backward is a linear map of grad_output. Clip gradients after the backward pass, or in a hook.
"""

from gradcli.engine.autograd import Function


class Wrong(Function):
    @staticmethod
    def forward(ctx, x):
        return x * 3

    @staticmethod
    def backward(ctx, grad_output):
        return 3 * grad_output.clamp(-1, 1)


class Fixed(Wrong):
    @staticmethod
    def backward(ctx, grad_output):
        return 3 * grad_output
