"""Complex numbers, geometry, finance, physics and solvers, in PyTorch."""

import torch
from torch.autograd import Function

from benchmarks.fix.other_hand.record import Family

PLANT = Family("science", "torch", __file__)


class ComplexProduct(Function):
    @staticmethod
    def forward(ctx, a, b):
        ctx.save_for_backward(a, b)
        return a * b

    @staticmethod
    def backward(ctx, grad_output):
        a, b = ctx.saved_tensors
        return grad_output * b.conj(), grad_output * a.conj()


PLANT(
    "ComplexProduct",
    "a=NxM,dtype=complex128 b=NxM,dtype=complex128",
    ("conjugate", "missing-conjugate wrong-factor", "a", "grad_output * b.conj()", "grad_output * b"),
    (
        "conjugate",
        "missing-conjugate wrong-factor",
        "a b",
        "return grad_output * b.conj(), grad_output * a.conj()",
        "return (grad_output * b), grad_output * a",
    ),
    (
        "swapped-two",
        "swapped-gradients",
        "a b",
        "grad_output * b.conj(), grad_output * a.conj()",
        "grad_output * a.conj(), grad_output * b.conj()",
    ),
    flags=True,
)


class Magnitude(Function):
    @staticmethod
    def forward(ctx, z):
        r = z.abs()
        ctx.save_for_backward(z, r)
        return r

    @staticmethod
    def backward(ctx, grad_output):
        z, r = ctx.saved_tensors
        return grad_output * z / r


PLANT(
    "Magnitude",
    "z=NxM,dtype=complex128",
    ("conjugate", "missing-conjugate", "z", "grad_output * z / r", "grad_output * z.conj() / r"),
    ("factor-missing", "wrong-factor", "z", "grad_output * z / r", "grad_output * z"),
    ("factor-extra", "wrong-factor", "z", "grad_output * z / r", "2 * grad_output * z / r"),
    flags=True,
)


class ComplexLinear(Function):
    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        return x @ w

    @staticmethod
    def backward(ctx, grad_output):
        x, w = ctx.saved_tensors
        return grad_output @ w.mH, x.mH @ grad_output


PLANT(
    "ComplexLinear",
    "x=NxN,dtype=complex128 w=NxN,dtype=complex128",
    ("conjugate", "missing-conjugate wrong-factor", "x", "grad_output @ w.mH", "grad_output @ w.mT"),
    ("conjugate", "missing-conjugate", "w", "x.mH @ grad_output", "x.mT @ grad_output"),
    ("transposed-operand", "transposed", "w", "x.mH @ grad_output", "x.conj() @ grad_output"),
    flags=True,
)


class CallPrice(Function):
    """A European call by Black and Scholes; strike 1 and maturity 1."""

    @staticmethod
    def forward(ctx, spot, vol, rate):
        d1 = (spot.log() + rate + 0.5 * vol**2) / vol
        ctx.save_for_backward(spot, vol, rate)
        return spot * torch.special.ndtr(d1) - (-rate).exp() * torch.special.ndtr(d1 - vol)

    @staticmethod
    def backward(ctx, grad_output):
        spot, vol, rate = ctx.saved_tensors
        d1 = (spot.log() + rate + 0.5 * vol**2) / vol
        density = (-0.5 * d1**2).exp() / (2 * torch.pi) ** 0.5
        delta = torch.special.ndtr(d1)
        vega = spot * density
        rho = (-rate).exp() * torch.special.ndtr(d1 - vol)
        return grad_output * delta, grad_output * vega, grad_output * rho


PLANT(
    "CallPrice",
    "spot=NxM,domain=positive vol=NxM,domain=positive rate=NxM,domain=unit",
    ("factor-missing", "wrong-factor", "vol", "vega = spot * density", "vega = density"),
    (
        "wrong-variable",
        "wrong-gradient wrong-factor",
        "spot",
        "delta = torch.special.ndtr(d1)",
        "delta = torch.special.ndtr(d1 - vol)",
    ),
    ("sign-inner", "wrong-gradient wrong-factor", "vol", "(-0.5 * d1**2).exp()", "(0.5 * d1**2).exp()"),
    (
        "swapped-three",
        "swapped-gradients",
        "spot vol rate",
        "return grad_output * delta, grad_output * vega, grad_output * rho",
        "return grad_output * vega, grad_output * rho, grad_output * delta",
    ),
    ("factor-missing", "wrong-factor", "rate", "rho = (-rate).exp() * torch", "rho = torch"),
    ("constant-wrong", "wrong-factor", "vol", "(2 * torch.pi) ** 0.5", "(2 * torch.pi)"),
    flags=True,
)


class CrossProduct(Function):
    @staticmethod
    def forward(ctx, a, b):
        ctx.save_for_backward(a, b)
        return torch.linalg.cross(a, b)

    @staticmethod
    def backward(ctx, g):
        a, b = ctx.saved_tensors
        return torch.linalg.cross(b, g), torch.linalg.cross(g, a)


