"""Activations with learned numbers, and functions with exponents, in PyTorch."""

import torch
from torch.autograd import Function

from benchmarks.fix.other_hand.record import Family

PLANT = Family("elementwise", "torch", __file__)


class PReLU(Function):
    """A leak for each channel, on images."""

    @staticmethod
    def forward(ctx, x, alpha):
        ctx.save_for_backward(x, alpha)
        return torch.where(x > 0, x, alpha.view(1, -1, 1) * x)

    @staticmethod
    def backward(ctx, grad_output):
        x, alpha = ctx.saved_tensors
        positive = x > 0
        grad_x = torch.where(positive, grad_output, alpha.view(1, -1, 1) * grad_output)
        grad_alpha = torch.where(positive, torch.zeros_like(x), x * grad_output).sum((0, 2))
        return grad_x, grad_alpha


PLANT(
    "PReLU",
    "x=BxMxK alpha=M",
    ("mean-for-sum", "wrong-reduction wrong-factor", "alpha", ".sum((0, 2))", ".mean((0, 2))"),
    (
        "mask-missing",
        "wrong-entries wrong-gradient missing-term",
        "alpha",
        "torch.where(positive, torch.zeros_like(x), x * grad_output)",
        "(x * grad_output)",
    ),
    ("factor-missing", "wrong-entries wrong-factor", "x", "alpha.view(1, -1, 1) * grad_output)", "grad_output)"),
    ("mask-side", "wrong-gradient wrong-entries", "x alpha", "positive = x > 0", "positive = x < 0"),
    flags=True,
)


class Snake(Function):
    """x + sin(a x)^2 / a, with a learned frequency."""

    @staticmethod
    def forward(ctx, x, a):
        ctx.save_for_backward(x, a)
        return x + torch.sin(a * x) ** 2 / a

    @staticmethod
    def backward(ctx, grad_output):
        x, a = ctx.saved_tensors
        wave = torch.sin(2 * a * x)
        grad_x = grad_output * (1 + wave)
        grad_a = grad_output * (x * wave / a - torch.sin(a * x) ** 2 / a**2)
        return grad_x, grad_a.sum(0)


PLANT(
    "Snake",
    "x=NxM a=M,domain=positive",
    ("factor-missing", "wrong-factor missing-term wrong-gradient", "x a", "torch.sin(2 * a * x)", "torch.sin(a * x)"),
    ("missing-term", "missing-term", "a", "(x * wave / a - torch.sin(a * x) ** 2 / a**2)", "(x * wave / a)"),
    ("missing-term", "missing-term", "x", "grad_output * (1 + wave)", "grad_output * wave"),
    ("wrong-axis", "wrong-reduction wrong-shape", "a", "grad_a.sum(0)", "grad_a.sum(1)"),
    ("wrong-function", "wrong-gradient missing-term wrong-factor", "x a", "wave = torch.sin", "wave = torch.cos"),
    ("power", "missing-term wrong-factor wrong-gradient", "a", "/ a**2)", "/ a)"),
    flags=True,
)


class PowerLaw(Function):
    @staticmethod
    def forward(ctx, base, exponent):
        out = base.pow(exponent)
        ctx.save_for_backward(base, exponent)
        return out

    @staticmethod
    def backward(ctx, grad_output):
        base, exponent = ctx.saved_tensors
        grad_base = grad_output * exponent * base.pow(exponent - 1)
        grad_exponent = grad_output * base.pow(exponent) * base.log()
        return grad_base, grad_exponent


PLANT(
    "PowerLaw",
    "base=NxM,domain=positive exponent=NxM",
    ("power", "wrong-factor", "base", "base.pow(exponent - 1)", "base.pow(exponent)"),
    ("factor-missing", "wrong-factor", "base", "grad_output * exponent * base", "grad_output * base"),
    ("factor-missing", "wrong-factor", "exponent", " * base.log()", ""),
    (
        "wrong-variable",
        "wrong-factor wrong-gradient non-finite-gradient",  # the logarithm of a negative exponent
        "exponent",
        "base.log()",
        "exponent.log()",
    ),
    (
        "saved-data",
        "not-twice-differentiable",
        "base",
        "grad_output * exponent * base.pow(exponent - 1)",
        "grad_output * exponent * base.data.pow(exponent - 1)",
    ),
)


class Sinc(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        safe = torch.where(x == 0, torch.ones_like(x), x)
        return torch.where(x == 0, torch.ones_like(x), safe.sin() / safe)

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        safe = torch.where(x == 0, torch.ones_like(x), x)
        slope = (safe * safe.cos() - safe.sin()) / safe**2
        return grad_output * torch.where(x == 0, torch.zeros_like(x), slope)


PLANT(
    "Sinc",
    "x=NxM",
    ("sign-of-term", "wrong-sign missing-term", "x", "safe.cos() - safe.sin()", "safe.cos() + safe.sin()"),
    ("power", "wrong-factor", "x", "/ safe**2", "/ safe"),
    (
        "special-value",
        "special-point wrong-entries",
        "x",
        "torch.where(x == 0, torch.zeros_like(x), slope)",
        "torch.where(x == 0, torch.ones_like(x), slope)",
    ),
    ("factor-missing", "wrong-factor missing-term", "x", "(safe * safe.cos()", "(safe.cos()"),
)
