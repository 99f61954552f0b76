"""The functions behind the layers."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from gradcli.engine.creation import random_source
from gradcli.engine.dtypes import Size
from gradcli.engine.graph import Node
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
from gradcli.engine.recording import record
from gradcli.engine.tensor import Tensor, from_array

__all__ = [
    "adaptive_avg_pool2d", "avg_pool1d", "avg_pool2d", "batch_norm", "bilinear", "binary_cross_entropy",
    "binary_cross_entropy_with_logits", "celu", "conv1d", "conv2d", "conv_transpose1d", "conv_transpose2d",
    "cosine_similarity", "cross_entropy", "dropout", "elu", "embedding", "gelu", "glu", "group_norm", "hardtanh",
    "huber_loss", "kl_div", "l1_loss", "layer_norm", "leaky_relu", "linear", "log_softmax", "logsigmoid", "max_pool1d",
    "max_pool2d", "mish", "mse_loss", "nll_loss", "normalize", "one_hot", "pad", "pixel_shuffle", "pixel_unshuffle",
    "prelu", "relu", "relu6", "selu", "sigmoid", "silu", "smooth_l1_loss", "softmax", "softmin", "softplus", "softsign",
    "tanh", "tanhshrink", "unfold",
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
class MseLossBackward0(Node):
    """d mean (x - y)^2 = 2 (x - y) (dx - dy) / n."""

    _saved_names = ("self", "target")
    factor: float

    def _vjp(self, g: Tensor) -> Any:
        x, y = self._unpack()
        by_x = g * (x - y) * self.factor
        return by_x if self._needs(0) else None, -by_x if self._needs(1) else None


class NllLossBackward0(Node):
    """Minus its factor goes to the right class of every example."""

    _saved_names = ("index", "factors")
    shape: tuple[int, ...]
    dim: int

    def _vjp(self, g: Tensor) -> Any:
        index, factors = self._unpack()
        values = (g * -factors).unsqueeze(self.dim)
        return g.new_zeros(self.shape).scatter_add(self.dim, index, values)


def reduced(loss: Tensor, reduction: str) -> Tensor:
    """Return the mean or sum of a loss, or the loss itself for "none".

    Raises:
        ValueError: the reduction is another.
    """
    if reduction not in ("mean", "sum", "none"):
        raise ValueError(f"{reduction} is not a valid value for reduction")
    return loss.mean() if reduction == "mean" else loss.sum() if reduction == "sum" else loss


def _warn_broadcast(input: Tensor, target: Tensor) -> None:
    if input._data.shape != target._data.shape:
        warnings.warn(
            f"Using a target size ({Size(target._data.shape)}) that is different to the input size "
            f"({Size(input._data.shape)}). This will likely lead to incorrect results due to broadcasting. Please ensure "
            "they have the same size.",
            UserWarning,
            stacklevel=3,
        )


def mse_loss(input: Tensor, target: Tensor, *, reduction: str = "mean") -> Tensor:
    """Return the mean of squared differences."""
    _warn_broadcast(input, target)
    gap = input._data - target._data
    square = gap * gap
    if reduction not in ("mean", "sum", "none"):
        raise ValueError(f"{reduction} is not a valid value for reduction")
    array = square if reduction == "none" else square.sum() if reduction == "sum" else square.mean()
    factor = 2.0 / square.size if reduction == "mean" and square.size else 2.0
    return record(MseLossBackward0, array, (input, target), (input, target), factor=factor)


def l1_loss(input: Tensor, target: Tensor, *, reduction: str = "mean") -> Tensor:
    """Return the mean of absolute differences."""
    _warn_broadcast(input, target)
    return reduced((input - target).abs(), reduction)


def smooth_l1_loss(input: Tensor, target: Tensor, *, reduction: str = "mean", beta: float = 1.0) -> Tensor:
    """Return squared differences over 2 beta below beta, absolute ones less beta / 2 above."""
    if beta == 0:
        return l1_loss(input, target, reduction=reduction)
    return reduced(_huber(input - target, beta) / beta, reduction)


def huber_loss(input: Tensor, target: Tensor, *, reduction: str = "mean", delta: float = 1.0) -> Tensor:
    """Return half squared differences below delta, delta times (absolute ones less delta / 2) above."""
    return reduced(_huber(input - target, delta), reduction)


def _huber(gap: Tensor, delta: float) -> Tensor:
    size = gap.abs()
    inside = from_array(size._data < delta)
    return (gap * gap * 0.5).masked_fill(~inside, 0) + ((size - delta / 2) * delta).masked_fill(inside, 0)


def nll_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    ignore_index: int = -100,
    reduction: str = "mean",
) -> Tensor:
    """Return minus the log probability of the right class; classes are the second axis (the only one of a vector)."""
    if reduction not in ("mean", "sum", "none"):
        raise ValueError(f"{reduction} is not a valid value for reduction")
    dim = 0 if input._data.ndim == 1 else 1
    ignored = target._data == ignore_index
    classes = np.where(ignored, 0, target._data)
    factors = np.ones(classes.shape, dtype=input._data.dtype) if weight is None else weight._data[classes]
    factors = np.where(ignored, input._data.dtype.type(0), factors)
    if reduction == "mean":
        with np.errstate(all="ignore"):
            factors = factors / factors.sum()
    index = np.expand_dims(classes, dim)
    losses = -np.take_along_axis(input._data, index, dim).squeeze(dim) * factors
    array = losses if reduction == "none" else losses.sum()
    constants = (from_array(index), from_array(factors))
    return record(NllLossBackward0, array, (input,), constants, shape=input._data.shape, dim=dim)


def cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    ignore_index: int = -100,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Tensor:
    """Return the negative log likelihood of the log softmax; a floating point target holds probabilities."""
    dim = 0 if input._data.ndim == 1 else 1
    logs = log_softmax(input, dim)
    if target._data.dtype.kind == "f":
        count = input._data.shape[dim]
        spread = target * (1 - label_smoothing) + label_smoothing / count
        losses = -(spread * logs if weight is None else spread * logs * weight).sum(dim)
        return reduced(losses, reduction)
    loss = nll_loss(logs, target, weight, ignore_index, reduction)
    if not label_smoothing:
        return loss
    kept = from_array((target._data != ignore_index).astype(input._data.dtype))
    smooth = -logs.mean(dim) * kept
    even = smooth if reduction == "none" else smooth.sum() / kept.sum() if reduction == "mean" else smooth.sum()
    return loss * (1 - label_smoothing) + even * label_smoothing


def binary_cross_entropy(
    input: Tensor, target: Tensor, weight: Tensor | None = None, reduction: str = "mean"
) -> Tensor:
    """Return -(y log p + (1 - y) log(1 - p)), each log kept at -100 or above."""
    losses = -(target * input.log().clamp(min=-100) + (1 - target) * (1 - input).log().clamp(min=-100))
    return reduced(losses if weight is None else losses * weight, reduction)


def binary_cross_entropy_with_logits(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    reduction: str = "mean",
    pos_weight: Tensor | None = None,
) -> Tensor:
    """Return the binary cross entropy of sigmoid(x), without overflow."""
    if pos_weight is None:
        losses = (1 - target) * input - logsigmoid(input)
    else:
        losses = (1 - target) * input - ((pos_weight - 1) * target + 1) * logsigmoid(input)
    return reduced(losses if weight is None else losses * weight, reduction)


def kl_div(input: Tensor, target: Tensor, reduction: str = "mean", log_target: bool = False) -> Tensor:
    """Return target (log target - input), for log probabilities `input`."""
    losses = target.exp() * (target - input) if log_target else target.xlogy(target) - target * input
    if reduction == "batchmean":
        return losses.sum() / input._data.shape[0]
    return reduced(losses, reduction)


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
) -> Tensor:
    """Return the adjoint of conv1d."""
    return conv_transpose(input, weight, bias, stride, padding, output_padding, groups)


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
