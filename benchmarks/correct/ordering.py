"""Everything that orders, picks or counts its entries, at ties and away from them."""

from __future__ import annotations

import functools
import itertools
import math

import numpy as np
import torch
from torch.nn import functional as F  # noqa: N812 - its usual name

from benchmarks.correct.draws import (
    beside,
    distinct,
    flags,
    normal,
    some_at,
    ties,
    value,
    whole,
)
from benchmarks.correct.general import general
from benchmarks.correct.specimen import Collection

ORDER = Collection("ordering")
order = functools.partial(general, ORDER)
TIES = "at a tie any choice among the entries that tie is a subgradient"


def sorted_vjp(g, y, x):
    return torch.zeros_like(x).index_add(0, torch.argsort(x, stable=True), g)


def by_rank(x, r):
    return torch.sort(x, stable=True)[0][r]


def by_rank_vjp(g, y, x, r):
    return g * F.one_hot(torch.argsort(x, stable=True)[r], len(x)).to(g.dtype), None


def quantile(x, q):
    return torch.quantile(x, q)


def quantile_vjp(g, y, x, q):
    place = q * (len(x) - 1)
    low = math.floor(place)
    ranks = torch.argsort(x, stable=True)
    part = place - low
    high = min(low + 1, len(x) - 1)
    return g * ((1 - part) * F.one_hot(ranks[low], len(x)) + part * F.one_hot(ranks[high], len(x))).to(g.dtype), None


def isotonic(x):
    """The nearest non-decreasing sequence, by pooling adjacent violators."""
    blocks: list[list[float]] = []
    for v in np.asarray(x):
        blocks.append([float(v), 1])
        while len(blocks) > 1 and blocks[-2][0] > blocks[-1][0]:
            v2, n2 = blocks.pop()
            v1, n1 = blocks.pop()
            blocks.append([(v1 * n1 + v2 * n2) / (n1 + n2), n1 + n2])
    return np.concatenate([np.full(int(n), v) for v, n in blocks])


def isotonic_vjp(g, y, x):
    found = np.empty_like(g)
    edges = [0, *(np.flatnonzero(np.diff(y) > 1e-14) + 1), len(y)]
    for a, b in itertools.pairwise(edges):
        found[a:b] = g[a:b].mean()
    return found


def simplex(x):
    """The nearest point of the simplex: sparsemax."""
    z = torch.sort(x, descending=True)[0]
    k = torch.arange(1, len(x) + 1, dtype=x.dtype)
    size = int((1 + k * z > torch.cumsum(z, 0)).sum())
    return torch.relu(x - (z[:size].sum() - 1) / size)


def simplex_vjp(g, y, x):
    on = (y > 0).to(g.dtype)
    return on * (g - (g * on).sum() / on.sum())


def nearest_mask(x, c):
    d = (x[:, None] - c[None]).abs()
    return F.one_hot(d.argmin(1), len(c)).to(x.dtype)


