"""The namespace `nn.functional`: the functions behind the layers."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from gradcli.engine.creation import ones
from gradcli.engine.in_place import in_place
from gradcli.engine.interface.calling import operations_of
from gradcli.engine.interface.missing_names import refusal
from gradcli.engine.nn.functions.composed import (
    cosine_embedding_loss,
    gaussian_nll_loss,
    hardshrink,
    hardsigmoid,
    hardswish,
    hinge_embedding_loss,
    instance_norm,
    margin_ranking_loss,
    multi_margin_loss,
    multilabel_soft_margin_loss,
    pairwise_distance,
    poisson_nll_loss,
    require_last_axes,
    rms_norm,
    soft_margin_loss,
    softshrink,
    threshold,
    triplet_margin_loss,
    triplet_margin_with_distance_loss,
)
from gradcli.engine.nn.functions.losses import (
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
from gradcli.engine.nn.functions.pooling import (
    adaptive_avg_pool1d,
    adaptive_avg_pool2d,
    adaptive_avg_pool3d,
    adaptive_max_pool1d,
    adaptive_max_pool2d,
    adaptive_max_pool3d,
    alpha_dropout,
    avg_pool1d,
    avg_pool2d,
    avg_pool3d,
    channel_shuffle,
    dropout,
    dropout1d,
    dropout2d,
    dropout3d,
    gumbel_softmax,
    local_response_norm,
    lp_pool1d,
    lp_pool2d,
    max_pool1d,
    max_pool2d,
    max_pool3d,
    rrelu,
    unfold,
)  # fmt: skip
from gradcli.engine.nn.functions.resampling import fold, interpolate, pad
from gradcli.engine.nn.functions.sampling import affine_grid, grid_sample
from gradcli.engine.nn.functions.sequences import (
    ctc_loss,
    embedding_bag,
    max_unpool1d,
    max_unpool2d,
    max_unpool3d,
    multilabel_margin_loss,
)
from gradcli.engine.nn.functions.shares import log_softmax, softmax, softmin
from gradcli.engine.nn.functions.tables import embedding, one_hot
from gradcli.engine.ops.activation import (
    celu,
    elu,
    gelu,
    glu,
    hardtanh,
    leaky_relu,
    logsigmoid,
    mish,
    prelu,
    relu,
    relu6,
    selu,
    silu,
    softplus,
    softsign,
    tanhshrink,
)  # fmt: skip
from gradcli.engine.ops.constant import passed
from gradcli.engine.ops.convolution import Sizes, conv_transpose, convolution
from gradcli.engine.ops.factorisation import pdist
from gradcli.engine.ops.linalg import addmm
from gradcli.engine.ops.operands import require_one_dtype
from gradcli.engine.ops.pooling import pixel_shuffle, pixel_unshuffle
from gradcli.engine.tensor import Tensor, from_array

__all__ = [
    "adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_avg_pool3d", "adaptive_max_pool1d",
    "adaptive_max_pool2d", "adaptive_max_pool3d", "affine_grid", "alpha_dropout", "avg_pool1d", "avg_pool2d",
    "avg_pool3d", "batch_norm", "bilinear", "binary_cross_entropy", "binary_cross_entropy_with_logits", "celu",
    "celu_", "channel_shuffle", "conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d",
    "conv_transpose3d", "cosine_embedding_loss", "cosine_similarity", "cross_entropy", "ctc_loss", "dropout",
    "dropout1d", "dropout2d", "dropout3d", "elu", "elu_", "embedding", "embedding_bag", "fold", "gaussian_nll_loss",
    "gelu", "glu", "grid_sample", "group_norm", "gumbel_softmax", "hardshrink", "hardsigmoid", "hardswish",
    "hardtanh", "hardtanh_", "hinge_embedding_loss", "huber_loss", "instance_norm", "interpolate", "kl_div",
    "l1_loss", "layer_norm", "leaky_relu", "leaky_relu_", "linear", "local_response_norm", "log_softmax",
    "logsigmoid", "lp_pool1d", "lp_pool2d", "margin_ranking_loss", "max_pool1d", "max_pool2d", "max_pool3d",
    "max_unpool1d", "max_unpool2d", "max_unpool3d", "mish", "mse_loss", "multi_margin_loss",
    "multilabel_margin_loss", "multilabel_soft_margin_loss", "nll_loss", "normalize", "one_hot", "pad",
    "pairwise_distance", "pdist", "pixel_shuffle", "pixel_unshuffle", "poisson_nll_loss", "prelu", "relu", "relu6",
    "relu_", "rms_norm", "rrelu", "rrelu_", "scaled_dot_product_attention", "selu", "selu_", "sigmoid", "silu",
    "smooth_l1_loss", "soft_margin_loss", "softmax", "softmin", "softplus", "softshrink", "softsign", "tanh",
    "tanhshrink", "threshold", "threshold_", "triplet_margin_loss", "triplet_margin_with_distance_loss", "unfold",
]  # fmt: skip


def linear(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """Return input @ weight^T + bias: [..., in] with a weight [out, in] gives [..., out]."""
    if bias is None:
        return input.matmul(weight.t())
    shape = input._data.shape
    if len(shape) == 2:
        return addmm(bias, input, weight.t())
    if shape and input.is_contiguous():
        rows = addmm(bias, input.view(math.prod(shape[:-1]), shape[-1]), weight.t())
        return rows.view(*shape[:-1], weight._data.shape[0])
    return input.matmul(weight.t()) + bias


def bilinear(input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """Return y_k = x1^T W_k x2 + b_k: [..., in1] and [..., in2] with a weight [out, in1, in2] give [..., out]."""
    left = (input1.unsqueeze(-2).unsqueeze(-2).matmul(weight)).squeeze(-2)
    result = (left * input2.unsqueeze(-2)).sum(-1)
    return result if bias is None else result + bias


def sigmoid(input: Tensor) -> Tensor:
    """Return 1 / (1 + exp(-x))."""
    return input.sigmoid()


def tanh(input: Tensor) -> Tensor:
    """Return the hyperbolic tangent."""
    return input.tanh()


# --- distances
def normalize(input: Tensor, p: float = 2.0, dim: int = 1, eps: float = 1e-12) -> Tensor:
    """Return x / max(|x|_p, eps), with the p-norm along an axis."""
    return input / input.norm(p, dim, keepdim=True).clamp_min(eps).expand_as(input)


def cosine_similarity(x1: Tensor, x2: Tensor, dim: int = 1, eps: float = 1e-8) -> Tensor:
    """Return x1 . x2 / (max(|x1|, eps) max(|x2|, eps)) along an axis."""
    first, second = x1.norm(2, dim, keepdim=True).clamp_min(eps), x2.norm(2, dim, keepdim=True).clamp_min(eps)
    return (x1 / first * (x2 / second)).sum(dim)


# --- attention
def additive_mask(mask: Tensor, like: Tensor) -> Tensor:
    """Return a mask to add to scores: -inf where a boolean mask is True, else 0; other masks as they are."""
    return like.new_zeros(mask.shape).masked_fill(mask, -math.inf) if mask._data.dtype.kind == "b" else mask


def scaled_dot_product_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
) -> Tensor:
    """Return softmax(Q K^T scale + mask) V, [..., L, F] (Vaswani et al., arXiv 1706.03762).

    Args:
        query: [..., L, E].
        key: [..., S, E].
        value: [..., S, F].
        attn_mask: [..., L, S]: numbers to add, or True where a query sees a key; a query that sees none gets 0.
        dropout_p: the probability with which a weight is dropped, in evaluation as well.
        is_causal: let query i attend to the keys up to i only.
        scale: the factor of the scores; 1 / sqrt(E) unless given.
    """
    scores = query.matmul(key.transpose(-2, -1)) * (1 / math.sqrt(query._data.shape[-1]) if scale is None else scale)
    if is_causal:
        kept = ones(scores._data.shape[-2:]).tril().bool()
        scores = scores.masked_fill(~kept, -math.inf)
    if attn_mask is not None:
        scores = scores + additive_mask(~attn_mask if attn_mask._data.dtype.kind == "b" else attn_mask, scores)
    masked = from_array((scores._data == -math.inf).all(axis=-1, keepdims=True))
    weights = scores.masked_fill(masked, 0).softmax(-1).masked_fill(masked, 0)
    return dropout(weights, dropout_p, dropout_p > 0).matmul(value)


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
    """Return (x - mean) / sqrt(var + eps) * weight + bias, for each index of the second axis (arXiv 1502.03167).

    Args:
        input: x, [N, C, ...].
        running_mean: C means; in training they are updated in place, in evaluation they are used.
        running_var: C variances, likewise; they are updated by unbiased variances.
        weight: C factors, or None.
        bias: C summands, or None.
        training: use the mean and the (biased) variance of the batch.
        momentum: the update is running = (1 - momentum) * running + momentum * batch.
        eps: added to the variance.

    Raises:
        ValueError: there is one value per channel in training.
        RuntimeError: there are no running statistics in evaluation, or element types differ.
    """
    require_one_dtype("batch_norm", input, weight, bias)
    dims = [place for place in range(input._data.ndim) if place != 1]
    shape = [1, -1] + [1] * (input._data.ndim - 2)
    if training and input._data.size == input._data.shape[1]:
        raise ValueError(f"Expected more than 1 value per channel when training, got input size {input.shape}")
    statistics = {"running_mean": running_mean, "running_var": running_var}
    for name, entry in {**statistics, "weight": weight, "bias": bias}.items():
        if entry is None and name in statistics and not training:
            raise RuntimeError(f"{name} must be defined in evaluation mode")
        if entry is not None and entry._data.size != input._data.shape[1]:
            raise RuntimeError(f"{name} should contain {input._data.shape[1]} elements not {entry._data.size}")
    if training or running_mean is None or running_var is None:
        mean, var = input.mean(dims), input.var(dims, correction=0)
        count = input._data.size // max(input._data.shape[1], 1)
        if running_mean is not None and running_var is not None:
            unbiased = var._data * count / max(count - 1, 1)
            running_mean.detach().mul_(1 - momentum).add_(mean.detach() * momentum)
            running_var.detach().mul_(1 - momentum).add_(from_array(unbiased * momentum))
    else:
        mean, var = running_mean, running_var
    source = passed(input, input, weight, zeros=False)
    result = (source - mean.reshape(shape)) / (var.reshape(shape) + eps).sqrt()
    result = result if weight is None else result * weight.reshape(shape)
    return result if bias is None else result + passed(bias, input, weight, zeros=False).reshape(shape)


def layer_norm(
    input: Tensor,
    normalized_shape: Sequence[int],
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    """Return (x - mean) / sqrt(var + eps) * weight + bias over the last axes (Ba et al., arXiv 1607.06450).

    Args:
        input: x.
        normalized_shape: the lengths of the last axes.
        weight: factors of this shape, or None.
        bias: summands of this shape, or None.
        eps: added to the biased variance.

    Raises:
        RuntimeError: the last axes have other lengths, or element types differ.
    """
    require_last_axes(input, tuple(normalized_shape))
    require_one_dtype("layer_norm", input, weight, bias)
    dims = list(range(-len(normalized_shape), 0))
    centred = input - input.mean(dims, keepdim=True)
    result = centred / (input.var(dims, correction=0, keepdim=True) + eps).sqrt()
    result = result if weight is None else result * weight
    return result if bias is None else result + passed(bias, input, weight, zeros=False)


def group_norm(
    input: Tensor, num_groups: int, weight: Tensor | None = None, bias: Tensor | None = None, eps: float = 1e-5
) -> Tensor:
    """Return [N, C, ...] normalised as in `layer_norm` over each group of channels (Wu and He, arXiv 1803.08494).

    Args:
        input: the tensor.
        num_groups: the number of groups that C is split into.
        weight: C factors, or None.
        bias: C summands, or None.
        eps: added to the variance.

    Raises:
        RuntimeError: C is not divisible by the number of groups, or element types differ.
    """
    if input._data.shape[1] % num_groups:
        raise RuntimeError(
            "Expected number of channels in input to be divisible by num_groups, but got input of shape "
            f"{list(input._data.shape)} and num_groups={num_groups}"
        )
    require_one_dtype("group_norm", input, weight, bias)
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
    """Return the cross-correlation of [N, C, L] with [O, C / groups, K]; see `ops.convolution.convolution`."""
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
    """Return the cross-correlation of [N, C, *sizes] with [O, C / groups, *kernel], for two or three sizes."""
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
    """Return the transposed convolution of [N, C, *sizes] with [C, O / groups, *kernel]; see `conv_transpose`."""
    return conv_transpose(input, weight, bias, stride, padding, output_padding, groups, dilation)


conv3d = conv2d
conv_transpose2d = conv_transpose3d = conv_transpose1d


def _written(activation: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """Return the in-place variant of an activation."""

    def write(input: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        return in_place(input, activation, *args, **kwargs)

    write.__name__ = activation.__name__ + "_"
    write.__doc__ = f"Write the result of `{activation.__name__}` to the tensor, and return it."
    return write


celu_, elu_, hardtanh_, leaky_relu_ = (_written(entry) for entry in (celu, elu, hardtanh, leaky_relu))
relu_, selu_, threshold_, rrelu_ = (_written(entry) for entry in (relu, selu, threshold, rrelu))


globals().update(operations_of(globals()))


def __getattr__(name: str) -> Any:
    """Raise AttributeError for a name that is not here, with names that are close."""
    raise refusal(".nn.functional", name, globals())
