"""Activations, normalisations and losses that are made of other operations."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gradcli.engine.in_place import in_place
from gradcli.engine.nn.functions.losses import reduced
from gradcli.engine.ops.activation import logsigmoid
from gradcli.engine.ops.comparison import where
from gradcli.engine.tensor import Tensor, from_array


# --- activations
def threshold(input: Tensor, threshold: float, value: float, inplace: bool = False) -> Tensor:
    """Return x where it is above a threshold, else a value."""
    mask = from_array(input._data <= threshold)
    return input.masked_fill_(mask, value) if inplace else input.masked_fill(mask, value)


def hardshrink(input: Tensor, lambd: float = 0.5) -> Tensor:
    """Return x, 0 where it lies within lambd of 0."""
    return input.masked_fill(from_array(np.abs(input._data) <= lambd), 0)


def softshrink(input: Tensor, lambd: float = 0.5) -> Tensor:
    """Return x moved towards 0 by lambd, 0 where it lies within that."""
    return (input - input.sign() * lambd).masked_fill(from_array(np.abs(input._data) <= lambd), 0)


def hardsigmoid(input: Tensor, inplace: bool = False) -> Tensor:
    """Return x / 6 + 1 / 2, kept between 0 and 1."""
    if inplace:
        return in_place(input, hardsigmoid)
    return (input + 3).clamp(0, 6) / 6


def hardswish(input: Tensor, inplace: bool = False) -> Tensor:
    """Return x times its hard sigmoid."""
    if inplace:
        return in_place(input, hardswish)
    return input * hardsigmoid(input)


# --- normalisation
def rms_norm(input: Tensor, normalized_shape: Any, weight: Tensor | None = None, eps: float | None = None) -> Tensor:
    """Return x over the root mean square of its last axes, times a weight (Zhang, Sennrich, arXiv 1910.07467)."""
    dims = tuple(range(-len(tuple(normalized_shape)), 0))
    small = float(np.finfo(input._data.dtype).eps) if eps is None else eps
    result = input * ((input * input).mean(dims, keepdim=True) + small).rsqrt()
    return result if weight is None else result * weight


def instance_norm(input: Tensor, weight: Tensor | None = None, bias: Tensor | None = None, eps: float = 1e-5) -> Tensor:
    """Return every channel of every example with mean 0 and variance 1, times a weight, plus a bias."""
    dims = tuple(range(2, input._data.ndim))
    centred = input - input.mean(dims, keepdim=True)
    result = centred * ((centred * centred).mean(dims, keepdim=True) + eps).rsqrt()
    shape = (1, -1, *(1,) * len(dims))
    if weight is not None:
        result = result * weight.reshape(shape)
    return result if bias is None else result + bias.reshape(shape)


def pairwise_distance(x1: Tensor, x2: Tensor, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> Tensor:
    """Return the p-norm of x1 - x2 + eps along the last axis."""
    return (x1 - x2 + eps).norm(p, -1, keepdim)


# --- losses
def soft_margin_loss(input: Tensor, target: Tensor, *, reduction: str = "mean") -> Tensor:
    """Return log(1 + exp(-target input)), for targets 1 and -1."""
    return reduced((-target * input).exp().log1p(), reduction)


def margin_ranking_loss(
    input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0.0, *, reduction: str = "mean"
) -> Tensor:
    """Return max(0, margin - target (input1 - input2)), for targets 1 and -1."""
    return reduced((-target * (input1 - input2) + margin).clamp(min=0), reduction)


def hinge_embedding_loss(input: Tensor, target: Tensor, margin: float = 1.0, *, reduction: str = "mean") -> Tensor:
    """Return the distance where the target is 1, max(0, margin - distance) where it is -1."""
    return reduced(where(target == 1, input, (margin - input).clamp(min=0)), reduction)


def cosine_embedding_loss(
    input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0.0, *, reduction: str = "mean"
) -> Tensor:
    """Return 1 - cos where the target is 1, max(0, cos - margin) where it is -1."""
    small = 1e-12
    product = (input1 * input2).sum(-1)
    cosine = product / (((input1 * input1).sum(-1) + small) * ((input2 * input2).sum(-1) + small)).sqrt()
    return reduced(where(target == 1, 1 - cosine, (cosine - margin).clamp(min=0)), reduction)


def triplet_margin_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    margin: float = 1.0,
    p: float = 2,
    eps: float = 1e-6,
    swap: bool = False,
    *,
    reduction: str = "mean",
) -> Tensor:
    """Return max(0, margin + the distance to the positive - that to the negative)."""
    near, far = pairwise_distance(anchor, positive, p, eps), pairwise_distance(anchor, negative, p, eps)
    if swap:
        far = far.minimum(pairwise_distance(positive, negative, p, eps))
    return reduced((near - far + margin).clamp(min=0), reduction)


def poisson_nll_loss(
    input: Tensor,
    target: Tensor,
    log_input: bool = True,
    full: bool = False,
    eps: float = 1e-8,
    *,
    reduction: str = "mean",
) -> Tensor:
    """Return minus the log-likelihood of counts under a Poisson distribution; `full` adds Stirling's term."""
    loss = input.exp() - target * input if log_input else input - target * (input + eps).log()
    if full:
        stirling = target * target.log() - target + (target * (2 * math.pi)).log() * 0.5
        loss = loss + stirling.masked_fill(target <= 1, 0)
    return reduced(loss, reduction)


def gaussian_nll_loss(
    input: Tensor, target: Tensor, var: Any, full: bool = False, eps: float = 1e-6, *, reduction: str = "mean"
) -> Tensor:
    """Return minus the log-likelihood under a normal distribution of given variance, which is kept above eps."""
    spread = var if isinstance(var, Tensor) else input.new_tensor(var)
    if spread._data.shape != input._data.shape and spread._data.shape == input._data.shape[:-1]:
        spread = spread.unsqueeze(-1)
    kept = spread + (spread.detach().clamp(min=eps) - spread.detach())
    loss = (kept.log() + (input - target) ** 2 / kept) * 0.5
    return reduced(loss + 0.5 * math.log(2 * math.pi) if full else loss, reduction)


def multi_margin_loss(
    input: Tensor,
    target: Tensor,
    p: int = 1,
    margin: float = 1.0,
    weight: Tensor | None = None,
    *,
    reduction: str = "mean",
) -> Tensor:
    """Return how far the score of the right class is from being larger than the others by a margin."""
    classes = input._data.shape[-1]
    right = input.gather(-1, target.unsqueeze(-1))
    short = (input - right + margin).relu() ** p
    if weight is not None:
        short = short * weight[target].unsqueeze(-1)
    own = from_array(target._data[..., None] == np.arange(classes))
    return reduced(short.masked_fill(own, 0).sum(-1) / classes, reduction)


def multilabel_soft_margin_loss(
    input: Tensor, target: Tensor, weight: Tensor | None = None, *, reduction: str = "mean"
) -> Tensor:
    """Return the mean binary cross-entropy of the classes, each of which may be right or not."""
    scores = -(target * logsigmoid(input) + (1 - target) * logsigmoid(-input))
    if weight is not None:
        scores = scores * weight
    return reduced(scores.mean(-1), reduction)