PLANT(
    "CrossProduct",
    "a=Nx3 b=Nx3",
    ("sign", "wrong-sign", "a", "torch.linalg.cross(b, g)", "torch.linalg.cross(g, b)"),
    (
        "wrong-variable",
        "wrong-gradient swapped-gradients wrong-factor",
        "b",
        "torch.linalg.cross(g, a)",
        "torch.linalg.cross(g, b)",
    ),
    (
        "swapped-two",
        "swapped-gradients",
        "a b",
        "torch.linalg.cross(b, g), torch.linalg.cross(g, a)",
        "torch.linalg.cross(g, a), torch.linalg.cross(b, g)",
    ),
    flags=True,
)


class SpringEnergy(Function):
    """Energy of a chain of points with springs between neighbours."""

    @staticmethod
    def forward(ctx, x, k):
        ctx.save_for_backward(x, k)
        stretch = x[1:] - x[:-1]
        return 0.5 * (k * stretch**2).sum()

    @staticmethod
    def backward(ctx, grad_output):
        x, k = ctx.saved_tensors
        stretch = x[1:] - x[:-1]
        force = k * stretch
        zero = x.new_zeros(1)
        grad_x = torch.cat([zero, force]) - torch.cat([force, zero])
        return grad_output * grad_x, grad_output * 0.5 * stretch**2


PLANT(
    "SpringEnergy",
    "x=M k={M-1}",
    (
        "missing-term",
        "missing-term wrong-shift wrong-entries",  # the last point, which has no right neighbour, stays right
        "x",
        "torch.cat([zero, force]) - torch.cat([force, zero])",
        "torch.cat([zero, force])",
    ),
    (
        "sign",
        "wrong-sign",
        "x",
        "torch.cat([zero, force]) - torch.cat([force, zero])",
        "torch.cat([force, zero]) - torch.cat([zero, force])",
    ),
    ("factor-missing", "wrong-factor", "k", "grad_output * 0.5 * stretch**2", "grad_output * stretch**2"),
    ("sign-of-term", "wrong-sign missing-term", "x", "force]) - torch", "force]) + torch"),
    ("other-factor-missing", "wrong-factor missing-term", "x", "force = k * stretch", "force = stretch"),
    flags=True,
)


class FixedPoint(Function):
    """The solution z of z = tanh(z w + x) by iteration, differentiated implicitly."""

    @staticmethod
    def forward(ctx, x, w):
        gain = 0.2 * torch.tanh(w)
        z = torch.zeros_like(x)
        for _ in range(200):
            z = torch.tanh(z * gain + x)
        ctx.save_for_backward(z, w)
        return z

    @staticmethod
    def backward(ctx, grad_output):
        z, w = ctx.saved_tensors
        t = torch.tanh(w)
        slope = 1 - z**2
        dx = grad_output * slope / (1 - 0.2 * t * slope)
        return dx, dx * z * 0.2 * (1 - t**2)


PLANT(
    "FixedPoint",
    "x=NxM w=NxM",
    ("implicit-forgotten", "wrong-factor", "x w", "grad_output * slope / (1 - 0.2 * t * slope)", "grad_output * slope"),
    ("sign-inner", "wrong-factor wrong-sign wrong-gradient", "x w", "(1 - 0.2 * t * slope)", "(1 + 0.2 * t * slope)"),
    ("factor-missing", "wrong-factor", "w", "dx * z * 0.2 * (1", "dx * 0.2 * (1"),
    ("chain-rule-forgotten", "wrong-factor", "w", "dx * z * 0.2 * (1 - t**2)", "dx * z * 0.2"),
    flags=True,
)


class RotaryEmbedding(Function):
    """Rotation of pairs of channels by given angles."""

    @staticmethod
    def forward(ctx, x, angle):
        ctx.save_for_backward(x, angle)
        a, b = x.chunk(2, -1)
        c, s = angle.cos(), angle.sin()
        return torch.cat([a * c - b * s, a * s + b * c], -1)

    @staticmethod
    def backward(ctx, grad_output):
        x, angle = ctx.saved_tensors
        a, b = x.chunk(2, -1)
        ga, gb = grad_output.chunk(2, -1)
        c, s = angle.cos(), angle.sin()
        grad_x = torch.cat([ga * c + gb * s, gb * c - ga * s], -1)
        grad_angle = gb * (a * c - b * s) - ga * (a * s + b * c)
        return grad_x, grad_angle


PLANT(
    "RotaryEmbedding",
    "x=Nx{2*L} angle=NxL",
    (
        "rotated-forward",
        "wrong-gradient wrong-sign transposed",
        "x",
        "[ga * c + gb * s, gb * c - ga * s]",
        "[ga * c - gb * s, gb * c + ga * s]",
    ),
    (
        "sign-of-term",
        "wrong-sign missing-term wrong-gradient wrong-entries",
        "x",
        "ga * c + gb * s,",
        "ga * c - gb * s,",
    ),
    ("missing-term", "missing-term", "angle", "gb * (a * c - b * s) - ga * (a * s + b * c)", "gb * (a * c - b * s)"),
    (
        "swapped-halves",
        "wrong-shift transposed",
        "x",
        "torch.cat([ga * c + gb * s, gb * c - ga * s], -1)",
        "torch.cat([gb * c - ga * s, ga * c + gb * s], -1)",
    ),
    (
        "sign",
        "wrong-sign",
        "angle",
        "gb * (a * c - b * s) - ga * (a * s + b * c)",
        "ga * (a * s + b * c) - gb * (a * c - b * s)",
    ),
    flags=True,
)
