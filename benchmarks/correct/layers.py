"""Layers: normalisations, convolutions, attention, pooling and scans, with backwards by hand."""

from __future__ import annotations

import functools
import math

import numpy as np
import torch
from torch.nn import functional as F  # noqa: N812 - its usual name

from benchmarks.correct.draws import distinct, normal, value, whole, within
from benchmarks.correct.general import general
from benchmarks.correct.specimen import Collection

LAYERS = Collection("layers")
add = functools.partial(general, LAYERS)


def summed_to(g, shape):
    """The sum over the axes along which `shape` was broadcast."""
    g = g.sum(tuple(range(g.dim() - len(shape)))) if g.dim() > len(shape) else g
    axes = tuple(i for i, size in enumerate(shape) if size == 1 and g.shape[i] != 1)
    return g.sum(axes, keepdim=True) if axes else g


def layer_norm(x, w, b, eps):
    return F.layer_norm(x, x.shape[-1:], w, b, eps)


def layer_norm_vjp(g, y, x, w, b, eps):
    mean = x.mean(-1, keepdim=True)
    rstd = torch.rsqrt(x.var(-1, unbiased=False, keepdim=True) + eps)
    h = (x - mean) * rstd
    d = g * w
    gx = rstd * (d - d.mean(-1, keepdim=True) - h * (d * h).mean(-1, keepdim=True))
    return gx, summed_to(g * h, w.shape), summed_to(g, b.shape), None


def rms_norm(x, w):
    return w * x * torch.rsqrt((x * x).mean(-1, keepdim=True) + 1e-6)


def rms_norm_vjp(g, y, x, w):
    r = torch.rsqrt((x * x).mean(-1, keepdim=True) + 1e-6)
    d = g * w
    return r * d - x * r**3 * (d * x).mean(-1, keepdim=True), summed_to(g * x * r, w.shape)


def batch_norm(x):
    return F.batch_norm(x, None, None, training=True, eps=1e-5)


def batch_norm_vjp(g, y, x):
    h = x - x.mean(0)
    rstd = torch.rsqrt(x.var(0, unbiased=False) + 1e-5)
    h = h * rstd
    return rstd * (g - g.mean(0) - h * (g * h).mean(0))


def group_norm(x):
    return F.group_norm(x, 2, eps=1e-5)


def group_norm_vjp(g, y, x):
    grouped = len(x), 2, x.shape[1:].numel() // 2
    flat, d = x.reshape(grouped), g.reshape(grouped)
    rstd = torch.rsqrt(flat.var(-1, unbiased=False, keepdim=True) + 1e-5)
    h = (flat - flat.mean(-1, keepdim=True)) * rstd
    return (rstd * (d - d.mean(-1, keepdim=True) - h * (d * h).mean(-1, keepdim=True))).reshape(x.shape)


def normalise(x):
    return x / torch.linalg.vector_norm(x, dim=-1, keepdim=True)


def normalise_vjp(g, y, x):
    return (g - y * (g * y).sum(-1, keepdim=True)) / torch.linalg.vector_norm(x, dim=-1, keepdim=True)


def cosine(x, y):
    return (normalise(x) * normalise(y)).sum(-1)


def cosine_vjp(g, c, x, y):
    return normalise_vjp(g[..., None] * normalise(y), normalise(x), x), normalise_vjp(
        g[..., None] * normalise(x), normalise(y), y
    )


def softmax(x):
    return torch.softmax(x, -1)


def softmax_vjp(g, y, x):
    return y * (g - (g * y).sum(-1, keepdim=True))


def attention(q, k, v):
    return softmax(q @ k.mT / math.sqrt(q.shape[-1])) @ v


def attention_vjp(g, y, q, k, v):
    scale = 1 / math.sqrt(q.shape[-1])
    p = softmax(q @ k.mT * scale)
    d = softmax_vjp(g @ v.mT, p, None) * scale
    return d @ k, d.mT @ q, p.mT @ g


def causal(q, k, v):
    scores = (q @ k.mT).masked_fill(torch.ones(len(q), len(k)).triu(1).bool(), -math.inf)
    return softmax(scores) @ v


def causal_vjp(g, y, q, k, v):
    p = softmax((q @ k.mT).masked_fill(torch.ones(len(q), len(k)).triu(1).bool(), -math.inf))
    d = softmax_vjp(g @ v.mT, p, None)
    return d @ k, d.mT @ q, p.mT @ g


def conv1d(x, w, stride):
    return F.conv1d(x, w, stride=stride, padding=1)


def conv1d_vjp(g, y, x, w, stride):
    return (
        torch.nn.grad.conv1d_input(x.shape, w, g, stride=stride, padding=1),
        torch.nn.grad.conv1d_weight(x, w.shape, g, stride=stride, padding=1),
        None,
    )


def conv2d_vjp(g, y, x, w):
    return F.conv_transpose2d(g, w), F.conv2d(x.transpose(0, 1), g.transpose(0, 1)).transpose(0, 1)


def depthwise(x, w):
    return F.conv1d(x, w, groups=x.shape[1], dilation=2)


