"""Forwards of low precision inside: float32, bfloat16, float16, and rounded to digits."""

from __future__ import annotations

import functools
import math

import numpy as np
import torch

from benchmarks.correct.draws import beside, decades, normal, spd, within
from benchmarks.correct.general import general
from benchmarks.correct.specimen import Collection

ROUGH = Collection("low precision")
low = functools.partial(general, ROUGH, tolerance=1e-2)


def through(dtype, body):
    """The body computed in another precision, returned in float64."""
    return lambda *inputs: body(*(x.to(dtype) for x in inputs)).double()


def single(name, body, vjp, *draws, **more):
    """Float32 inside, gradient and reference in float64."""
    low(name, through(torch.float32, body), vjp, *draws, reference=body, **more)


def half(name, body, vjp, *draws, **more):
    """Float16 inside."""
    low(name, through(torch.float16, body), vjp, *draws, reference=body, **more)


def brain(name, body, vjp, *draws, **more):
    """Bfloat16 inside."""
    low(name, through(torch.bfloat16, body), vjp, *draws, reference=body, **more)


def blind(name, body, vjp, *draws, precision=np.float32, **more):
    """Float32 inside NumPy."""

    def rounded(*arrays):
        return np.asarray(body(*(a.astype(precision) for a in arrays)), dtype=precision).astype(np.float64)

    low(name, rounded, vjp, *draws, numpy=True, **more)


single("float32 sine", torch.sin, lambda g, y, x: g * torch.cos(x), normal(6))
single("float32 sine, flat there", torch.sin, lambda g, y, x: g * torch.cos(x), beside(math.pi / 2, -4, -2))
single("float32 exponential", torch.exp, lambda g, y, x: g * torch.exp(x), normal(6, scale=3))
single("float32 tanh", torch.tanh, lambda g, y, x: g * (1 - torch.tanh(x) ** 2), normal(6, scale=2))
single("float32 square", lambda x: x * x, lambda g, y, x: 2 * g * x, decades(-3, 3))
single("float32 logarithm", torch.log, lambda g, y, x: g / x, decades(-4, 4, signed=False))
single(
    "float32 matrix product", lambda a, b: a @ b, lambda g, y, a, b: (g @ b.mT, a.mT @ g), normal(3, 8), normal(8, 2)
)
single("float32 mean", lambda x: x.mean(), lambda g, y, x: g * torch.full_like(x, 1 / x.numel()), normal(50))
single("float32 sum of many", lambda x: x.sum(), lambda g, y, x: g * torch.ones_like(x), normal(2000))
single(
    "float32 softmax",
    lambda x: torch.softmax(x, 0),
    lambda g, y, x: (lambda s: s * (g - (g * s).sum()))(torch.softmax(x, 0)),
    normal(6),
)
single("float32 norm", lambda x: x.norm(), lambda g, y, x: g * x / x.norm(), normal(20))
single(
    "float32 solve",
    torch.linalg.solve,
    lambda g, y, a, b: (lambda w: (-torch.outer(w, torch.linalg.solve(a, b)), w))(torch.linalg.solve(a.mT, g)),
    spd(4),
    normal(4),
)
single(
    "float32 sigmoid, saturated", torch.sigmoid, lambda g, y, x: g * torch.sigmoid(x) * torch.sigmoid(-x), within(2, 12)
)
single(
    "float32 around 1000",
    lambda x: torch.sin(x / 100),
    lambda g, y, x: g * torch.cos(x / 100) / 100,
    normal(6, offset=1000),
)
single(
    "float32 variance",
    lambda x: x.var(),
    lambda g, y, x: 2 * g * (x - x.mean()) / (x.numel() - 1),
    normal(30, offset=3),
)
half("float16 sine", torch.sin, lambda g, y, x: g * torch.cos(x), normal(6))
half("float16 product", lambda x, y: x * y, lambda g, z, x, y: (g * y, g * x), normal(6), normal(6))
half("float16 tanh", torch.tanh, lambda g, y, x: g * (1 - torch.tanh(x) ** 2), normal(6))
brain("bfloat16 sine", torch.sin, lambda g, y, x: g * torch.cos(x), normal(6))
brain(
    "bfloat16 matrix product", lambda a, b: a @ b, lambda g, y, a, b: (g @ b.mT, a.mT @ g), normal(3, 4), normal(4, 2)
)