order("sort", lambda x: torch.sort(x)[0], sorted_vjp, distinct(8))
order("sort of random entries", lambda x: torch.sort(x)[0], sorted_vjp, normal(20))
order("sort of many", lambda x: torch.sort(x)[0], sorted_vjp, normal(300))
order("sort with ties", lambda x: torch.sort(x, stable=True)[0], sorted_vjp, ties(6), unproved=TIES)
order("sort of nearly equal entries", lambda x: torch.sort(x)[0], sorted_vjp, beside(1, -9, -6))
order(
    "sorted sum of products",
    lambda x: (torch.sort(x)[0] * torch.arange(len(x), dtype=x.dtype)).sum(),
    lambda g, y, x: g * torch.argsort(torch.argsort(x, stable=True), stable=True).to(g.dtype),
    normal(8),
)
order("maximum", lambda x: x.max(), lambda g, y, x: g * F.one_hot(x.argmax(), len(x)).to(g.dtype), normal(6))
order(
    "maximum of equals, first",
    lambda x: x.max(),
    lambda g, y, x: g * F.one_hot(x.argmax(), len(x)).to(g.dtype),
    some_at(3.0, 3.0),
    unproved=TIES,
)
order(
    "maximum of equals, shared",
    lambda x: x.max(),
    lambda g, y, x: g * (lambda m: m / m.sum())((x == y).to(g.dtype)),
    some_at(3.0, 3.0, 3.0),
    unproved=TIES,
)
order(
    "minimum along rows",
    lambda x: x.amin(1),
    lambda g, y, x: (lambda m: m / m.sum(1, keepdim=True) * g[:, None])((x == y[:, None]).to(g.dtype)),
    normal(3, 5),
)
order(
    "median",
    lambda x: x.median(),
    lambda g, y, x: g * F.one_hot(torch.argsort(x)[(len(x) - 1) // 2], len(x)).to(g.dtype),
    normal(7),
)
order("third smallest", by_rank, by_rank_vjp, normal(7), value(2))
order("quantile between entries", quantile, quantile_vjp, normal(8), value(0.3), tolerance=1e-7)
order(
    "midrange",
    lambda x: (x.max() + x.min()) / 2,
    lambda g, y, x: g * (F.one_hot(x.argmax(), len(x)) + F.one_hot(x.argmin(), len(x))).to(g.dtype) / 2,
    normal(6),
)
order(
    "top three",
    lambda x: torch.topk(x, 3)[0],
    lambda g, y, x: torch.zeros_like(x).index_add(0, torch.topk(x, 3)[1], g),
    normal(8),
)
order(
    "sum of the largest half",
    lambda x: torch.topk(x, 4)[0].sum(),
    lambda g, y, x: g * torch.zeros_like(x).index_fill(0, torch.topk(x, 4)[1], 1.0),
    normal(8),
)
order(
    "pairwise maximum",
    torch.maximum,
    lambda g, y, a, b: (g * (a >= b).to(g.dtype), g * (a < b).to(g.dtype)),
    normal(6),
    normal(6),
)
order(
    "pairwise maximum of equals",
    torch.maximum,
    lambda g, y, a, b: (g * (a >= b).to(g.dtype), g * (a < b).to(g.dtype)),
    ties(6),
    ties(6),
    unproved=TIES,
)
order(
    "trimmed mean",
    lambda x: torch.sort(x)[0][2:-2].mean(),
    lambda g, y, x: (lambda r: g * ((r > 1) & (r < len(x) - 2)).to(g.dtype) / (len(x) - 4))(
        torch.argsort(torch.argsort(x))
    ),
    normal(9),
)
order(
    "median absolute deviation",
    lambda x: (x - x.median()).abs().median(),
    lambda g, y, x: (
        lambda c: (lambda k: g * torch.sign(x[k] - x[c]) * (F.one_hot(k, len(x)) - F.one_hot(c, len(x))).to(g.dtype))(
            (x - x[c]).abs().argsort()[(len(x) - 1) // 2]
        )
    )(torch.argsort(x)[(len(x) - 1) // 2]),
    normal(7),
)
order("reverse", lambda x: torch.flip(x, (0,)), lambda g, y, x: torch.flip(g, (0,)), normal(6))
order("roll", lambda x: torch.roll(x, 2), lambda g, y, x: torch.roll(g, -2), normal(7))
order(
    "take with repeats",
    lambda x, i: x[i],
    lambda g, y, x, i: (torch.zeros_like(x).index_add(0, i, g), None),
    normal(6),
    whole(6, 9),
)
order(
    "choose by mask",
    lambda x, m: torch.where(m, x, 2 * x),
    lambda g, y, x, m: (g * torch.where(m, 1.0, 2.0).to(g.dtype), None),
    normal(6),
    flags(6),
)
order(
    "choose by sign",
    lambda x, a, b: torch.where(x > 0, a, b),
    lambda g, y, x, a, b: (torch.zeros_like(x), g * (x > 0).to(g.dtype), g * (x <= 0).to(g.dtype)),
    normal(6),
    normal(6),
    normal(6),
)
order(
    "isotonic regression",
    isotonic,
    isotonic_vjp,
    normal(8),
    numpy=True,
    reference=lambda x: torch.from_numpy(isotonic(x.detach().numpy())) + (lambda p: p - p.detach())(isotonic_mean(x)),
)
order("sparsemax", simplex, simplex_vjp, normal(6))
order("sparsemax of wide logits", simplex, simplex_vjp, normal(6, scale=5))
order(
    "clipping to a norm",
    lambda x: x * (1 / x.norm()).clamp(max=1),
    lambda g, y, x: g if x.norm() <= 1 else (g - y * (g * y).sum()) / x.norm(),
    normal(6),
)
order(
    "clipping inside",
    lambda x: x * (1 / x.norm()).clamp(max=1),
    lambda g, y, x: g if x.norm() <= 1 else (g - y * (g * y).sum()) / x.norm(),
    normal(6, scale=0.1),
)
order(
    "distance to the nearest centre",
    lambda x, c: (x[:, None] - c[None]).abs().amin(1),
    lambda g, y, x, c: (lambda d: (d.sum(1), -d.sum(0)))(
        g[:, None] * nearest_mask(x, c) * torch.sign(x[:, None] - c[None])
    ),
    normal(6),
    normal(3),
)
order(
    "Chebyshev distance",
    lambda x, y: (x - y).abs().max(),
    lambda g, d, x, y: (lambda k: (g * k, -g * k))(
        torch.sign(x - y) * F.one_hot((x - y).abs().argmax(), len(x)).to(g.dtype)
    ),
    normal(6),
    normal(6),
)
order(
    "sort by NumPy",
    np.sort,
    lambda g, y, x: (lambda z: (np.put(z, np.argsort(x, kind="stable"), g), z)[1])(np.zeros_like(g)),
    normal(8),
    numpy=True,
    reference=lambda x: torch.sort(x)[0],
)
order(
    "median by NumPy",
    lambda x: np.asarray(np.median(x)),
    lambda g, y, x: (
        g * (lambda r: np.mean([np.eye(len(x))[r[k // 2]] for k in (len(x) - 1, len(x))], 0))(np.argsort(x))
    ),
    normal(8),
    numpy=True,
    reference=lambda x: torch.sort(x)[0][len(x) // 2 - 1 : len(x) // 2 + 1].mean(),
)
order(
    "maximum with ties by NumPy",
    lambda x: np.asarray(x.max()),
    lambda g, y, x: g * (x == y) / (x == y).sum(),
    some_at(4.0, 4.0),
    numpy=True,
    unproved=TIES,
)


def isotonic_mean(x):
    """The same as a differentiable function of x: each block's mean."""
    y = isotonic(x.detach().numpy())
    edges = [0, *(np.flatnonzero(np.diff(y) > 1e-14) + 1), len(y)]
    return torch.cat([x[a:b].mean().expand(b - a) for a, b in itertools.pairwise(edges)])