def depthwise_vjp(g, y, x, w):
    size = g.shape[-1]
    gw = torch.stack([(g * x[..., 2 * k : 2 * k + size]).sum((0, 2)) for k in range(w.shape[-1])], -1)[:, None]
    return F.conv_transpose1d(g, w, groups=x.shape[1], dilation=2), gw


def lstm_cell(x, h, c, w):
    i, f, o, n = (torch.cat([x, h], -1) @ w).chunk(4, -1)
    return torch.sigmoid(o) * torch.tanh(torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(n))


def lstm_cell_vjp(g, y, x, h, c, w):
    both = torch.cat([x, h], -1)
    i, f, o, n = (both @ w).chunk(4, -1)
    i, f, o, n = torch.sigmoid(i), torch.sigmoid(f), torch.sigmoid(o), torch.tanh(n)
    t = torch.tanh(f * c + i * n)
    d = g * o * (1 - t * t)
    pre = torch.cat([d * n * i * (1 - i), d * c * f * (1 - f), g * t * o * (1 - o), d * i * (1 - n * n)], -1)
    back = pre @ w.mT
    return back[..., : x.shape[-1]], back[..., x.shape[-1] :], d * f, both.mT @ pre


def linear_scan(a, x):
    h, rows = torch.zeros_like(x[0]), []
    for k in range(len(x)):
        h = a[k] * h + x[k]
        rows.append(h)
    return torch.stack(rows)


def linear_scan_vjp(g, y, a, x):
    d, ga, gx = torch.zeros_like(g[0]), [], []
    for k in range(len(x) - 1, -1, -1):
        d = g[k] + (a[k + 1] * d if k + 1 < len(x) else 0 * d)
        gx.append(d)
        ga.append(d * (y[k - 1] if k else torch.zeros_like(y[0])))
    return torch.stack(ga[::-1]), torch.stack(gx[::-1])


def rotary(x, angle):
    a, b = x.chunk(2, -1)
    return torch.cat([a * torch.cos(angle) - b * torch.sin(angle), a * torch.sin(angle) + b * torch.cos(angle)], -1)


def rotary_vjp(g, y, x, angle):
    a, b = x.chunk(2, -1)
    p, q = g.chunk(2, -1)
    c, s = torch.cos(angle), torch.sin(angle)
    return torch.cat([p * c + q * s, q * c - p * s], -1), summed_to(
        p * (-a * s - b * c) + q * (a * c - b * s), angle.shape
    )


def bilinear_sample(image, u):
    low = torch.floor(u.detach()).long().clamp(0, len(image) - 2)
    part = u - low
    return image[low] * (1 - part) + image[low + 1] * part


def bilinear_sample_vjp(g, y, image, u):
    low = torch.floor(u.detach()).long().clamp(0, len(image) - 2)
    part = u - low
    spread = torch.zeros_like(image).index_add(0, low, g * (1 - part)).index_add(0, low + 1, g * part)
    return spread, g * (image[low + 1] - image[low])


def squash(x):
    n2 = (x * x).sum(-1, keepdim=True)
    return n2 / (1 + n2) * x * torch.rsqrt(n2)


def squash_vjp(g, y, x):
    n2 = (x * x).sum(-1, keepdim=True)
    n = n2.sqrt()
    factor = n / (1 + n2)
    slope = (1 - n2) / (1 + n2) ** 2 / n
    return factor * g + slope * x * (g * x).sum(-1, keepdim=True)


def by_kernel_vjp(g, y, x, s):
    d = (x[:, None] - x[None]) / s
    return (-2 * ((g + g.mT) * y * d / s).sum(1), (g * y * 2 * d * d / s).sum().reshape(1))


