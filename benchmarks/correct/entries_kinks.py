"""Functions of one entry with kinks, jumps and stairs, at them and beside them."""

from __future__ import annotations

import functools

import torch
from mpmath import mp

from benchmarks.correct.draws import at, beside, decades, normal, some_at, within
from benchmarks.correct.elementwise import entry
from benchmarks.correct.specimen import Collection

KINKS = Collection("kinks")
add = functools.partial(entry, KINKS)
half = mp.mpf(0.5)


def one(x):
    """Ones like x, in whichever arithmetic."""
    return 0 * x + 1


def inside(low, high):
    """1.0 strictly between the two."""
    return lambda x: ((x > low) & (x < high)).to(x.dtype)


add(
    "relu",
    torch.relu,
    lambda x: (x > 0).to(x.dtype),
    lambda x: max(x, 0),
    normal(6),
    some_at(0.0, 0.0),
    decades(-9, -7),
    at(0.0, 0.0),
)
add(
    "relu, slope one at zero",
    torch.relu,
    lambda x: (x >= 0).to(x.dtype),
    lambda x: max(x, 0),
    some_at(0.0, -0.0),
    normal(6),
)
add("dead relu", torch.relu, lambda x: (x > 0).to(x.dtype), lambda x: max(x, 0), within(-3, -0.1))
add(
    "leaky relu",
    lambda x: torch.where(x > 0, x, 0.01 * x),
    lambda x: torch.where(x > 0, one(x), 0.01),
    lambda x: x if x > 0 else mp.mpf(0.01) * x,
    normal(6),
    some_at(0.0),
)
add("absolute value", torch.abs, torch.sign, lambda x: abs(x), normal(6), some_at(0.0), decades(-9, -8))
add(
    "absolute value, slope half",
    torch.abs,
    lambda x: torch.where(x == 0, 0.5, torch.sign(x)),
    lambda x: abs(x),
    some_at(0.0),
)
add(
    "relu close to its kink",
    lambda x: torch.relu(x - 1),
    lambda x: (x > 1).to(x.dtype),
    lambda x: max(x - 1, 0),
    beside(1, -7, -3),
    beside(1, -12, -8),
)
add(
    "clamp",
    lambda x: x.clamp(-1, 1),
    inside(-1, 1),
    lambda x: min(max(x, -1), 1),
    normal(6, scale=2),
    some_at(1.0, -1.0),
)
add(
    "clamp, edges included",
    lambda x: x.clamp(-1, 1),
    lambda x: ((x >= -1) & (x <= 1)).to(x.dtype),
    lambda x: min(max(x, -1), 1),
    some_at(1.0, -1.0),
    beside(1, -6, -2),
)
add(
    "relu six",
    torch.nn.functional.relu6,
    inside(0, 6),
    lambda x: min(max(x, 0), 6),
    normal(6, scale=5),
    at(0.0, 6.0, 1.0),
)
add(
    "hard sigmoid",
    lambda x: (x / 6 + 0.5).clamp(0, 1),
    lambda x: inside(-3, 3)(x) / 6,
    lambda x: min(max(x / 6 + half, 0), 1),
    normal(6, scale=3),
)
add(
    "hard swish",
    lambda x: x * (x + 3).clamp(0, 6) / 6,
    lambda x: torch.where(x <= -3, 0.0, torch.where(x >= 3, 1.0, (2 * x + 3) / 6)),
    lambda x: x * min(max(x + 3, 0), 6) / 6,
    normal(6, scale=3),
)
add(
    "soft shrink",
    lambda x: torch.sign(x) * torch.relu(x.abs() - 0.5),
    lambda x: (x.abs() > 0.5).to(x.dtype),
    lambda x: mp.sign(x) * max(abs(x) - half, 0),
    normal(6),
    some_at(0.5, -0.5),
)
add(
    "hard shrink",
    lambda x: torch.where(x.abs() > 0.5, x, 0.0),
    lambda x: (x.abs() > 0.5).to(x.dtype),
    lambda x: x if abs(x) > half else 0 * x,
    normal(6),
    beside(0.5, -6, -4),
)
add(
    "threshold",
    lambda x: torch.where(x > 0.1, x, 20.0),
    lambda x: (x > 0.1).to(x.dtype),
    lambda x: x if x > mp.mpf(0.1) else mp.mpf(20),
    normal(6),
)
add(
    "elu",
    torch.nn.functional.elu,
    lambda x: torch.where(x > 0, one(x), torch.exp(torch.clamp(x, max=0))),
    lambda x: x if x > 0 else mp.expm1(x),
    normal(6),
    within(-30, -10),
    some_at(0.0),
)
add(
    "selu",
    torch.nn.functional.selu,
    lambda x: 1.0507009873554805 * torch.where(x > 0, one(x), 1.6732632423543772 * torch.exp(torch.clamp(x, max=0))),
    lambda x: mp.mpf(1.0507009873554805) * (x if x > 0 else mp.mpf(1.6732632423543772) * mp.expm1(x)),
    normal(6),
)
add(
    "celu of alpha 0.3",
    lambda x: torch.nn.functional.celu(x, 0.3),
    lambda x: torch.where(x > 0, one(x), torch.exp(torch.clamp(x, max=0) / 0.3)),
    lambda x: x if x > 0 else mp.mpf(0.3) * mp.expm1(x / mp.mpf(0.3)),
    normal(6),
)
add(
    "softsign",
    lambda x: x / (1 + x.abs()),
    lambda x: 1 / (1 + x.abs()) ** 2,
    lambda x: x / (1 + abs(x)),
    normal(6),
    decades(-9, -7),
    some_at(0.0),
)
add(
    "squared relu",
    lambda x: torch.relu(x) ** 2,
    lambda x: 2 * torch.relu(x),
    lambda x: max(x, 0) ** 2,
    normal(6),
    some_at(0.0),
)
add(
    "x times its magnitude",
    lambda x: x * x.abs(),
    lambda x: 2 * x.abs(),
    lambda x: x * abs(x),
    normal(6),
    some_at(0.0),
    order=1,
)
add(
    "cubed magnitude", lambda x: x.abs() ** 3, lambda x: 3 * x * x.abs(), lambda x: abs(x) ** 3, normal(6), some_at(0.0)
)
add(
    "root of magnitude",
    lambda x: x.abs().sqrt(),
    lambda x: 0.5 * torch.sign(x) * torch.rsqrt(x.abs()),
    lambda x: mp.sqrt(abs(x)),
    normal(6),
    decades(-9, -6),
)
add(
    "signed root",
    lambda x: torch.sign(x) * x.abs().sqrt(),
    lambda x: 0.5 * torch.rsqrt(x.abs()),
    lambda x: mp.sign(x) * mp.sqrt(abs(x)),
    normal(6),
    decades(-6, 2),
)
add(
    "cube root",
    lambda x: torch.sign(x) * x.abs() ** (1 / 3),
    lambda x: x.abs() ** (-2 / 3) / 3,
    lambda x: mp.sign(x) * mp.cbrt(abs(x)),
    normal(6),
    decades(-8, 3),
)
add(
    "magnitude to 1.5",
    lambda x: x.abs() ** 1.5,
    lambda x: 1.5 * torch.sign(x) * x.abs().sqrt(),
    lambda x: abs(x) ** mp.mpf(1.5),
    normal(6),
)
add("sign", torch.sign, lambda x: 0 * x, mp.sign, normal(6), decades(-6, -4))
add("round", torch.round, lambda x: 0 * x, lambda x: mp.nint(x), normal(6, scale=3), within(-0.4, 0.4))
add("floor", torch.floor, lambda x: 0 * x, mp.floor, normal(6, scale=30), within(1e6, 2e6))
add("ceiling of eighths", lambda x: torch.ceil(8 * x) / 8, lambda x: 0 * x, lambda x: mp.ceil(8 * x) / 8, normal(6))
add("fraction", lambda x: x - torch.floor(x), one, lambda x: x - mp.floor(x), normal(6), normal(6, scale=100))
add(
    "remainder by 0.7",
    lambda x: torch.remainder(x, 0.7),
    one,
    lambda x: x - mp.mpf(0.7) * mp.floor(x / mp.mpf(0.7)),
    normal(6, scale=3),
)
add(
    "triangle wave",
    lambda x: 2 * (x - torch.round(x)).abs(),
    lambda x: 2 * torch.sign(x - torch.round(x)),
    lambda x: 2 * abs(x - mp.nint(x)),
    normal(6),
)
add(
    "saw of a sine",
    lambda x: torch.sin(x) - 0.25 * torch.floor(4 * torch.sin(x)),
    torch.cos,
    lambda x: mp.sin(x) - mp.floor(4 * mp.sin(x)) / 4,
    normal(6),
)
add(
    "heaviside times x",
    lambda x: torch.where(x > 0.3, x * x, 0 * x),
    lambda x: torch.where(x > 0.3, 2 * x, 0 * x),
    lambda x: x * x if x > mp.mpf(0.3) else 0 * x,
    normal(6),
)
add(
    "quantised to 1/256",
    lambda x: torch.round(x * 256) / 256,
    lambda x: 0 * x,
    lambda x: mp.nint(x * 256) / 256,
    normal(6),
)
add(
    "fine kinks",
    lambda x: x + 1e-3 * (100 * x - torch.round(100 * x)).abs(),
    lambda x: 1 + 0.1 * torch.sign(100 * x - torch.round(100 * x)),
    lambda x: x + mp.mpf(1e-3) * abs(100 * x - mp.nint(100 * x)),
    normal(6),
)
add(
    "Huber",
    lambda x: torch.where(x.abs() < 1, 0.5 * x * x, x.abs() - 0.5),
    lambda x: x.clamp(-1, 1),
    lambda x: x * x / 2 if abs(x) < 1 else abs(x) - half,
    normal(6),
    some_at(1.0, -1.0),
)
add(
    "hinge",
    lambda x: torch.relu(1 - x),
    lambda x: -(x < 1).to(x.dtype),
    lambda x: max(1 - x, 0),
    normal(6),
    some_at(1.0, 1.0),
)
add(
    "squared hinge",
    lambda x: torch.relu(1 - x) ** 2,
    lambda x: -2 * torch.relu(1 - x),
    lambda x: max(1 - x, 0) ** 2,
    normal(6),
)
add(
    "pinball of 0.9",
    lambda x: torch.maximum(0.9 * x, -0.1 * x),
    lambda x: torch.where(x > 0, 0.9 * one(x), -0.1),
    lambda x: max(mp.mpf(0.9) * x, -mp.mpf(0.1) * x),
    normal(6),
    some_at(0.0),
)
add(
    "distance to the nearest of three",
    lambda x: torch.stack([(x + 1).abs(), x.abs(), (x - 2).abs()]).amin(0),
    lambda x: torch.sign(x - torch.where(x < -0.5, -1.0, torch.where(x < 1, 0.0, 2.0))),
    lambda x: min(abs(x + 1), abs(x), abs(x - 2)),
    normal(6),
)
add(
    "smoothstep",
    lambda x: x.clamp(0, 1) ** 2 * (3 - 2 * x.clamp(0, 1)),
    lambda x: 6 * x.clamp(0, 1) * (1 - x.clamp(0, 1)),
    lambda x: min(max(x, 0), 1) ** 2 * (3 - 2 * min(max(x, 0), 1)),
    normal(6),
    at(0.0, 1.0, 0.25, 2.0),
)
add(
    "bump",
    lambda x: torch.where(x.abs() < 1, torch.exp(-1 / (1 - x.clamp(-0.999, 0.999) ** 2)), 0.0),
    lambda x: torch.where(
        x.abs() < 1,
        torch.exp(-1 / (1 - x.clamp(-0.999, 0.999) ** 2)) * -2 * x / (1 - x.clamp(-0.999, 0.999) ** 2) ** 2,
        0.0,
    ),
    lambda x: mp.exp(-1 / (1 - x * x)) if abs(x) < 1 else 0 * x,
    within(-0.95, 0.95),
    within(1.1, 3),
)
add("log of magnitude", lambda x: x.abs().log(), torch.reciprocal, lambda x: mp.log(abs(x)), normal(6), decades(-8, -4))
add(
    "entropy term",
    lambda x: torch.where(x > 0, -x * torch.log(x.clamp(min=1e-300)), 0.0),
    lambda x: -torch.log(x) - 1,
    lambda x: -x * mp.log(x),
    within(0.01, 1),
    decades(-12, -4, signed=False),
)
