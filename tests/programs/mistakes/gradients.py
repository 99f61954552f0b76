"""Backwards that return a wrong gradient: of another input, transposed, scaled, at some entries only, of order 2."""

import numpy as np

from gradcli.findings import FindingKind as K
from tests.programs.mistakes.mistake import Mistake


def linear_with(ns, backward_body):
    class Linear(ns.autograd.Function):
        @staticmethod
        def forward(ctx, x, w, b=None):
            ctx.save_for_backward(x, w, b)
            y = x.mm(w.t())
            return y if b is None else y + b

        backward = staticmethod(backward_body)

    return Linear


def swapped(ns):
    def backward(ctx, g):
        x, w, _ = ctx.saved_tensors
        gx = gw = None
        if ctx.needs_input_grad[0]:
            gx = g.mm(w)
        if ctx.needs_input_grad[1]:
            gx = g.t().mm(x)  # here
        return gx, gw, None

    return linear_with(ns, backward)


def missing(ns):
    def backward(ctx, g):
        _, w, _ = ctx.saved_tensors
        gx = g.mm(w)
        gw = None  # here
        return gx, gw, None

    return linear_with(ns, backward)


def transposed(ns):
    def backward(ctx, g):
        x, w, _ = ctx.saved_tensors
        return g.mm(w), x.t().mm(g), None  # here

    return linear_with(ns, backward)


def transposed_square(ns):
    class Project(ns.autograd.Function):
        @staticmethod
        def forward(ctx, x, w):
            ctx.save_for_backward(x, w)
            return x.mm(w)

        @staticmethod
        def backward(ctx, g):
            x, w = ctx.saved_tensors
            gx = g.mm(w.t())
            gw = g.t().mm(x)  # here
            return gx, gw

    return Project


def mean_for_sum(ns):
    def backward(ctx, g):
        x, w, _ = ctx.saved_tensors
        gb = g.mean(0)  # here
        return g.mm(w), g.t().mm(x), gb

    return linear_with(ns, backward)


def wrong_sign(ns):
    class Difference(ns.autograd.Function):
        @staticmethod
        def forward(ctx, a, b):
            return a - b

        @staticmethod
        def backward(ctx, g):
            return g, g  # here

    return Difference


