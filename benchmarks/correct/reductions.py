"""Reductions: sums, norms, moments and products, over few entries and many, with backwards by hand."""

from __future__ import annotations

import functools

import numpy as np
import torch
from torch.nn import functional as F  # noqa: N812 - its usual name

from benchmarks.correct.draws import conditioned, decades, distinct, normal, some_at, untracked, whole, within
from benchmarks.correct.general import general
from benchmarks.correct.layers import cosine, cosine_vjp, summed_to
from benchmarks.correct.specimen import Collection

REDUCTIONS = Collection("reductions")
reduce = functools.partial(general, REDUCTIONS)


reduce("sum", lambda x: x.sum(), lambda g, y, x: g.expand(x.shape), normal(3, 4))
reduce("sum of ten thousand", lambda x: x.sum(), lambda g, y, x: g.expand(x.shape), normal(10_000))
reduce("sum of squares of ten thousand", lambda x: (x * x).sum(), lambda g, y, x: 2 * g * x, normal(100, 100))
reduce(
    "mean of sines of ten thousand",
    lambda x: torch.sin(x).mean(),
    lambda g, y, x: g * torch.cos(x) / x.numel(),
    normal(10_000),
)
reduce("ten thousand entries each", lambda x: torch.tanh(x), lambda g, y, x: g * (1 - y * y), normal(10_000))
reduce(
    "variance of offset entries",
    lambda x: x.var(),
    lambda g, y, x: 2 * g * (x - x.mean()) / (x.numel() - 1),
    normal(8, offset=1e4),
    tolerance=1e-8,
)
reduce(
    "variance, one pass",
    lambda x: (x * x).mean() - x.mean() ** 2,
    lambda g, y, x: 2 * g * (x - x.mean()) / x.numel(),
    normal(8, offset=100),
    tolerance=1e-8,
)
reduce(
    "standard deviation along an axis",
    lambda x: x.std(0),
    lambda g, y, x: g * (x - x.mean(0)) / (y * (len(x) - 1)),
    normal(5, 3),
)
reduce("norm", lambda x: x.norm(), lambda g, y, x: g * x / y, normal(6))
reduce("norm of tiny entries", lambda x: x.norm(), lambda g, y, x: g * x / y, normal(6, scale=1e-100))
reduce("norm of mixed entries", lambda x: x.norm(), lambda g, y, x: g * x / y, decades(-8, 8))
reduce("three norm", lambda x: (x.abs() ** 3).sum() ** (1 / 3), lambda g, y, x: g * x * x.abs() / y**2, normal(6))
reduce(
    "smoothed norm near zero",
    lambda x: ((x * x).sum() + 1e-12).sqrt(),
    lambda g, y, x: g * x / y,
    normal(6, scale=1e-7),
)
reduce(
    "log of sum of exp",
    lambda x: torch.logsumexp(x, -1),
    lambda g, y, x: g[..., None] * torch.softmax(x, -1),
    normal(3, 5, scale=20),
)
reduce(
    "log of sum of exp of huge entries",
    lambda x: torch.logsumexp(x, -1),
    lambda g, y, x: g[..., None] * torch.softmax(x, -1),
    normal(6, scale=3, offset=1e5),
    tolerance=1e-8,
)
reduce(
    "product",
    lambda x: x.prod(),
    lambda g, y, x: g * torch.stack([torch.cat([x[:i], x[i + 1 :]]).prod() for i in range(len(x))]),
    normal(6),
)
reduce(
    "product with one zero",
    lambda x: x.prod(),
    lambda g, y, x: g * torch.stack([torch.cat([x[:i], x[i + 1 :]]).prod() for i in range(len(x))]),
    some_at(0.0),
)
reduce(
    "geometric mean",
    lambda x: torch.log(x).mean().exp(),
    lambda g, y, x: g * y / (x * x.numel()),
    decades(-6, 6, signed=False),
)
reduce(
    "harmonic mean",
    lambda x: 1 / (1 / x).mean(),
    lambda g, y, x: g * y * y / (x * x * x.numel()),
    decades(-4, 4, signed=False),
)
reduce(
    "cumulative sum",
    lambda x: torch.cumsum(x, 0),
    lambda g, y, x: torch.flip(torch.cumsum(torch.flip(g, (0,)), 0), (0,)),
    normal(8),
)
reduce(
    "cumulative product",
    lambda x: torch.cumprod(x, 0),
    lambda g, y, x: torch.flip(torch.cumsum(torch.flip(g * y, (0,)), 0), (0,)) / x,
    normal(6),
)
reduce(
    "cumulative log of sum of exp",
    lambda x: torch.logcumsumexp(x, 0),
    lambda g, y, x: (torch.triu(torch.exp(torch.clamp(x[:, None] - y[None], max=50))) * g[None]).sum(1),
    normal(6),
    order=1,
)
reduce(
    "prefix maximum away from ties",
    lambda x: torch.cummax(x, 0)[0],
    lambda g, y, x: torch.zeros_like(x).index_add(0, torch.cummax(x, 0)[1], g),
    distinct(8),
)
reduce("trace", torch.trace, lambda g, y, x: g * torch.eye(4, dtype=g.dtype), normal(4, 4))
reduce(
    "broadcast sum",
    lambda a, b: a + b,
    lambda g, y, a, b: (summed_to(g, a.shape), summed_to(g, b.shape)),
    normal(3, 1),
    normal(1, 4),
)
reduce(
    "broadcast product",
    lambda a, b, c: a * b * c,
    lambda g, y, a, b, c: (summed_to(g * b * c, a.shape), summed_to(g * a * c, b.shape), summed_to(g * a * b, c.shape)),
    normal(3, 1),
    normal(4),
    normal(1),
)
reduce(
    "broadcast division",
    lambda a, b: a / b,
    lambda g, y, a, b: (summed_to(g / b, a.shape), summed_to(-g * y / b, b.shape)),
    normal(2, 3),
    decades(-3, 0, 3),
)
reduce("scalar times matrix", lambda s, a: s * a, lambda g, y, s, a: ((g * a).sum(), g * s), normal(), normal(3, 3))
reduce(
    "all pairwise distances",
    lambda x, y: (x[:, None] - y[None]).norm(dim=-1),
    lambda g, d, x, y: (lambda w: (w.sum(1), -w.sum(0)))((g / d)[..., None] * (x[:, None] - y[None])),
    normal(3, 2),
    normal(4, 2),
)
reduce(
    "segment sum",
    lambda x, s: torch.zeros(4, dtype=x.dtype).index_add(0, s, x),
    lambda g, y, x, s: (g[s], None),
    normal(9),
    whole(4, 9),
)
reduce(
    "scatter mean",
    lambda x, s: torch.zeros(3, dtype=x.dtype).index_add(0, s, x) / torch.bincount(s, minlength=3).clamp(min=1),
    lambda g, y, x, s: ((g / torch.bincount(s, minlength=3).clamp(min=1))[s], None),
    normal(9),
    whole(3, 9),
)
reduce(
    "weighted mean",
    lambda x, w: (x * w).sum() / w.sum(),
    lambda g, y, x, w: (g * w / w.sum(), g * (x - y) / w.sum()),
    normal(6),
    within(0.1, 1),
)
reduce(
    "correlation",
    lambda x, y: cosine(x - x.mean(), y - y.mean()),
    lambda g, c, x, y: (lambda p: (p[0] - p[0].mean(), p[1] - p[1].mean()))(
        cosine_vjp(g, c, x - x.mean(), y - y.mean())
    ),
    normal(8),
    normal(8),
)
reduce(
    "effective number",
    lambda x: x.sum() ** 2 / (x * x).sum(),
    lambda g, y, x: g * (2 * x.sum() / (x * x).sum() - 2 * y * x / (x * x).sum()),
    within(0.1, 3),
)
reduce(
    "one entry",
    lambda x: x[2] * x[2],
    lambda g, y, x: 2 * g * F.one_hot(torch.tensor(2), len(x)).to(g.dtype) * x[2],
    normal(6),
)
reduce("a single number", lambda x: torch.sin(x) * x, lambda g, y, x: g * (torch.sin(x) + x * torch.cos(x)), normal())
reduce("one entry of one", lambda x: torch.exp(x).sum(), lambda g, y, x: g * torch.exp(x), normal(1, 1, 1))
reduce(
    "sum by NumPy",
    lambda x: np.asarray(np.sum(np.sin(x) ** 2)),
    lambda g, y, x: g * np.sin(2 * x),
    normal(1000),
    numpy=True,
    reference=lambda x: (torch.sin(x) ** 2).sum(),
)
reduce(
    "gradient of an image by NumPy",
    lambda x: np.gradient(x),
    lambda g, y, x: np.concatenate(
        [[-g[0] - g[1] / 2], [g[0] - g[2] / 2], (g[1:-3] - g[3:-1]) / 2, [g[-3] / 2 - g[-1]], [g[-2] / 2 + g[-1]]]
    ),
    normal(9),
    numpy=True,
    reference=lambda x: torch.gradient(x)[0],
)
reduce(
    "log determinant of nearly collinear columns",
    lambda a: torch.logdet(a.mT @ a),
    lambda g, y, a: 2 * g * a @ torch.linalg.inv(a.mT @ a),
    conditioned(5, 3, 1e3),
    tolerance=1e-6,
)
reduce(
    "masked mean",
    lambda x, m: (x * m).sum() / m.sum(),
    lambda g, y, x, m: (g * m / m.sum(), None),
    normal(4, 3),
    untracked(within(0, 1, 4, 3)),
)
