"""The gradient of a scale is computed as a mean times the number of rows: 0/0 for an empty batch.

The last batch of an epoch, or a filter that matches nothing, is empty; one NaN then ends a training run.
"""

from gradcli.engine.autograd import Function


class Wrong(Function):
    @staticmethod
    def forward(ctx, x, scale):
        ctx.save_for_backward(x, scale)
        return x * scale

    @staticmethod
    def backward(ctx, grad_output):
        x, scale = ctx.saved_tensors
        rows = x.shape[0]
        return grad_output * scale, (grad_output * x).mean(0) * float(rows)


class Fixed(Wrong):
    @staticmethod
    def backward(ctx, grad_output):
        x, scale = ctx.saved_tensors
        return grad_output * scale, (grad_output * x).sum(0)
