"""The functions behind the layers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from gradcli.engine.creation import ones, random_source
from gradcli.engine.nn.further_functions import (
    cosine_embedding_loss,
    gaussian_nll_loss,
    hardshrink,
    hardsigmoid,
    hardswish,
    hinge_embedding_loss,
    instance_norm,
    margin_ranking_loss,
    pairwise_distance,
    poisson_nll_loss,
    rms_norm,
    soft_margin_loss,
    softshrink,
    threshold,
    triplet_margin_loss,
)
from gradcli.engine.nn.loss_functions import (
    binary_cross_entropy,
    binary_cross_entropy_with_logits,
    cross_entropy,
    huber_loss,
    kl_div,
    l1_loss,
    mse_loss,
    nll_loss,
    smooth_l1_loss,
)
from gradcli.engine.ops.activation import (
    celu,
    elu,
    gelu,
    glu,
    hardtanh,
    leaky_relu,
    log_softmax,
    logsigmoid,
    mish,
    prelu,
    relu,
    relu6,
    selu,
    silu,
    softmax,
    softmin,
    softplus,
    softsign,
    tanhshrink,
)  # fmt: skip
from gradcli.engine.ops.convolution import (
    Sizes,
    avg_pool,
    conv_transpose,
    convolution,
    max_pool,
    pad_zeros,
    pixel_shuffle,
    pixel_unshuffle,
    windows_of,
)  # fmt: skip
from gradcli.engine.ops.linalg import addmm
from gradcli.engine.tensor import Tensor, from_array

__all__ = [
    "adaptive_avg_pool2d", "avg_pool1d", "avg_pool2d", "batch_norm", "bilinear", "binary_cross_entropy",
    "binary_cross_entropy_with_logits", "celu", "conv1d", "conv2d", "conv_transpose1d", "conv_transpose2d",
    "cosine_embedding_loss", "cosine_similarity", "cross_entropy", "dropout", "elu", "embedding", "gaussian_nll_loss",
    "gelu", "glu", "group_norm", "hardshrink", "hardsigmoid", "hardswish", "hardtanh", "hinge_embedding_loss",
    "huber_loss", "instance_norm", "kl_div", "l1_loss", "layer_norm", "leaky_relu", "linear", "log_softmax",
    "logsigmoid", "margin_ranking_loss", "max_pool1d", "max_pool2d", "mish", "mse_loss", "nll_loss", "normalize",
    "one_hot", "pad", "pairwise_distance", "pixel_shuffle", "pixel_unshuffle", "poisson_nll_loss", "prelu", "relu",
    "relu6", "rms_norm", "scaled_dot_product_attention", "selu", "sigmoid", "silu", "smooth_l1_loss",
    "soft_margin_loss", "softmax", "softmin", "softplus", "softshrink", "softsign", "tanh", "tanhshrink", "threshold",
    "triplet_margin_loss", "unfold",
]  # fmt: skip


def linear(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """Return input @ weight^T + bias, over the last axis."""
    if bias is None:
        return input.matmul(weight.t())
    if input._data.ndim == 2:
        return addmm(bias, input, weight.t())
    if input._data.ndim == 1:
        row = addmm(bias, input.view(1, input._data.shape[0]), weight.t())
        return row.view(weight._data.shape[0])
    return input.matmul(weight.t()) + bias


def bilinear(input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """Return x1^T W_k x2 + b_k for every k."""
    left = (input1.unsqueeze(-2).unsqueeze(-2).matmul(weight)).squeeze(-2)
    result = (left * input2.unsqueeze(-2)).sum(-1)
    return result if bias is None else result + bias


def sigmoid(input: Tensor) -> Tensor:
    """Return 1 / (1 + exp(-x))."""
    return input.sigmoid()


def tanh(input: Tensor) -> Tensor:
    """Return the hyperbolic tangent."""
    return input.tanh()


# --- losses


# --- distances and embeddings
def normalize(input: Tensor, p: float = 2.0, dim: int = 1, eps: float = 1e-12) -> Tensor:
    """Return the tensor over its norm along an axis."""
    return input / input.norm(p, dim, keepdim=True).clamp_min(eps).expand_as(input)


def cosine_similarity(x1: Tensor, x2: Tensor, dim: int = 1, eps: float = 1e-8) -> Tensor:
    """Return the cosine of the angle between two tensors along an axis."""
    first, second = x1.norm(2, dim, keepdim=True).clamp_min(eps), x2.norm(2, dim, keepdim=True).clamp_min(eps)
    return (x1 / first * (x2 / second)).sum(dim)


def embedding(input: Tensor, weight: Tensor, padding_idx: int | None = None) -> Tensor:
    """Return the rows of a table that an index names; the padding row gets no gradient."""
    rows = weight.index_select(0, input.reshape(-1)).reshape(*input._data.shape, weight._data.shape[1])
    if padding_idx is None:
        return rows
    mask = (input == padding_idx % weight._data.shape[0]).unsqueeze(-1)
    return rows.masked_fill(mask, 0) + rows.detach().masked_fill(~mask, 0)


def one_hot(tensor: Tensor, num_classes: int = -1) -> Tensor:
    """Return ones at the places an index names, along a new last axis."""
    count = int(tensor._data.max()) + 1 if num_classes == -1 else num_classes
    return from_array((tensor._data[..., None] == np.arange(count)).astype(np.int64))


def dropout(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Return the tensor with elements dropped with probability p and the others scaled by 1 / (1 - p)."""
    if not 0 <= p <= 1:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
    if not training or p == 0:
        return input
    kept = random_source(None).random(input._data.shape) >= p
    mask = from_array((kept / (1 - p) if p < 1 else kept * 0.0).astype(input._data.dtype))
    return input.mul_(mask) if inplace else input * mask


