"""The mean is subtracted from each row, and backward treats the mean as a constant.

Statistics of the input (a mean, a variance, a norm, a maximum) depend on it and have a term of their own.
"""

from gradcli.engine.autograd import Function


class Wrong(Function):
    @staticmethod
    def forward(ctx, x):
        return x - x.mean(1, keepdim=True)

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output.clone()


class Fixed(Wrong):
    @staticmethod
    def backward(ctx, grad_output):
        return grad_output - grad_output.mean(1, keepdim=True)