def sign_in_a_region(ns):
    class Absolute(ns.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x.abs()

        @staticmethod
        def backward(ctx, g):
            return g * 1.0  # here

    return Absolute


def lost_where_negative(ns):
    class Leaky(ns.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x.clamp(min=0) + 0.1 * x.clamp(max=0)

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            g = g.clone()
            g[x < 0] = 0  # here
            return g

    return Leaky


def last_row(ns):
    class Doubled(ns.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            out = g * 2
            out[-1] = 0  # here
            return out

    return Doubled


def saved_intermediate(ns):
    class Cube(ns.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            square = x * x
            ctx.save_for_backward(square)  # here
            return square * x

        @staticmethod
        def backward(ctx, g):
            (square,) = ctx.saved_tensors
            return g * 3 * square

    return Cube


def detached(ns):
    class Cube(ns.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x * x

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            slope = 3 * x.detach() * x  # here
            return g * slope

    return Cube


def not_reduced(ns):
    class AddRows(ns.autograd.Function):
        @staticmethod
        def forward(ctx, x, column):
            return x + column.unsqueeze(1)

        @staticmethod
        def backward(ctx, g):
            return g, g  # here

    return AddRows


def conjugate(ns):
    class Square(ns.autograd.Function):
        @staticmethod
        def forward(ctx, z):
            ctx.save_for_backward(z)
            return z * z

        @staticmethod
        def backward(ctx, g):
            (z,) = ctx.saved_tensors
            return g.conj() * 2 * z  # here

    return Square


def no_conjugate(ns):
    class Square(ns.autograd.Function):
        @staticmethod
        def forward(ctx, z):
            ctx.save_for_backward(z)
            return z * z

        @staticmethod
        def backward(ctx, g):
            (z,) = ctx.saved_tensors
            return g * 2 * z  # here

    return Square


def default_left_out(ns):
    class Scaled(ns.autograd.Function):
        @staticmethod
        def forward(ctx, x, y, scale=1.0):
            ctx.save_for_backward(x, y)
            ctx.scale = scale
            return x * y * scale

        @staticmethod
        def backward(ctx, g):
            x, y = ctx.saved_tensors
            gx = g * y  # here
            return gx, g * x * ctx.scale, None

    return Scaled


def swapped_product(ns):
    class Product(ns.autograd.Function):
        @staticmethod
        def forward(ctx, a, b):
            ctx.save_for_backward(a, b)
            return a * b

        @staticmethod
        def backward(ctx, g):
            a, b = ctx.saved_tensors
            return g * a, g * b  # here

    return Product


def rolled(ns):
    class Weighted(ns.autograd.Function):
        @staticmethod
        def forward(ctx, x, w):
            ctx.save_for_backward(x, w)
            return (x * w).sum()

        @staticmethod
        def backward(ctx, g):
            x, w = ctx.saved_tensors
            gx = ns.cat([w[1:], w[:1]]) * g  # here
            return gx, x * g

    return Weighted


def straight_through(ns):
    class Rounded(ns.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.round()

        @staticmethod
        def backward(ctx, g):
            return g  # here

    return Rounded


WRONG_GRADIENTS = (
    Mistake("swapped", swapped, {"x": (3, 4), "w": (5, 4)}, {K.SWAPPED_GRADIENTS}, {"x", "w"}, "gradient of w"),
    Mistake("swapped-equal-shapes", swapped, {"x": (2, 2), "w": (2, 2)}, {K.SWAPPED_GRADIENTS}, {"x", "w"}, "None"),
    Mistake("missing", missing, {"x": (3, 4), "w": (5, 4)}, {K.MISSING_GRADIENT}, {"w"}, "gets no gradient"),
    Mistake("transposed", transposed, {"x": (3, 4), "w": (5, 4)}, {K.TRANSPOSED}, {"w"}, "transposed"),
    Mistake("transposed-square", transposed_square, {"x": (3, 4), "w": (4, 4)}, {K.TRANSPOSED}, {"w"}, "transposed"),
    Mistake("mean", mean_for_sum, {"x": (7, 4), "w": (5, 4), "b": (5,)}, {K.WRONG_FACTOR}, {"b"}, "1/7"),
    Mistake("sign", wrong_sign, {"a": (3,), "b": (3,)}, {K.WRONG_SIGN}, {"b"}, "-1 times"),
    Mistake("sign-region", sign_in_a_region, {"x": (4, 5)}, {K.WRONG_SIGN}, {"x"}, "x < 0"),
    Mistake("region", lost_where_negative, {"x": (4, 5)}, {K.WRONG_ENTRIES}, {"x"}, "x < 0"),
    Mistake("last-row", last_row, {"x": (4, 3)}, {K.WRONG_ENTRIES}, {"x"}, "the last row"),
    Mistake(
        "cut", saved_intermediate, {"x": (3,)}, {K.NOT_TWICE_DIFFERENTIABLE}, {"x"}, "saves the intermediate", order=2
    ),
    Mistake("detached", detached, {"x": (3,)}, {K.NOT_TWICE_DIFFERENTIABLE}, {"x"}, "detaches", order=2),
    Mistake("unreduced", not_reduced, {"x": (3, 4), "column": (3,)}, {K.MISSING_REDUCTION}, {"column"}, "axis 1"),
    Mistake(
        "conjugate", conjugate, {"z": np.array([1 + 2j, 0.5 - 0.75j])}, {K.NONLINEAR_BACKWARD, K.MISSING_CONJUGATE},
        {"z"}, "conjugate",
    ),
    Mistake(
        "no-conjugate", no_conjugate, {"z": np.array([1 + 2j, 0.5 - 0.75j])}, {K.MISSING_CONJUGATE}, {"z"}, "conjugate"
    ),
    Mistake("default", default_left_out, {"x": (3,), "y": (3,)}, {K.WRONG_FACTOR}, {"x"}, "scale"),
    Mistake("swapped-product", swapped_product, {"a": (3,), "b": (3,)}, {K.SWAPPED_GRADIENTS}, {"a", "b"}, "gradient"),
    Mistake("rolled", rolled, {"x": (6,), "w": (6,)}, {K.WRONG_SHIFT}, {"x"}, "rolled by"),
    Mistake("surrogate", straight_through, {"x": (6,)}, {K.WRONG_GRADIENT}, {"x"}, "`expect: surrogate`"),
)  # fmt: skip