def valued(name, body, slope, reference, *draws):
    """Float32 inside NumPy, with a gradient that multiplies these values by float64 numbers."""

    class Valued(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            y = torch.from_numpy(body(x.detach().numpy().astype(np.float32)).astype(np.float64))
            ctx.save_for_backward(x, y)
            return y

        @staticmethod
        def backward(ctx, g):
            return g * slope(*ctx.saved_tensors)

    ROUGH.add(Valued, *draws, name=name, witnessed=False, reference=reference, tolerance=1e-2)


valued("float32 hill", lambda x: np.exp(-x * x), lambda x, y: -2 * x * y, lambda x: torch.exp(-x * x), normal(6))
valued("float32 logistic", lambda x: 1 / (1 + np.exp(-x)), lambda x, y: y * (1 - y), torch.sigmoid, normal(5))
valued("float32 tanh by its value", np.tanh, lambda x, y: 1 - y * y, torch.tanh, normal(4))
valued("float32 power", lambda x: x**2.5, lambda x, y: 2.5 * y / x, lambda x: x**2.5, within(0.3, 3))

blind("float32 cosine by NumPy", np.cos, lambda g, y, x: -g * np.sin(x), normal(6), reference=torch.cos)
blind("float32 sinh by NumPy", np.sinh, lambda g, y, x: g * np.cosh(x), normal(6), reference=torch.sinh)
blind(
    "float32 reciprocal by NumPy",
    lambda x: 1 / x,
    lambda g, y, x: -g / x**2,
    within(0.2, 5),
    reference=torch.reciprocal,
)
blind(
    "float32 cumulative sum by NumPy",
    np.cumsum,
    lambda g, y, x: np.cumsum(g[::-1])[::-1].copy(),
    normal(30),
    reference=lambda x: torch.cumsum(x, 0),
)
blind(
    "float32 product of matrices by NumPy",
    np.matmul,
    lambda g, y, a, b: (g @ b.T, a.T @ g),
    normal(4, 6),
    normal(6, 3),
    reference=torch.matmul,
)
blind("float32 log1p by NumPy", np.log1p, lambda g, y, x: g / (1 + x), within(0, 9), reference=torch.log1p)
blind("float32 power by NumPy", lambda x: x**3, lambda g, y, x: 3 * g * x * x, decades(-2, 2), reference=lambda x: x**3)
blind(
    "float32 distance by NumPy",
    lambda x, y: np.sqrt(((x - y) ** 2).sum()),
    lambda g, d, x, y: (g * (x - y) / d, g * (y - x) / d),
    normal(10),
    normal(10),
    reference=lambda x, y: (x - y).norm(),
)
blind(
    "float32 arctangent by NumPy",
    lambda x, y: np.arctan2(x, y),
    lambda g, d, x, y: (g * y / (x * x + y * y), -g * x / (x * x + y * y)),
    normal(6),
    normal(6),
    reference=torch.atan2,
)
blind(
    "float16 cosine by NumPy",
    np.cos,
    lambda g, y, x: -g * np.sin(x),
    normal(6),
    precision=np.float16,
    reference=torch.cos,
)
low(
    "rounded to six digits",
    lambda x: np.round(np.sin(x), 6),
    lambda g, y, x: g * np.cos(x),
    normal(6),
    numpy=True,
    reference=torch.sin,
)
low(
    "rounded to ten digits",
    lambda x: np.round(np.sin(x), 10),
    lambda g, y, x: g * np.cos(x),
    normal(6),
    numpy=True,
    reference=torch.sin,
)
low(
    "rounded to three digits",
    lambda x: np.round(np.sin(x), 3),
    lambda g, y, x: g * np.cos(x),
    normal(6),
    numpy=True,
    reference=torch.sin,
)
low(
    "float32 in the middle",
    lambda x: torch.exp(torch.sin(x).float().double()),
    lambda g, y, x: g * torch.exp(torch.sin(x)) * torch.cos(x),
    normal(6),
    reference=lambda x: torch.exp(torch.sin(x)),
)
low(
    "float32 correction of a float64 result",
    lambda x: x**2 + 1e-3 * torch.sin(x.float()).double(),
    lambda g, y, x: g * (2 * x + 1e-3 * torch.cos(x)),
    normal(6),
    reference=lambda x: x**2 + 1e-3 * torch.sin(x),
)
low(
    "float32 weights",
    lambda x, w: torch.tanh(x @ w.float().double()),
    lambda g, y, x, w: (lambda d: (d @ w.mT, x.mT @ d))(g * (1 - torch.tanh(x @ w) ** 2)),
    normal(3, 4),
    normal(4, 2),
    reference=lambda x, w: torch.tanh(x @ w),
)
low(
    "values printed and read again",
    lambda x: np.array([float(f"{v:.9g}") for v in np.tanh(x)]),
    lambda g, y, x: g / np.cosh(x) ** 2,
    normal(6),
    numpy=True,
    reference=torch.tanh,
)
