"""backward walks through grad_output's memory and takes it for the order of its entries.

The gradient that arrives is often a transposed or expanded view; here a view raises.
"""

from gradcli.engine.autograd import Function


class Wrong(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return (2 * x.reshape(-1) * grad_output.view(-1)).reshape(x.shape)


class Fixed(Wrong):
    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return (2 * x.reshape(-1) * grad_output.reshape(-1)).reshape(x.shape)
