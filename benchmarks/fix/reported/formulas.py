"""Formulas, at special points and in other modes."""

import torch
import torch.nn.functional as F
from torch.autograd import Function

from benchmarks.fix.other_hand.record import Family

PLANT = Family("reported", "torch", __file__)


class Conic(Function):
    """The exponent of a Gaussian splat."""

    @staticmethod
    def forward(ctx, a, b, c, d):
        ctx.save_for_backward(a, b, c, d)
        x, y = d[:, 0], d[:, 1]
        return -0.5 * (a * x * x + c * y * y) - b * x * y

    @staticmethod
    def backward(ctx, grad_output):
        a, b, c, d = ctx.saved_tensors
        x, y = d[:, 0], d[:, 1]
        grad_a = -0.5 * grad_output * x * x
        grad_b = -grad_output * x * y
        grad_c = -0.5 * grad_output * y * y
        grad_d = grad_output[:, None] * torch.stack([-a * x - b * y, -c * y - b * x], 1)
        return grad_a, grad_b, grad_c, grad_d


PLANT(
    "Conic",
    "a=N b=N c=N d=Nx2",
    ("factor", "wrong-factor", "b", "grad_b = -grad_output * x * y", "grad_b = -0.5 * grad_output * x * y"),
    flags=True,
)


class Subtract(Function):
    @staticmethod
    def forward(ctx, a, b):
        return a - b

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output, -grad_output


PLANT("Subtract", "a=NxM b=NxM", ("sign", "wrong-sign", "b", "-grad_output", "grad_output.clone()"))


class Softsign(Function):
    """Reverse and forward mode of one function."""

    @staticmethod
    def forward(x):
        return x / (1 + x.abs())

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)
        ctx.save_for_forward(*inputs)

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return grad_output / (1 + x.abs()) ** 2

    @staticmethod
    def jvp(ctx, tangent):
        (x,) = ctx.saved_tensors
        return tangent / (1 + x.abs()).square()


PLANT(
    "Softsign",
    "x=NxM",
    ("forward-mode", "jvp-mismatch", "", "tangent / (1 + x.abs()).square()", "tangent / (1 + x.abs())"),
)


class PowerOfThree(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return grad_output * 3 * x**2


PLANT(
    "PowerOfThree",
    "x=NxM",
    ("nan-at-zero", "non-finite-gradient", "x", "3 * x**2", "3 * x**3 / x"),
)


class Reflect(Function):
    """Coordinates reflected at a border."""

    @staticmethod
    def forward(ctx, x, border):
        ctx.save_for_backward(x)
        ctx.border = border
        return torch.where(x > border, 2 * border - x, x)

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return torch.where(x > ctx.border, -grad_output, grad_output), None


PLANT(
    "Reflect",
    "x=NxM border:0.4",
    (
        "beyond-the-border",
        "wrong-entries wrong-sign",
        "x",
        "torch.where(x > ctx.border, -grad_output, grad_output)",
        "grad_output",
    ),
    (
        "operands-reversed",
        "wrong-sign wrong-entries wrong-gradient",
        "x",
        "-grad_output, grad_output)",
        "grad_output, -grad_output)",
    ),
    flags=True,
)


class Steady(Function):
    """An infusion, with and without steady state."""

    @staticmethod
    def forward(ctx, dose, interval, steady=True):
        ctx.save_for_backward(dose, interval)
        ctx.steady = steady
        return dose * torch.exp(-interval) / (1 - torch.exp(-interval) if steady else 1.0)

    @staticmethod
    def backward(ctx, grad_output):
        dose, interval = ctx.saved_tensors
        e = torch.exp(-interval)
        if ctx.steady:
            return grad_output * e / (1 - e), -grad_output * dose * e / (1 - e) ** 2, None
        return grad_output * e, -grad_output * dose * e, None


PLANT(
    "Steady",
    "dose=N,domain=positive interval=N,domain=positive steady:True",
    (
        "one-mode-wrong",
        "wrong-factor missing-term",
        "interval",
        "-grad_output * dose * e / (1 - e) ** 2",
        "-grad_output * dose * e / (1 - e)",
    ),
    flags=True,
)


class Interpolates(Function):
    """A value between two others."""

    @staticmethod
    def forward(ctx, a, b, t):
        ctx.save_for_backward(a, b, t)
        return t * t * (b - a)

    @staticmethod
    def backward(ctx, grad_output):
        a, b, t = ctx.saved_tensors
        slope = t * t * grad_output
        return -slope, slope, 2 * t * grad_output * (b - a)


PLANT(
    "Interpolates",
    "a=NxM b=NxM t=NxM",
    (
        "parenthesis",
        "nonlinear-backward wrong-gradient missing-term wrong-factor",
        "t",
        "2 * t * grad_output * (b - a)",
        "2 * t * grad_output * b - a",
    ),
)


class Distance(Function):
    """Squared distances of each row to each other row."""

    @staticmethod
    def forward(ctx, x, y):
        ctx.save_for_backward(x, y)
        return (x[:, None] - y).pow(2).sum(-1)

    @staticmethod
    def backward(ctx, grad_output):
        x, y = ctx.saved_tensors
        slope = 2 * (x[:, None] - y) * grad_output[:, :, None]
        return slope.sum(1), -slope.sum(0)


PLANT(
    "Distance",
    "x=NxM y=KxM",
    ("axes-exchanged", "wrong-reduction wrong-shape swapped-gradients", "y", "-slope.sum(0)", "-slope.sum(1)"),
    flags=True,
)