# --- attention
def additive_mask(mask: Tensor, like: Tensor) -> Tensor:
    """Return a mask as numbers to add: minus infinity where a boolean mask holds."""
    if mask._data.dtype.kind != "b":
        return mask
    return like.new_zeros(mask.shape).masked_fill(mask, -math.inf)


def scaled_dot_product_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
) -> Tensor:
    """Return softmax(Q K^T scale + mask) V; where a boolean mask holds, pairs are kept.

    Args:
        query: [..., L, E].
        key: [..., S, E].
        value: [..., S, F].
        attn_mask: what is added, or which pairs are kept.
        dropout_p: probability with which a weight is dropped.
        is_causal: keep only keys that are not later than the query.
        scale: 1 / sqrt(E) unless given.
    """
    scores = query.matmul(key.transpose(-2, -1)) * (1 / math.sqrt(query._data.shape[-1]) if scale is None else scale)
    if is_causal:
        kept = ones(scores._data.shape[-2:]).tril().bool()
        scores = scores.masked_fill(~kept, -math.inf)
    if attn_mask is not None:
        scores = scores + additive_mask(~attn_mask if attn_mask._data.dtype.kind == "b" else attn_mask, scores)
    return dropout(scores.softmax(-1), dropout_p, dropout_p > 0).matmul(value)


# --- normalisation
def batch_norm(
    input: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """Return the tensor normalised over all axes but the second, with the batch's or the running statistics."""
    dims = [place for place in range(input._data.ndim) if place != 1]
    shape = [1, -1] + [1] * (input._data.ndim - 2)
    if training or running_mean is None or running_var is None:
        mean, var = input.mean(dims), input.var(dims, correction=0)
        count = input._data.size // max(input._data.shape[1], 1)
        if running_mean is not None and running_var is not None:
            unbiased = var._data * count / max(count - 1, 1)
            running_mean.detach().mul_(1 - momentum).add_(mean.detach() * momentum)
            running_var.detach().mul_(1 - momentum).add_(from_array(unbiased * momentum))
    else:
        mean, var = running_mean, running_var
    result = (input - mean.reshape(shape)) / (var.reshape(shape) + eps).sqrt()
    result = result if weight is None else result * weight.reshape(shape)
    return result if bias is None else result + bias.reshape(shape)


def layer_norm(
    input: Tensor,
    normalized_shape: Sequence[int],
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    """Return the tensor normalised over its last axes."""
    dims = list(range(-len(normalized_shape), 0))
    centred = input - input.mean(dims, keepdim=True)
    result = centred / (input.var(dims, correction=0, keepdim=True) + eps).sqrt()
    result = result if weight is None else result * weight
    return result if bias is None else result + bias


def group_norm(
    input: Tensor, num_groups: int, weight: Tensor | None = None, bias: Tensor | None = None, eps: float = 1e-5
) -> Tensor:
    """Return the tensor normalised over groups of channels."""
    grouped = input.reshape(input._data.shape[0], num_groups, -1)
    result = layer_norm(grouped, [grouped._data.shape[-1]], eps=eps).reshape(input._data.shape)
    shape = [1, -1] + [1] * (input._data.ndim - 2)
    result = result if weight is None else result * weight.reshape(shape)
    return result if bias is None else result + bias.reshape(shape)


# --- convolution and pooling
def conv1d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Sizes = 1,
    padding: Any = 0,
    dilation: Sizes = 1,
    groups: int = 1,
) -> Tensor:
    """Return the cross-correlation of [N, C, L] with [O, C / groups, K]."""
    return convolution(input, weight, bias, stride, padding, dilation, groups)


def conv2d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Sizes = 1,
    padding: Any = 0,
    dilation: Sizes = 1,
    groups: int = 1,
) -> Tensor:
    """Return the cross-correlation of [N, C, H, W] with [O, C / groups, KH, KW]."""
    return convolution(input, weight, bias, stride, padding, dilation, groups)


