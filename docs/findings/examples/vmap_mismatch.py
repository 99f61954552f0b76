"""A rule for vmap that assumes the batch to be the first axis.

vmap(..., in_dims=1) gives other numbers than a loop.

Run: -i x=3x3
"""

from torch.autograd import Function


class Wrong(Function):
    @staticmethod
    def forward(x):
        return x.cumsum(0)

    @staticmethod
    def setup_context(ctx, inputs, output):
        pass

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output.flip(0).cumsum(0).flip(0)

    @staticmethod
    def vmap(info, in_dims, x):
        return x.cumsum(1), 0


class Fixed(Wrong):
    @staticmethod
    def vmap(info, in_dims, x):
        return x.movedim(in_dims[0], 0).cumsum(1), 0
