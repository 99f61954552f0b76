"""Backwards that break a rule of the framework: wrong arity, not linear, in-place writes, state, None, layouts."""

from gradcli.findings import FindingKind as K
from tests.programs.mistakes.mistake import Mistake


def ignores_grad_output(ns):
    class Squared(ns.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return 2 * x  # here

    return Squared


def nonlinear(ns):
    class Doubled(ns.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return 2 * g.clamp(min=-0.4, max=0.4)  # here

    return Doubled


def too_few(ns):
    class Scaled(ns.autograd.Function):
        @staticmethod
        def forward(ctx, x, k):
            ctx.k = k
            return x * k

        @staticmethod
        def backward(ctx, g):
            return g * ctx.k  # here

    return Scaled


def for_a_constant(ns):
    class Scaled(ns.autograd.Function):
        @staticmethod
        def forward(ctx, x, k):
            ctx.k = k
            return x * k

        @staticmethod
        def backward(ctx, g):
            return g * ctx.k, g.sum()  # here

    return Scaled


def mutates_cotangent(ns):
    class Rectified(ns.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x.clamp(min=0)

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            g[x < 0] = 0  # here
            return g

    return Rectified


def mutates_saved(ns):
    class Exponential(ns.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            y = x.exp()
            ctx.save_for_backward(y.clone())
            return y

        @staticmethod
        def backward(ctx, g):
            (y,) = ctx.saved_tensors
            y.mul_(g)  # here
            return y

    return Exponential


def mutates_input(ns):
    class Doubled(ns.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            y = x * 2
            x.zero_()  # here
            return y

        @staticmethod
        def backward(ctx, g):
            return g * 2

    return Doubled


def keeps_state(ns):
    class Scaled(ns.autograd.Function):
        kept = None

        @staticmethod
        def forward(ctx, x):
            Scaled.kept = x.clone()
            return x * x

        @staticmethod
        def backward(ctx, g):
            return 2 * Scaled.kept * g  # here

    return Scaled


def needs_contiguous(ns):
    class Doubled(ns.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.shape = x.shape
            return x * 2

        @staticmethod
        def backward(ctx, g):
            flat = 2 * g.view(-1)  # here
            return flat.view(ctx.shape)

    return Doubled


def forgets_none(ns):
    class Pair(ns.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.set_materialize_grads(False)
            return x * 2, x * 3

        @staticmethod
        def backward(ctx, g1, g2):
            return 2 * g1 + 3 * g2  # here

    return Pair


def averages_grad_output(ns):
    class Sine(ns.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x.sin()

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return x.cos() * g.mean()  # here

    return Sine


def another_slice_of_grad_output(ns):
    class Joined(ns.autograd.Function):
        @staticmethod
        def forward(ctx, x, y):
            ctx.save_for_backward(x, y)
            return ns.cat([x * x, y * y])

        @staticmethod
        def backward(ctx, g):
            x, y = ctx.saved_tensors
            return 2 * x * g[:2], 2 * y * g[:3]  # here

    return Joined


BROKEN_RULES = (
    Mistake("ignores", ignores_grad_output, {"x": (3,)}, {K.IGNORES_GRAD_OUTPUT}, {"x"}, "does not use grad_output"),
    Mistake("nonlinear", nonlinear, {"x": (6,)}, {K.NONLINEAR_BACKWARD}, {"x"}, "differs from"),
    Mistake("too-few", too_few, {"x": (3,), "k": 2.5}, {K.WRONG_ARITY}, {None}, "returns 1 value"),
    Mistake("constant", for_a_constant, {"x": (3,), "k": 2.5}, {K.UNNEEDED_GRADIENT}, {"k"}, "not a tensor"),
    Mistake("cotangent", mutates_cotangent, {"x": (6,)}, {K.MUTATES_GRAD_OUTPUT}, {None}, "in place"),
    Mistake("saved", mutates_saved, {"x": (4,)}, {K.MUTATES_SAVED}, {None}, "saved tensor 0"),
    Mistake("input", mutates_input, {"x": (4,)}, {K.MUTATES_INPUT}, {"x"}, "mark_dirty"),
    Mistake("state", keeps_state, {"x": (4,)}, {K.STATEFUL}, {"x"}, "ctx"),
    Mistake("contiguous", needs_contiguous, {"x": (3, 4)}, {K.NON_CONTIGUOUS}, {None}, "transposed"),
    Mistake("none", forgets_none, {"x": (3,)}, {K.UNDEFINED_GRAD}, {None}, "None"),
    Mistake("averages", averages_grad_output, {"x": (6,)}, {K.IGNORES_GRAD_OUTPUT}, {"x"}, "sum or the mean"),
    Mistake("slice", another_slice_of_grad_output, {"x": (2,), "y": (3,)}, {K.WRONG_SHIFT}, {"y"}, "off by 2"),
)  # fmt: skip
