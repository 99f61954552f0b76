"""Two outputs, and set_materialize_grads(False): the gradient of an unused output is None.

backward raises for everybody who uses only one of the outputs.
"""

from gradcli.engine.autograd import Function


class Wrong(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.set_materialize_grads(False)
        return 2 * x, 3 * x

    @staticmethod
    def backward(ctx, grad_double, grad_triple):
        return 2 * grad_double + 3 * grad_triple


class Fixed(Wrong):
    @staticmethod
    def forward(ctx, x):
        return 2 * x, 3 * x
