"""The square of a complex number; backward multiplies by 2z instead of its conjugate.

For real numbers both are the same, and so is every test on them.

Run: -i z=3,dtype=complex128
"""

from gradcli.engine.autograd import Function


class Wrong(Function):
    @staticmethod
    def forward(ctx, z):
        ctx.save_for_backward(z)
        return z * z

    @staticmethod
    def backward(ctx, grad_output):
        (z,) = ctx.saved_tensors
        return grad_output.conj() * 2 * z


class Fixed(Wrong):
    @staticmethod
    def backward(ctx, grad_output):
        (z,) = ctx.saved_tensors
        return grad_output * (2 * z).conj()