def conv_transpose1d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Sizes = 1,
    padding: Sizes = 0,
    output_padding: Sizes = 0,
    groups: int = 1,
    dilation: Sizes = 1,
) -> Tensor:
    """Return the adjoint of conv1d."""
    return conv_transpose(input, weight, bias, stride, padding, output_padding, groups, dilation)


conv_transpose2d = conv_transpose1d


def max_pool1d(input: Tensor, kernel_size: Sizes, stride: Sizes | None = None, padding: Sizes = 0) -> Tensor:
    """Return the largest element of every window of [N, C, L]."""
    return max_pool(input, kernel_size, stride, padding, 1)


def max_pool2d(input: Tensor, kernel_size: Sizes, stride: Sizes | None = None, padding: Sizes = 0) -> Tensor:
    """Return the largest element of every window of [N, C, H, W]."""
    return max_pool(input, kernel_size, stride, padding, 2)


def avg_pool1d(input: Tensor, kernel_size: Sizes, stride: Sizes | None = None, padding: Sizes = 0) -> Tensor:
    """Return the mean of every window of [N, C, L]."""
    return avg_pool(input, kernel_size, stride, padding, 1)


def avg_pool2d(
    input: Tensor,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    padding: Sizes = 0,
    count_include_pad: bool = True,
) -> Tensor:
    """Return the mean of every window of [N, C, H, W]."""
    return avg_pool(input, kernel_size, stride, padding, 2, count_include_pad)


def adaptive_avg_pool2d(input: Tensor, output_size: Sizes) -> Tensor:
    """Return means over a grid of the given size, whose cells may differ by one in size."""
    rows, columns = (output_size, output_size) if isinstance(output_size, int) else tuple(output_size)
    height, width = input._data.shape[-2:]
    lines = []
    for i in range(rows):
        band = input[..., i * height // rows : -(-(i + 1) * height // rows), :]
        cells = [
            band[..., j * width // columns : -(-(j + 1) * width // columns)].mean((-2, -1)) for j in range(columns)
        ]
        lines.append(input.stack(cells, -1))
    return input.stack(lines, -2)


def unfold(input: Tensor, kernel_size: Sizes, dilation: int = 1, padding: Sizes = 0, stride: Sizes = 1) -> Tensor:
    """Return the windows of [N, C, H, W] as columns [N, C KH KW, windows].

    Raises:
        ValueError: the windows are spread out, which is not supported.
    """
    if dilation != 1:
        raise ValueError(f"unfold supports dilation=1 only, got dilation={dilation}")
    taken = windows_of(input, kernel_size, stride, padding, 2)
    batch, channels, rows, columns, elements = taken._data.shape
    return taken.permute(0, 1, 4, 2, 3).reshape(batch, channels * elements, rows * columns)


def pad(input: Tensor, pad: Sequence[int], mode: str = "constant", value: float | None = None) -> Tensor:
    """Return the tensor with a constant put before and after its last axes, the last axis first.

    Raises:
        ValueError: another mode.
    """
    if mode != "constant":
        raise ValueError(f"pad supports mode='constant' only, got mode={mode!r}")
    return pad_zeros(input, tuple(pad), 0 if value is None else value)
