"""Functions of rows, with inputs of four of them, for tests of other sizes of the leading axis."""

import numpy as np

from tests.checks.frameworks import tensor

GENERATOR = np.random.default_rng(3)


X = tensor("x", GENERATOR.normal(size=(4, 3)))


W = tensor("w", GENERATOR.normal(size=(3,)))


Y = tensor("y", GENERATOR.normal(size=(4, 5)))


T = tensor("t", GENERATOR.normal(size=(4, 3)), grad=False)


def of_rows(ns, forward, backward):
    """A Function of x and others, whose backward is given what was passed and grad_output."""

    class OfRows(ns.autograd.Function):
        @staticmethod
        def forward(ctx, *given):
            ctx.given = [value for value in given if not ns.is_tensor(value)]
            ctx.save_for_backward(*[value for value in given if ns.is_tensor(value)])
            return forward(*given)

        @staticmethod
        def backward(ctx, *cotangents):
            found = backward(*ctx.saved_tensors, *ctx.given, *cotangents)
            return found if isinstance(found, tuple) else (found, *[None] * (len(ctx.needs_input_grad) - 1))

    return OfRows


def mean_square(x, t):
    return ((x - t) ** 2).mean()


def scale_rows(x, w):
    return x * w
