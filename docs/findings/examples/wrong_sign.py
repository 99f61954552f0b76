"""The difference a - b: the gradient of b is -grad_output.

The second operand of a subtraction or a division is where a sign gets lost.
"""

from gradcli.engine.autograd import Function


class Wrong(Function):
    @staticmethod
    def forward(ctx, a, b):
        return a - b

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output, grad_output


class Fixed(Wrong):
    @staticmethod
    def backward(ctx, grad_output):
        return grad_output, -grad_output
