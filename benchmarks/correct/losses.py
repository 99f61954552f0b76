"""Losses with masks, targets and margins."""

from __future__ import annotations

import functools
import math

import numpy as np
import torch
from torch.nn import functional as F  # noqa: N812 - its usual name

from benchmarks.correct.draws import (
    decades,
    flags,
    normal,
    ties,
    untracked,
    value,
    whole,
    within,
)
from benchmarks.correct.general import general
from benchmarks.correct.specimen import Collection

LOSSES = Collection("losses")
loss = functools.partial(general, LOSSES)


def picked(x, places):
    return (
        torch.zeros_like(x)
        .reshape(-1)
        .index_put((places.reshape(-1),), torch.ones((), dtype=x.dtype), accumulate=True)
        .reshape(x.shape)
    )


def triplet(a, p, n):
    return torch.relu((a - p).norm(dim=-1) - (a - n).norm(dim=-1) + 1).mean()


def triplet_vjp(g, y, a, p, n):
    dp, dn = (a - p).norm(dim=-1, keepdim=True), (a - n).norm(dim=-1, keepdim=True)
    on = ((dp - dn + 1) > 0).to(g.dtype) * g / len(a)
    up, un = on * (a - p) / dp, on * (a - n) / dn
    return up - un, -up, un


def focal(x, t):
    p = torch.sigmoid(x)
    return torch.where(t, -((1 - p) ** 2) * F.logsigmoid(x), -(p**2) * F.logsigmoid(-x)).sum()


def focal_vjp(g, y, x, t):
    p = torch.sigmoid(x)
    q = torch.sigmoid(-x)
    yes = 2 * q * q * p * F.logsigmoid(x) - q**3
    no = -2 * p * p * q * F.logsigmoid(-x) + p**3
    return g * torch.where(t, yes, no), None


def dice(x, t):
    return 1 - 2 * (x * t).sum() / (x.sum() + t.sum())


def dice_vjp(g, y, x, t):
    s = x.sum() + t.sum()
    return g * (-2 * t / s + 2 * (x * t).sum() / s**2), g * (-2 * x / s + 2 * (x * t).sum() / s**2)


def contrastive(x):
    n = len(x)
    scores = (x @ x.mT).masked_fill(torch.eye(n).bool(), -math.inf)
    return F.cross_entropy(scores, torch.arange(n).roll(1))


def contrastive_vjp(g, y, x):
    n = len(x)
    p = torch.softmax((x @ x.mT).masked_fill(torch.eye(n).bool(), -math.inf), -1)
    d = g * (p - F.one_hot(torch.arange(n).roll(1), n).to(x.dtype)) / n
    return (d + d.mT) @ x


def cross_entropy_vjp(g, y, x, t):
    keep = (t != -100).to(g.dtype)[:, None]
    return g * keep * (torch.softmax(x, -1) - F.one_hot(t.clamp(min=0), x.shape[1]).to(g.dtype)) / keep.sum(), None


def soft_dtw(x, y):
    n, m = len(x), len(y)
    cost = (x[:, None] - y[None]) ** 2
    rows = [[torch.full((), math.inf, dtype=x.dtype)] * (m + 1) for _ in range(n + 1)]
    rows[0][0] = torch.zeros((), dtype=x.dtype)
    for i in range(n):
        for j in range(m):
            near = torch.stack([rows[i][j], rows[i][j + 1], rows[i + 1][j]])
            rows[i + 1][j + 1] = cost[i, j] - torch.logsumexp(-near, 0)
    return rows[n][m]


