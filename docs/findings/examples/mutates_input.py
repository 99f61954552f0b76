"""forward scales its input in place without ctx.mark_dirty.

The caller's tensor has changed, and whatever was computed from it before has a wrong gradient.
"""

from gradcli.engine.autograd import Function


class Wrong(Function):
    @staticmethod
    def forward(ctx, x):
        return x.mul_(2).clone()

    @staticmethod
    def backward(ctx, grad_output):
        return 2 * grad_output


class Fixed(Wrong):
    @staticmethod
    def forward(ctx, x):
        return x * 2
