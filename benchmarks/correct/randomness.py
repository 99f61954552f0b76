"""Functions that draw random numbers inside, by a seed or from the global generators."""

from __future__ import annotations

import math

import numpy as np
import torch
from torch.autograd import Function

from benchmarks.correct.draws import normal, value, whole, within
from benchmarks.correct.specimen import Collection

RANDOM = Collection("random")


@RANDOM(normal(8), unproved="the mask is drawn inside", witnessed=True)
class Dropout(Function):
    @staticmethod
    def forward(ctx, x):
        mask = (torch.rand(x.shape) < 0.7).to(x.dtype) / 0.7
        ctx.save_for_backward(mask)
        return x * mask

    @staticmethod
    def backward(ctx, g):
        (mask,) = ctx.saved_tensors
        return g * mask


@RANDOM(
    normal(8),
    value(7),
    reference=lambda x, s: (
        x * torch.bernoulli(torch.full(x.shape, 0.5), generator=torch.Generator().manual_seed(s)) * torch.sin(x)
    ),
)
class DropoutBySeed(Function):
    @staticmethod
    def forward(ctx, x, seed):
        mask = torch.bernoulli(torch.full(x.shape, 0.5), generator=torch.Generator().manual_seed(seed)).to(x.dtype)
        ctx.save_for_backward(x, mask)
        return x * mask * torch.sin(x)

    @staticmethod
    def backward(ctx, g):
        x, mask = ctx.saved_tensors
        return g * mask * (torch.sin(x) + x * torch.cos(x)), None


@RANDOM(normal(4), within(0.1, 2, 4), unproved="the noise is drawn inside")
class Reparameterised(Function):
    @staticmethod
    def forward(ctx, m, s):
        noise = torch.randn(m.shape, dtype=m.dtype)
        ctx.save_for_backward(noise)
        return m + s * noise

    @staticmethod
    def backward(ctx, g):
        (noise,) = ctx.saved_tensors
        return g, g * noise


@RANDOM(normal(6), unproved="the noise is drawn inside", witnessed=False)
class NoiseOfNumpy(Function):
    @staticmethod
    def forward(ctx, x):
        noise = torch.from_numpy(np.random.standard_normal(x.shape))
        ctx.save_for_backward(x, noise)
        return torch.from_numpy(np.sin(x.detach().numpy())) * noise

    @staticmethod
    def backward(ctx, g):
        x, noise = ctx.saved_tensors
        return g * torch.cos(x) * noise


@RANDOM(normal(5), unproved="the noise is drawn inside")
class GumbelSoftmax(Function):
    @staticmethod
    def forward(ctx, x):
        noise = -torch.log(-torch.log(torch.rand(x.shape, dtype=x.dtype)))
        y = torch.softmax((x + noise) / 0.5, 0)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, g):
        (y,) = ctx.saved_tensors
        return y * (g - (g * y).sum()) / 0.5


@RANDOM(normal(3, 6), normal(6, 4), unproved="the projection is drawn inside")
class RandomProjection(Function):
    @staticmethod
    def forward(ctx, x, w):
        signs = torch.randint(0, 2, (6,)).to(x.dtype) * 2 - 1
        ctx.save_for_backward(x, w, signs)
        return (x * signs) @ w / math.sqrt(6)

    @staticmethod
    def backward(ctx, g):
        x, w, signs = ctx.saved_tensors
        return g @ w.mT * signs / math.sqrt(6), (x * signs).mT @ g / math.sqrt(6)


@RANDOM(
    normal(6),
    value(3),
    reference=lambda x, s: torch.exp(-x[torch.randperm(len(x), generator=torch.Generator().manual_seed(s))]),
)
class ShuffledBySeed(Function):
    @staticmethod
    def forward(ctx, x, seed):
        order = torch.randperm(len(x), generator=torch.Generator().manual_seed(seed))
        y = torch.exp(-x[order])
        ctx.save_for_backward(y, order)
        return y

    @staticmethod
    def backward(ctx, g):
        y, order = ctx.saved_tensors
        return torch.zeros_like(g).index_add(0, order, -g * y), None


@RANDOM(normal(4), unproved="samples drawn inside")
class MonteCarloMean(Function):
    """The mean of a hundred samples of a function of x and noise."""

    @staticmethod
    def forward(ctx, x):
        noise = torch.randn(100, *x.shape, dtype=x.dtype)
        ctx.save_for_backward(x, noise)
        return torch.sigmoid(x + 0.3 * noise).mean(0)

    @staticmethod
    def backward(ctx, g):
        x, noise = ctx.saved_tensors
        s = torch.sigmoid(x + 0.3 * noise)
        return g * (s * (1 - s)).mean(0)


@RANDOM(normal(6), whole(2, 6), reference=lambda x, c: torch.where(c.bool(), torch.exp(x), x**2))
class ChosenBranches(Function):
    @staticmethod
    def forward(ctx, x, choice):
        ctx.save_for_backward(x, choice)
        return torch.where(choice.bool(), torch.exp(x), x**2)

    @staticmethod
    def backward(ctx, g):
        x, choice = ctx.saved_tensors
        return g * torch.where(choice.bool(), torch.exp(x), 2 * x), None