def soft_dtw_vjp(g, z, x, y):
    n, m = len(x), len(y)
    cost = ((x[:, None] - y[None]) ** 2).numpy()
    r = np.full((n + 2, m + 2), math.inf)
    r[0, 0] = 0
    for i in range(1, n + 1):
        for j in range(1, m + 1):
            r[i, j] = cost[i - 1, j - 1] - np.logaddexp.reduce([-r[i - 1, j - 1], -r[i - 1, j], -r[i, j - 1]])
    e = np.zeros((n + 2, m + 2))
    e[n, m] = 1
    for i in range(n, 0, -1):
        for j in range(m, 0, -1):
            for a, b in ((i + 1, j), (i, j + 1), (i + 1, j + 1)):
                if a <= n and b <= m:
                    e[i, j] += e[a, b] * np.exp(r[a, b] - cost[a - 1, b - 1] - r[i, j])
    d = g * 2 * torch.from_numpy(e[1:-1, 1:-1]) * (x[:, None] - y[None])
    return d.sum(1), -d.sum(0)


loss(
    "squared error",
    lambda x, t: ((x - t) ** 2).mean(),
    lambda g, y, x, t: (2 * g * (x - t) / x.numel(), -2 * g * (x - t) / x.numel()),
    normal(4, 2),
    normal(4, 2),
)
loss(
    "absolute error",
    lambda x, t: (x - t).abs().mean(),
    lambda g, y, x, t: (g * torch.sign(x - t) / x.numel(), -g * torch.sign(x - t) / x.numel()),
    normal(8),
    normal(8),
)
loss(
    "absolute error with hits",
    lambda x, t: (x - t).abs().sum(),
    lambda g, y, x, t: (g * torch.sign(x - t), None),
    ties(8),
    lambda rng: torch.tensor(rng.integers(-1, 2, 8).astype(float)),
    unproved="kinks",
)
loss("cross entropy", lambda x, t: F.cross_entropy(x, t), cross_entropy_vjp, normal(4, 5, scale=3), whole(5, 4))
loss(
    "cross entropy of sure logits",
    lambda x, t: F.cross_entropy(x, t),
    cross_entropy_vjp,
    normal(4, 5, scale=60),
    whole(5, 4),
)
loss(
    "cross entropy, some ignored",
    lambda x, t: F.cross_entropy(x, t),
    cross_entropy_vjp,
    normal(4, 3),
    value(torch.tensor([1, -100, 0, -100])),
)
loss(
    "binary cross entropy of logits",
    lambda x, t: F.binary_cross_entropy_with_logits(x, t),
    lambda g, y, x, t: (g * (torch.sigmoid(x) - t) / x.numel(), None),
    normal(8, scale=5),
    untracked(within(0, 1, 8)),
)
loss(
    "binary cross entropy near certainty",
    lambda p, t: -(t * torch.log(p) + (1 - t) * torch.log1p(-p)).sum(),
    lambda g, y, p, t: (g * (p - t) / (p * (1 - p)), None),
    decades(-9, -3, signed=False),
    untracked(within(0.1, 0.9, 6)),
    tolerance=1e-8,
)
loss(
    "Kullback-Leibler",
    lambda p, q: (p * (torch.log(p) - torch.log(q))).sum(),
    lambda g, y, p, q: (g * (torch.log(p / q) + 1), -g * p / q),
    within(0.05, 1),
    within(0.05, 1),
)
loss(
    "Poisson",
    lambda x, t: (torch.exp(x) - t * x).sum(),
    lambda g, y, x, t: (g * (torch.exp(x) - t), None),
    normal(6, scale=3),
    whole(9, 6),
)
loss(
    "Gaussian with learned variance",
    lambda m, v, t: 0.5 * (torch.log(v) + (t - m) ** 2 / v).sum(),
    lambda g, y, m, v, t: (g * (m - t) / v, 0.5 * g * (1 / v - (t - m) ** 2 / v**2), None),
    normal(5),
    decades(-4, 2, 5, signed=False),
    untracked(normal(5)),
)
loss(
    "Huber of pairs",
    lambda x, t: F.huber_loss(x, t, reduction="sum"),
    lambda g, y, x, t: (g * (x - t).clamp(-1, 1), g * (t - x).clamp(-1, 1)),
    normal(8),
    normal(8),
)
loss(
    "hinge of many classes",
    lambda x, t: F.multi_margin_loss(x, t),
    lambda g, y, x, t: (lambda on: (g * (on - F.one_hot(t, x.shape[1]) * on.sum(1, keepdim=True)) / x.numel(), None))(
        ((1 - x.gather(1, t[:, None]) + x) > 0).to(g.dtype) * (1 - F.one_hot(t, x.shape[1]))
    ),
    normal(3, 5),
    whole(5, 3),
    order=1,
)
loss("triplet", triplet, triplet_vjp, normal(4, 3), normal(4, 3), normal(4, 3))
loss("focal", focal, focal_vjp, normal(6, scale=3), flags(6))
loss("dice", dice, dice_vjp, within(0.1, 1), within(0.1, 1))
loss("contrastive", contrastive, contrastive_vjp, normal(5, 3))
loss(
    "masked squared error",
    lambda x, t, m: ((x - t) ** 2 * m).sum() / m.sum(),
    lambda g, y, x, t, m: (2 * g * (x - t) * m / m.sum(), None, None),
    normal(4, 3),
    untracked(normal(4, 3)),
    flags(4, 3),
)
loss("smoothed time warping", soft_dtw, soft_dtw_vjp, normal(5), normal(4), once=True)
loss(
    "log-cosh",
    lambda x, t: torch.logaddexp(x - t, t - x).sum(),
    lambda g, y, x, t: (g * torch.tanh(x - t), -g * torch.tanh(x - t)),
    normal(6, scale=20),
    normal(6),
)
loss("Cauchy", lambda x: torch.log1p(x * x).sum(), lambda g, y, x: 2 * g * x / (1 + x * x), decades(-3, 6))
loss(
    "Tukey's biweight",
    lambda x: torch.where(x.abs() < 2, 1 - (1 - (x / 2) ** 2) ** 3, 1.0).sum(),
    lambda g, y, x: g * torch.where(x.abs() < 2, 1.5 * x * (1 - (x / 2) ** 2) ** 2, 0.0),
    normal(8, scale=2),
)
loss(
    "total variation",
    lambda x: (x[1:] - x[:-1]).abs().sum(),
    lambda g, y, x: (lambda s: g * (F.pad(s, (1, 0)) - F.pad(s, (0, 1))))(torch.sign(x[1:] - x[:-1])),
    normal(9),
)
loss(
    "total variation of steps",
    lambda x: (x[1:] - x[:-1]).abs().sum(),
    lambda g, y, x: (lambda s: g * (F.pad(s, (1, 0)) - F.pad(s, (0, 1))))(torch.sign(x[1:] - x[:-1])),
    ties(9),
    unproved="kinks",
)
loss("group lasso", lambda x: x.norm(dim=1).sum(), lambda g, y, x: g * x / x.norm(dim=1, keepdim=True), normal(4, 3))
loss(
    "group lasso with an empty group",
    lambda x: x.norm(dim=1).sum(),
    lambda g, y, x: g * torch.nan_to_num(x / x.norm(dim=1, keepdim=True)),
    lambda rng: torch.tensor(rng.standard_normal((3, 2)) * np.array([[1], [0], [1]])).requires_grad_(),
    unproved="a kink at zero",
    order=1,
)
loss(
    "entropy of softmax",
    lambda x: -(torch.softmax(x, 0) * torch.log_softmax(x, 0)).sum(),
    lambda g, y, x: -g * torch.softmax(x, 0) * (torch.log_softmax(x, 0) + y),
    normal(6, scale=3),
)
loss(
    "cross entropy by NumPy",
    lambda x: np.asarray(np.logaddexp.reduce(x) - x[0]),
    lambda g, y, x: g * (np.exp(x - np.logaddexp.reduce(x)) - np.eye(len(x))[0]),
    normal(6, scale=8),
    numpy=True,
    reference=lambda x: torch.logsumexp(x, 0) - x[0],
)
