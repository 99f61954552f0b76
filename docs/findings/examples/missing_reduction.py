"""A column is broadcast over all columns of x, and its gradient is not summed over them.

What was repeated in forward is summed in backward.

Run: -i x=3x4 -i column=3
"""

from gradcli.engine.autograd import Function


class Wrong(Function):
    @staticmethod
    def forward(ctx, x, column):
        return x + column.unsqueeze(1)

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output, grad_output


class Fixed(Wrong):
    @staticmethod
    def backward(ctx, grad_output):
        return grad_output, grad_output.sum(1)
