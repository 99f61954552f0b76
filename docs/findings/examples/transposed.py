"""A matrix product whose weight gradient has its operands in the wrong order.

With a square weight no shape error gives it away.

Run: -i x=3x4 -i weight=4x4
"""

from gradcli.engine.autograd import Function


class Wrong(Function):
    @staticmethod
    def forward(ctx, x, weight):
        ctx.save_for_backward(x, weight)
        return x.mm(weight)

    @staticmethod
    def backward(ctx, grad_output):
        x, weight = ctx.saved_tensors
        grad_x = grad_output.mm(weight.t())
        grad_weight = grad_output.t().mm(x)
        return grad_x, grad_weight


class Fixed(Wrong):
    @staticmethod
    def backward(ctx, grad_output):
        x, weight = ctx.saved_tensors
        grad_x = grad_output.mm(weight.t())
        grad_weight = x.t().mm(grad_output)
        return grad_x, grad_weight
