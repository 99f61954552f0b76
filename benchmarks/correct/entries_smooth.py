"""Smooth functions of one entry, at ordinary and at extreme places."""

from __future__ import annotations

import functools
import math

import torch
from mpmath import mp

from benchmarks.correct.draws import at, beside, decades, normal, within
from benchmarks.correct.elementwise import entry
from benchmarks.correct.specimen import Collection

SMOOTH = Collection("smooth")
add = functools.partial(entry, SMOOTH)
ROOT_PI = math.sqrt(math.pi)


def sech2(x):
    """The slope of tanh, without 1 - tanh²."""
    e = torch.exp(-2 * x.abs())
    return 4 * e / (1 + e) ** 2


def sigmoid_slope(x):
    """The slope of the sigmoid, without s (1 - s)."""
    e = torch.exp(-x.abs())
    return e / (1 + e) ** 2


add("sine", torch.sin, torch.cos, mp.sin, normal(6), normal(6, scale=1e-8), normal(6, scale=1e3))
add("tangent near its pole", torch.tan, lambda x: 1 / torch.cos(x) ** 2, mp.tan, beside(math.pi / 2, -5, -2))
add("exponential", torch.exp, lambda y: y, mp.exp, normal(6), within(300, 700), within(-700, -600), from_output=True)
add("hyperbolic tangent", torch.tanh, sech2, mp.tanh, normal(6), within(8, 16), decades(-8, -6))
add("tanh from its output", torch.tanh, lambda y: 1 - y * y, mp.tanh, normal(6), from_output=True)
add("logarithm", torch.log, lambda x: 1 / x, mp.log, within(0.1, 3), decades(-12, -6, signed=False))
add("logarithm of tiny and huge", torch.log, torch.reciprocal, mp.log, decades(-30, 30, signed=False))
add("log1p", torch.log1p, lambda x: 1 / (1 + x), mp.log1p, decades(-10, -4), beside(-1, -9, -6, above=True))
add("expm1", torch.expm1, torch.exp, mp.expm1, normal(6), decades(-12, -7))
add(
    "reciprocal",
    torch.reciprocal,
    lambda x: -1 / (x * x),
    lambda x: 1 / x,
    normal(6),
    decades(-6, -5.9),
    decades(-3, 5),
)
add(
    "square root",
    torch.sqrt,
    lambda y: 0.5 / y,
    mp.sqrt,
    within(0.1, 2),
    decades(-14, -8, signed=False),
    from_output=True,
)
add(
    "reciprocal square root",
    torch.rsqrt,
    lambda x: -0.5 * x**-1.5,
    lambda x: 1 / mp.sqrt(x),
    decades(-5, 5, signed=False),
)
add("square", lambda x: x * x, lambda x: 2 * x, lambda x: x * x, normal(6), decades(-8, 8), decades(6, 8))
add("cube", lambda x: x**3, lambda x: 3 * x * x, lambda x: x**3, normal(6), decades(-8, -7))
add("ninth power", lambda x: x**9, lambda x: 9 * x**8, lambda x: x**9, normal(6), decades(2, 3))
add(
    "power 1.3",
    lambda x: x**1.3,
    lambda x: 1.3 * x**0.3,
    lambda x: mp.mpf(x) ** mp.mpf(1.3),
    decades(-4, 4, signed=False),
)
add(
    "fast sine",
    lambda x: torch.sin(1e5 * x),
    lambda x: 1e5 * torch.cos(1e5 * x),
    lambda x: mp.sin(10**5 * x),
    normal(6),
)
add(
    "small fast ripple",
    lambda x: torch.sin(x) + 1e-6 * torch.sin(1e5 * x),
    lambda x: torch.cos(x) + 0.1 * torch.cos(1e5 * x),
    lambda x: mp.sin(x) + mp.mpf(1e-6) * mp.sin(10**5 * x),
    normal(6),
)
add(
    "chirp",
    lambda x: torch.sin(30 * x * x),
    lambda x: 60 * x * torch.cos(30 * x * x),
    lambda x: mp.sin(30 * x * x),
    normal(6, scale=2),
)
add("offset 1e8", lambda x: 1e8 + torch.sin(x), torch.cos, lambda x: 10**8 + mp.sin(x), normal(6), tolerance=1e-6)
add("offset 1e4", lambda x: 1e4 + torch.sin(x), torch.cos, lambda x: 10**4 + mp.sin(x), normal(6))
add(
    "around 1e8",
    lambda x: torch.sin(x - 1e8),
    lambda x: torch.cos(x - 1e8),
    lambda x: mp.sin(x - 10**8),
    normal(6, offset=1e8),
)
add(
    "outputs of 1e30",
    lambda x: 1e30 * torch.sin(x),
    lambda x: 1e30 * torch.cos(x),
    lambda x: mp.mpf(1e30) * mp.sin(x),
    normal(6),
)
add(
    "outputs of 1e-30",
    lambda x: 1e-30 * torch.sin(x),
    lambda x: 1e-30 * torch.cos(x),
    lambda x: mp.mpf(1e-30) * mp.sin(x),
    normal(6),
)
add(
    "inputs of 1e-30",
    lambda x: torch.sin(1e30 * x),
    lambda x: 1e30 * torch.cos(1e30 * x),
    lambda x: mp.sin(mp.mpf(1e30) * x),
    normal(6, scale=1e-30),
)
add("pole close by", lambda x: 1 / (x - 1), lambda x: -1 / (x - 1) ** 2, lambda x: 1 / (x - 1), beside(1, -5, -2))
add(
    "double pole",
    lambda x: 1 / (x * x - 2) ** 2,
    lambda x: -4 * x / (x * x - 2) ** 3,
    lambda x: 1 / (x * x - 2) ** 2,
    beside(1.4, -3, -1),
)
add(
    "Runge",
    lambda x: 1 / (1 + 1e4 * x * x),
    lambda x: -2e4 * x / (1 + 1e4 * x * x) ** 2,
    lambda x: 1 / (1 + 10**4 * x * x),
    normal(6),
    decades(-4, -2),
)
add(
    "steep sigmoid",
    lambda x: torch.sigmoid(1e3 * (x - 0.5)),
    lambda x: 1e3 * sigmoid_slope(1e3 * (x - 0.5)),
    lambda x: 1 / (1 + mp.exp(-1000 * (x - mp.mpf(0.5)))),
    beside(0.5, -4, -2),
)
add(
    "saturated sigmoid",
    torch.sigmoid,
    sigmoid_slope,
    lambda x: 1 / (1 + mp.exp(-x)),
    within(20, 33),
    within(-60, -20),
    normal(6),
)
add(
    "sigmoid from its output",
    torch.sigmoid,
    lambda y: y * (1 - y),
    lambda x: 1 / (1 + mp.exp(-x)),
    normal(6),
    from_output=True,
)
add(
    "softplus",
    torch.nn.functional.softplus,
    torch.sigmoid,
    lambda x: mp.log1p(mp.exp(x)),
    within(-19, 19),
    tolerance=1e-8,
)
add(
    "log sigmoid",
    torch.nn.functional.logsigmoid,
    lambda x: torch.sigmoid(-x),
    lambda x: -mp.log1p(mp.exp(-x)),
    within(-40, 40),
)
add(
    "tail of erfc",
    torch.erfc,
    lambda x: -2 / ROOT_PI * torch.exp(-x * x),
    mp.erfc,
    within(4, 6),
    within(15, 26),
    normal(6),
)
add(
    "gaussian",
    lambda x: torch.exp(-x * x),
    lambda x: -2 * x * torch.exp(-x * x),
    lambda x: mp.exp(-x * x),
    normal(6),
    within(8, 20),
)
add(
    "inverse error function",
    torch.erfinv,
    lambda y: ROOT_PI / 2 * torch.exp(y * y),
    mp.erfinv,
    within(-0.99, 0.99),
    from_output=True,
)
add(
    "tail of GELU",
    torch.nn.functional.gelu,
    lambda x: 0.5 * torch.erfc(-x / math.sqrt(2)) + x * torch.exp(-x * x / 2) / math.sqrt(2 * math.pi),
    lambda x: x * mp.erfc(-x / mp.sqrt(2)) / 2,
    normal(6),
    within(-5, -3),
    tolerance=1e-8,
)
add(
    "swish",
    lambda x: x * torch.sigmoid(x),
    lambda x: torch.sigmoid(x) + x * sigmoid_slope(x),
    lambda x: x / (1 + mp.exp(-x)),
    normal(6),
    within(-30, -10),
)
add(
    "mish",
    torch.nn.functional.mish,
    lambda x: (
        torch.tanh(torch.nn.functional.softplus(x)) + x * sech2(torch.nn.functional.softplus(x)) * torch.sigmoid(x)
    ),
    lambda x: x * mp.tanh(mp.log1p(mp.exp(x))),
    normal(6),
)
add(
    "arcsine near one",
    torch.arcsin,
    lambda x: torch.rsqrt((1 - x) * (1 + x)),
    mp.asin,
    within(0.9999, 0.99999999),
    tolerance=1e-7,
)
add("arccosine", torch.arccos, lambda x: -torch.rsqrt(1 - x * x), mp.acos, within(-0.95, 0.95))
add("arctangent", torch.arctan, lambda x: 1 / (1 + x * x), mp.atan, normal(6), decades(4, 8))
add("inverse hyperbolic tangent", torch.atanh, lambda x: 1 / ((1 - x) * (1 + x)), mp.atanh, within(0.9, 0.9999999))
add(
    "inverse hyperbolic cosine",
    torch.acosh,
    lambda x: torch.rsqrt((x - 1) * (x + 1)),
    mp.acosh,
    beside(1, -6, -2, above=True),
    tolerance=1e-8,
)
add("inverse hyperbolic sine", torch.asinh, lambda x: torch.rsqrt(1 + x * x), mp.asinh, normal(6), decades(-9, 6))
add("hyperbolic sine", torch.sinh, torch.cosh, mp.sinh, normal(6), within(300, 700))
add("log of gamma", torch.lgamma, torch.digamma, mp.loggamma, within(0.2, 5), decades(3, 6, signed=False))
add(
    "digamma",
    torch.digamma,
    lambda x: torch.polygamma(1, x),
    mp.digamma,
    within(0.2, 5),
    decades(-5, -2, signed=False),
    order=1,
)
add(
    "Bessel i0e",
    torch.special.i0e,
    lambda x: torch.special.i1e(x) - torch.sign(x) * torch.special.i0e(x),
    lambda x: mp.exp(-abs(x)) * mp.besseli(0, x),
    within(0.1, 9),
)
add("sinc", torch.sinc, lambda x: (torch.cos(math.pi * x) - torch.sinc(x)) / x, lambda x: mp.sincpi(x), within(0.2, 3))
add(
    "naive expm1 over x",
    lambda x: (torch.exp(x) - 1) / x,
    lambda x: (torch.exp(x) * (x - 1) + 1) / x**2,
    lambda x: (mp.exp(x) - 1) / x,
    within(0.1, 1),
    within(1e-3, 1e-2),
    tolerance=1e-8,
)
add(
    "cancelling cosine",
    lambda x: (1 - torch.cos(x)) / x**2,
    lambda x: torch.sin(x) / x**2 - 2 * (1 - torch.cos(x)) / x**3,
    lambda x: (1 - mp.cos(x)) / x**2,
    within(0.02, 0.1),
    normal(6),
    tolerance=1e-7,
)
add(
    "one minus tanh",
    lambda x: 1 - torch.tanh(x),
    lambda x: -sech2(x),
    lambda x: 1 - mp.tanh(x),
    within(4, 9),
    within(10, 14),
    at(20.0, 1.0),
)
add(
    "difference of square roots",
    lambda x: torch.sqrt(x + 1) - torch.sqrt(x),
    lambda x: 0.5 * (torch.rsqrt(x + 1) - torch.rsqrt(x)),
    lambda x: mp.sqrt(x + 1) - mp.sqrt(x),
    decades(3, 5, signed=False),
    tolerance=1e-7,
)
add(
    "small root of a quadratic",
    lambda x: x - torch.sqrt(x * x - 1),
    lambda x: 1 - x * torch.rsqrt(x * x - 1),
    lambda x: x - mp.sqrt(x * x - 1),
    decades(2, 3, signed=False),
    tolerance=1e-6,
)
add(
    "logistic map, twelve times",
    lambda x: functools.reduce(lambda v, _: 3.9 * v * (1 - v), range(12), x),
    lambda x: functools.reduce(
        lambda s, _: (3.9 * s[0] * (1 - s[0]), s[1] * 3.9 * (1 - 2 * s[0])), range(12), (x, torch.ones_like(x))
    )[1],
    lambda x: functools.reduce(lambda v, _: mp.mpf(3.9) * v * (1 - v), range(12), x),
    within(0.1, 0.9),
    tolerance=1e-8,
)
add(
    "nested exponentials",
    lambda x: torch.exp(torch.exp(torch.exp(x))),
    lambda x: torch.exp(torch.exp(torch.exp(x)) + torch.exp(x) + x),
    lambda x: mp.exp(mp.exp(mp.exp(x))),
    within(-3, 1),
)
add(
    "exp of minus one over square",
    lambda x: torch.exp(-1 / (x * x)),
    lambda x: 2 / x**3 * torch.exp(-1 / (x * x)),
    lambda x: mp.exp(-1 / (x * x)),
    within(0.1, 2),
)
add(
    "sine of one over x",
    lambda x: torch.sin(1 / x),
    lambda x: -torch.cos(1 / x) / (x * x),
    lambda x: mp.sin(1 / x),
    within(0.01, 0.1),
    decades(-3, -2.5),
)
add("x to the x", lambda x: x**x, lambda x: x**x * (torch.log(x) + 1), lambda x: x**x, within(0.1, 4))
add(
    "logit",
    torch.logit,
    lambda x: 1 / (x * (1 - x)),
    lambda x: mp.log(x / (1 - x)),
    within(0.01, 0.99),
    decades(-12, -6, signed=False),
)
add(
    "Horner of degree twelve",
    lambda x: functools.reduce(lambda v, k: v * x + (-1.0) ** k / (k + 1), range(13), torch.zeros_like(x)),
    lambda x: functools.reduce(lambda v, k: v * x + (12 - k) * (-1.0) ** k / (k + 1), range(12), torch.zeros_like(x)),
    lambda x: functools.reduce(lambda v, k: v * x + mp.mpf(-1) ** k / (k + 1), range(13), mp.mpf(0)),
    normal(6),
)
add(
    "Wilkinson's polynomial",
    lambda x: torch.stack([x - k for k in range(1, 9)]).prod(0),
    lambda x: sum(torch.stack([x - k for k in range(1, 9) if k != j]).prod(0) for j in range(1, 9)),
    lambda x: mp.fprod(x - k for k in range(1, 9)),
    within(0.5, 8.5),
)
add(
    "nearly constant",
    lambda x: 1 + 1e-9 * torch.sin(x),
    lambda x: 1e-9 * torch.cos(x),
    lambda x: 1 + mp.mpf(1e-9) * mp.sin(x),
    normal(6),
    tolerance=1e-6,
)
add("linear", lambda x: 3 * x, lambda x: 3 * torch.ones_like(x), lambda x: 3 * x, normal(6), decades(-8, 8))
add(
    "affine, large offset",
    lambda x: 3 * x - 7e6,
    lambda x: 3 * torch.ones_like(x),
    lambda x: 3 * x - 7 * 10**6,
    normal(6),
)
add("constant", lambda x: 0 * x + 4.25, lambda x: 0 * x, lambda x: mp.mpf(4.25) + 0 * x, normal(6))