add("layer norm", layer_norm, layer_norm_vjp, normal(3, 6), normal(6), normal(6), value(1e-5))
add("layer norm of tiny rows", layer_norm, layer_norm_vjp, normal(3, 6, scale=1e-6), normal(6), normal(6), value(1e-5))
add(
    "layer norm of offset rows",
    layer_norm,
    layer_norm_vjp,
    normal(3, 6, offset=1e4),
    normal(6),
    normal(6),
    value(1e-5),
    tolerance=1e-8,
)
add("root mean square norm", rms_norm, rms_norm_vjp, normal(3, 5), normal(5))
add("batch norm", batch_norm, batch_norm_vjp, normal(5, 3))
add("group norm", group_norm, group_norm_vjp, normal(2, 4, 3))
add("normalise", normalise, normalise_vjp, normal(3, 4))
add("normalise tiny rows", normalise, normalise_vjp, normal(3, 4, scale=1e-9))
add("cosine similarity", cosine, cosine_vjp, normal(3, 4), normal(3, 4))
add("softmax", softmax, softmax_vjp, normal(2, 5))
add("saturated softmax", softmax, softmax_vjp, normal(6, scale=100))
add("half saturated softmax", softmax, softmax_vjp, normal(6, scale=12))
add("softmax of offset logits", softmax, softmax_vjp, normal(6, offset=1e4))
add(
    "log softmax",
    lambda x: torch.log_softmax(x, -1),
    lambda g, y, x: g - torch.exp(y) * g.sum(-1, keepdim=True),
    normal(2, 5, scale=10),
)
add(
    "softmin of a temperature",
    lambda x, t: torch.softmax(-x / t, -1),
    lambda g, y, x, t: (lambda d: (-d / t, (d * x).sum() / t**2))(softmax_vjp(g, y, x)),
    normal(5),
    within(0.05, 0.5, 1),
)
add("attention", attention, attention_vjp, normal(4, 3), normal(5, 3), normal(5, 2))
add("sharp attention", attention, attention_vjp, normal(4, 3, scale=6), normal(5, 3, scale=6), normal(5, 2))
add("causal attention", causal, causal_vjp, normal(4, 3), normal(4, 3), normal(4, 2))
add("convolution", conv1d, conv1d_vjp, normal(2, 2, 7), normal(3, 2, 3), value(1))
add("strided convolution", conv1d, conv1d_vjp, normal(1, 2, 9), normal(2, 2, 3), value(2))
add("convolution in two dimensions", F.conv2d, conv2d_vjp, normal(2, 2, 5, 4), normal(3, 2, 2, 3))
add("dilated depthwise convolution", depthwise, depthwise_vjp, normal(2, 3, 9), normal(3, 1, 3))
add("LSTM cell", lstm_cell, lstm_cell_vjp, normal(2, 2), normal(2, 3), normal(2, 3), normal(5, 12))
add("linear recurrence", linear_scan, linear_scan_vjp, within(0.2, 1.1, 6, 2), normal(6, 2))
add("rotary embedding", rotary, rotary_vjp, normal(3, 4), normal(2))
add("sampling between pixels", bilinear_sample, bilinear_sample_vjp, normal(8), within(0.1, 6.9))
add("squashing of capsules", squash, squash_vjp, normal(3, 4))
add(
    "Gaussian kernel",
    lambda x, s: torch.exp(-(((x[:, None] - x[None]) / s) ** 2)),
    by_kernel_vjp,
    normal(5),
    within(0.5, 2, 1),
    reference=lambda x, s: torch.exp(-(((x[:, None] - x[None]) / s) ** 2)),
)
add(
    "average pooling",
    lambda x: F.avg_pool1d(x, 3, 2),
    lambda g, y, x: F.conv_transpose1d(
        g.reshape(-1, 1, g.shape[-1]), torch.full((1, 1, 3), 1 / 3, dtype=g.dtype), stride=2
    ).reshape(x.shape),
    normal(2, 2, 7),
)
add(
    "max pooling",
    lambda x: F.max_pool1d(x[None], 2)[0],
    lambda g, y, x: (x.reshape(len(x), -1, 2) == y[..., None]).to(g.dtype).mul(g[..., None]).reshape(x.shape),
    distinct(2, 8),
)
add("pixel shuffle", lambda x: F.pixel_shuffle(x, 2), lambda g, y, x: F.pixel_unshuffle(g, 2), normal(1, 4, 2, 3))
add(
    "embedding",
    lambda w, i: w[i],
    lambda g, y, w, i: (torch.zeros_like(w).index_add(0, i, g), None),
    normal(5, 3),
    whole(5, 7),
)
add(
    "gated linear unit",
    F.glu,
    lambda g, y, x: (lambda a, s: torch.cat([g * s, g * a * s * (1 - s)], -1))(
        x.chunk(2, -1)[0], torch.sigmoid(x.chunk(2, -1)[1])
    ),
    normal(2, 6),
)
add(
    "swiglu",
    lambda a, b: a * torch.sigmoid(a) * b,
    lambda g, y, a, b: (g * b * torch.sigmoid(a) * (1 + a * (1 - torch.sigmoid(a))), g * a * torch.sigmoid(a)),
    normal(4, scale=3),
    normal(4),
)
add(
    "low-rank adaptation",
    lambda x, a, b: x + x @ a @ b * 0.25,
    lambda g, y, x, a, b: (g + 0.25 * g @ b.mT @ a.mT, 0.25 * x.mT @ g @ b.mT, 0.25 * (x @ a).mT @ g),
    normal(3, 4),
    normal(4, 2),
    normal(2, 4),
)
add(
    "spectral normalisation",
    lambda a: a / torch.linalg.svdvals(a)[0],
    lambda g, y, a: (lambda u, s, v: (g - (g * y).sum() * torch.outer(u[:, 0], v[0])) / s[0])(
        *torch.linalg.svd(a, full_matrices=False)
    ),
    normal(4, 3),
    tolerance=1e-8,
)
add(
    "weight normalisation",
    lambda v, s: s[:, None] * normalise(v),
    lambda g, y, v, s: (normalise_vjp(g * s[:, None], normalise(v), v), (g * normalise(v)).sum(-1)),
    normal(3, 4),
    normal(3),
)
add(
    "convolution of NumPy",
    lambda x, w: np.convolve(x, w, "valid"),
    lambda g, y, x, w: (np.convolve(g, w[::-1], "full"), np.correlate(x, g, "valid")[::-1].copy()),
    normal(9),
    normal(4),
    numpy=True,
    reference=lambda x, w: F.conv1d(x[None, None], w.flip(0)[None, None])[0, 0],
)
