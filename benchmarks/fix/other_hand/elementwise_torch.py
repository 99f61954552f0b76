"""Activations and other functions of single entries, in PyTorch."""

import math

import torch
from torch.autograd import Function

from benchmarks.fix.other_hand.record import Family

PLANT = Family("elementwise", "torch", __file__)


class Softplus(Function):
    @staticmethod
    def forward(ctx, x, beta):
        ctx.save_for_backward(x)
        ctx.beta = beta
        return torch.log1p(torch.exp(beta * x)) / beta

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        slope = torch.sigmoid(ctx.beta * x)
        return grad_output * slope, None


PLANT(
    "Softplus",
    "x=NxM beta:1.7",
    ("factor-extra", "wrong-factor", "x", "grad_output * slope", "grad_output * slope * ctx.beta"),
    ("argument-forgotten", "wrong-factor wrong-gradient", "x", "torch.sigmoid(ctx.beta * x)", "torch.sigmoid(x)"),
    ("sign-inner", "wrong-factor wrong-sign wrong-gradient", "x", "torch.sigmoid(ctx.beta", "torch.sigmoid(-ctx.beta"),
    flags=True,
)


class Mish(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * torch.tanh(torch.nn.functional.softplus(x))

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        t = torch.tanh(torch.nn.functional.softplus(x))
        s = torch.sigmoid(x)
        return grad_output * (t + x * s * (1 - t * t))


PLANT(
    "Mish",
    "x=NxM",
    ("chain-rule-forgotten", "wrong-factor missing-term wrong-gradient", "x", "x * s * (1 - t * t)", "x * (1 - t * t)"),
    ("missing-term", "missing-term", "x", "(t + x * s * (1 - t * t))", "(x * s * (1 - t * t))"),
    ("power", "wrong-factor wrong-gradient", "x", "(1 - t * t)", "(1 - t)"),
    ("sign-of-term", "wrong-sign missing-term", "x", "(t + x * s", "(t - x * s"),
)


class GeluTanh(Function):
    """The tanh approximation of GELU, as in the first BERT."""

    @staticmethod
    def forward(ctx, x):
        c = math.sqrt(2 / math.pi)
        t = torch.tanh(c * (x + 0.044715 * x**3))
        ctx.save_for_backward(x)
        return 0.5 * x * (1 + t)

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        c = math.sqrt(2 / math.pi)
        t = torch.tanh(c * (x + 0.044715 * x**3))
        inner = c * (1 + 3 * 0.044715 * x**2)
        return grad_output * (0.5 * (1 + t) + 0.5 * x * (1 - t**2) * inner)


PLANT(
    "GeluTanh",
    "x=NxM",
    ("factor-missing", "wrong-factor missing-term", "x", "(1 + 3 * 0.044715 * x**2)", "(1 + 0.044715 * x**2)"),
    ("factor-missing", "wrong-factor missing-term", "x", "+ 0.5 * x * (1 - t**2)", "+ x * (1 - t**2)"),
    ("chain-rule-forgotten", "wrong-factor missing-term", "x", "inner = c * (1", "inner = (1"),
    (
        "constant-wrong",
        "wrong-factor missing-term wrong-gradient",
        "x",
        "math.sqrt(2 / math.pi)\n        t = torch.tanh(c * (x + 0.044715 * x**3))\n        inner",
        "math.sqrt(2 * math.pi)\n        t = torch.tanh(c * (x + 0.044715 * x**3))\n        inner",
    ),
)


class Logit(Function):
    @staticmethod
    def forward(ctx, p):
        ctx.save_for_backward(p)
        return torch.log(p) - torch.log1p(-p)

    @staticmethod
    def backward(ctx, grad_output):
        (p,) = ctx.saved_tensors
        return grad_output / (p * (1 - p))


PLANT(
    "Logit",
    "p=NxM,domain=unit",
    ("multiply-for-divide", "wrong-factor", "p", "grad_output / (p * (1 - p))", "grad_output * (p * (1 - p))"),
    ("sign-inner", "wrong-factor wrong-sign wrong-gradient", "p", "(1 - p))", "(1 + p))"),
    ("missing-bracket", "wrong-factor missing-term wrong-gradient", "p", "(p * (1 - p))", "p * (1 - p)"),
    ("detach", "not-twice-differentiable", "p", "grad_output / (p", "grad_output / (p.detach()"),
)


class HuberResidual(Function):
    """Huber's function of a residual, quadratic up to delta."""

    @staticmethod
    def forward(ctx, r, delta):
        ctx.save_for_backward(r)
        ctx.delta = delta
        small = r.abs() <= delta
        return torch.where(small, 0.5 * r * r, delta * (r.abs() - 0.5 * delta))

    @staticmethod
    def backward(ctx, grad_output):
        (r,) = ctx.saved_tensors
        small = r.abs() <= ctx.delta
        return grad_output * torch.where(small, r, ctx.delta * r.sign()), None


PLANT(
    "HuberResidual",
    "r=NxM delta:0.8",
    ("mask-side", "wrong-entries wrong-gradient", "r", "r.abs() <= ctx.delta", "r.abs() > ctx.delta"),
    ("mask-missing", "wrong-entries", "r", "torch.where(small, r, ctx.delta * r.sign())", "r"),
    (
        "branch-wrong",
        "wrong-entries wrong-sign",
        "r",
        "torch.where(small, r, ctx.delta * r.sign())",
        "torch.where(small, r, ctx.delta)",
    ),
    ("factor-missing", "wrong-entries wrong-factor", "r", "ctx.delta * r.sign())", "r.sign())"),
    ("absolute-forgotten", "wrong-entries", "r", "small = r.abs() <= ctx.delta", "small = r <= ctx.delta"),
    flags=True,
)


class ClampBetween(Function):
    """Limits x to [low, high]; the limits may be learned."""

    @staticmethod
    def forward(ctx, x, low, high):
        ctx.save_for_backward(x, low, high)
        return torch.minimum(torch.maximum(x, low), high)

    @staticmethod
    def backward(ctx, grad_output):
        x, low, high = ctx.saved_tensors
        below, above = x < low, x > high
        grad_x = grad_output * ~(below | above)
        return grad_x, grad_output * below, grad_output * above


PLANT(
    "ClampBetween",
    "x=NxM low=NxM,domain=open-interval,lo=-1.5,hi=-0.2 high=NxM,domain=open-interval,lo=0.2,hi=1.5",
    (
        "swapped-two",
        "swapped-gradients",
        "low high",
        "grad_output * below, grad_output * above",
        "grad_output * above, grad_output * below",
    ),
    ("mask-missing", "wrong-entries", "x", "grad_output * ~(below | above)", "grad_output * ~above"),
    (
        "mask-side",
        "wrong-entries wrong-gradient",
        "x",
        "grad_output * ~(below | above)",
        "grad_output * (below | above)",
    ),
    (
        "missing-gradient",
        "missing-gradient",
        "high",
        "grad_output * below, grad_output * above",
        "grad_output * below, None",
    ),
    flags=True,
)


class LogCosh(Function):
    @staticmethod
    def forward(ctx, pred, target):
        diff = pred - target
        ctx.save_for_backward(pred, target)
        return torch.log(torch.cosh(diff))

    @staticmethod
    def backward(ctx, grad_output):
        pred, target = ctx.saved_tensors
        diff = pred - target
        grad = torch.tanh(diff) * grad_output
        return grad, -grad


PLANT(
    "LogCosh",
    "pred=NxM target=NxM",
    ("sign", "wrong-sign", "target", "return grad, -grad", "return grad, grad"),
    ("swapped-two", "swapped-gradients wrong-sign", "pred target", "return grad, -grad", "return -grad, grad"),
    ("wrong-function", "wrong-factor wrong-gradient", "pred target", "torch.tanh(diff)", "torch.sinh(diff)"),
    ("ignored-grad-output", "ignores-grad-output", "pred target", "torch.tanh(diff) * grad_output", "torch.tanh(diff)"),
    (
        "saved-intermediate",
        "not-twice-differentiable",
        "pred target",
        """ctx.save_for_backward(pred, target)
        return torch.log(torch.cosh(diff))

    @staticmethod
    def backward(ctx, grad_output):
        pred, target = ctx.saved_tensors
        diff = pred - target
""",
        """ctx.save_for_backward(diff)
        return torch.log(torch.cosh(diff))

    @staticmethod
    def backward(ctx, grad_output):
        (diff,) = ctx.saved_tensors
""",
    ),
)


class Hypot(Function):
    @staticmethod
    def forward(ctx, a, b):
        h = torch.sqrt(a * a + b * b)
        ctx.save_for_backward(a, b, h)
        return h

    @staticmethod
    def backward(ctx, grad_output):
        a, b, h = ctx.saved_tensors
        return grad_output * a / h, grad_output * b / h


PLANT(
    "Hypot",
    "a=NxM b=NxM",
    (
        "wrong-variable",
        "wrong-factor swapped-gradients wrong-gradient",
        "b",
        "grad_output * b / h",
        "grad_output * a / h",
    ),
    ("power", "wrong-factor", "a", "grad_output * a / h,", "grad_output * a / h**2,"),
    ("factor-missing", "wrong-factor", "a", "grad_output * a / h,", "grad_output * a,"),
    (
        "factor-extra",
        "wrong-factor",
        "a b",
        "return grad_output * a / h, grad_output * b / h",
        "grad_output = 2 * grad_output\n        return grad_output * a / h, grad_output * b / h",
    ),
)


class ArcTan2(Function):
    @staticmethod
    def forward(ctx, y, x):
        ctx.save_for_backward(y, x)
        return torch.atan2(y, x)

    @staticmethod
    def backward(ctx, g):
        y, x = ctx.saved_tensors
        r2 = x.square() + y.square()
        return g * x / r2, -g * y / r2


PLANT(
    "ArcTan2",
    "y=NxM x=NxM",
    ("sign", "wrong-sign", "x", "-g * y / r2", "g * y / r2"),
    (
        "sign-inner",
        "wrong-factor wrong-gradient missing-term wrong-sign",
        "y x",
        "x.square() + y.square()",
        "x.square() - y.square()",
    ),
    ("swapped-two", "swapped-gradients", "y x", "g * x / r2, -g * y / r2", "-g * y / r2, g * x / r2"),
    ("power", "wrong-factor", "y x", "r2 = x.square() + y.square()", "r2 = (x.square() + y.square()).sqrt()"),
)
