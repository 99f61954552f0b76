"""backward reads grad_output in the order of memory, which need not be the order of its entries.

The gradient that backward receives is often a transposed or expanded view; here view() raises for it.
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
