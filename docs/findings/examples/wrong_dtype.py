"""A real amplitude times a complex phase: the gradient of the amplitude is real.

The framework refuses a complex gradient for a real tensor.

Run: -i amplitude=3 -i phase=3,dtype=complex128
"""

from gradcli.engine.autograd import Function


class Wrong(Function):
    @staticmethod
    def forward(ctx, amplitude, phase):
        ctx.save_for_backward(amplitude, phase)
        return amplitude * phase

    @staticmethod
    def backward(ctx, grad_output):
        amplitude, phase = ctx.saved_tensors
        return grad_output * phase.conj(), grad_output * amplitude


class Fixed(Wrong):
    @staticmethod
    def backward(ctx, grad_output):
        amplitude, phase = ctx.saved_tensors
        return (grad_output * phase.conj()).real, grad_output * amplitude
