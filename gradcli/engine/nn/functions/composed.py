"""Further activations, normalisations and losses; most are composed of other operations.

Losses return their formula per element or example for `reduction="none"`, its sum for "sum", its mean for "mean".
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from gradcli.engine.graph import Node
from gradcli.engine.in_place import in_place
from gradcli.engine.nn.functions.losses import reduced
from gradcli.engine.ops.activation import logsigmoid
from gradcli.engine.ops.comparison import where
from gradcli.engine.ops.constant import constant_in, passed
from gradcli.engine.recording import record
from gradcli.engine.tensor import Tensor, from_array


# --- activations
class HardsigmoidBackward0(Node):
    """d hardsigmoid = dx / 6 strictly between -3 and 3, 0 on these limits and outside."""

    _saved_names = ("self",)

    def _vjp(self, g: Tensor) -> Any:
        (x,) = self._unpack()
        return constant_in(g.masked_fill(from_array(~((x._data > -3) & (x._data < 3))), 0) / 6, x)


class HardswishBackward0(Node):
    """d hardswish = (x / 3 + 1 / 2) dx strictly between -3 and 3, 0 up to -3, dx from 3 on."""

    _saved_names = ("self",)

    def _vjp(self, g: Tensor) -> Any:
        (x,) = self._unpack()
        slope = (x / 3 + 0.5).masked_fill(from_array(~(x._data < 3)), 1)
        return g * slope.masked_fill(from_array(x._data <= -3), 0)


class ThresholdBackward0(Node):
    """The cotangent where x > threshold or is NaN, else 0."""

    _saved_names = ("self",)
    _constant_names = ("threshold",)
    threshold: float

    def _vjp(self, g: Tensor) -> Any:
        (x,) = self._unpack()
        return constant_in(g.masked_fill(from_array(x._data <= self.threshold), 0), x)


class HardshrinkBackward0(Node):
    """The cotangent where |x| > lambd or x is NaN, else 0."""

    _saved_names = ("self",)
    _constant_names = ("lambd",)
    lambd: float

    def _vjp(self, g: Tensor) -> Any:
        (x,) = self._unpack()
        return constant_in(g.masked_fill(from_array(np.abs(x._data) <= self.lambd), 0), x)


class SoftshrinkBackward0(HardshrinkBackward0):
    """As HardshrinkBackward0."""


def threshold(input: Tensor, threshold: float, value: float, inplace: bool = False) -> Tensor:
    """Return x where x > threshold, else `value`."""
    if inplace:
        return in_place(input, _threshold, threshold, value)
    return _threshold(input, threshold, value)


def _threshold(input: Tensor, threshold: float, value: float) -> Tensor:
    x = input._data
    array = np.where(x <= threshold, x.dtype.type(value), x)
    return record(ThresholdBackward0, array, (input,), (input,), threshold=threshold)


def hardshrink(input: Tensor, lambd: float = 0.5) -> Tensor:
    """Return x where |x| > lambd, else 0."""
    x = input._data
    array = np.where(np.abs(x) <= lambd, x.dtype.type(0), x)
    return record(HardshrinkBackward0, array, (input,), (input,), lambd=lambd)


def softshrink(input: Tensor, lambd: float = 0.5) -> Tensor:
    """Return x - lambd where x > lambd, x + lambd where x < -lambd, else 0."""
    x = input._data
    array = np.where(np.abs(x) <= lambd, x.dtype.type(0), x - np.sign(x) * x.dtype.type(lambd))
    return record(SoftshrinkBackward0, array, (input,), (input,), lambd=lambd)


def hardsigmoid(input: Tensor, inplace: bool = False) -> Tensor:
    """Return x / 6 + 1 / 2, clamped to [0, 1]; the gradient where x is -3 or 3 is 0."""
    if inplace:
        return in_place(input, hardsigmoid)
    result: Tensor = record(HardsigmoidBackward0, np.clip(input._data + 3, 0, 6) / 6, (input,), (input,))
    return result


def hardswish(input: Tensor, inplace: bool = False) -> Tensor:
    """Return x hardsigmoid(x) (Howard et al., arXiv 1905.02244); the gradient is 0 at -3 and 1 at 3."""
    if inplace:
        return in_place(input, hardswish)
    x = input._data
    result: Tensor = record(HardswishBackward0, x * np.clip(x + 3, 0, 6) / 6, (input,), (input,))
    return result


# --- normalisation
def rms_norm(input: Tensor, normalized_shape: Any, weight: Tensor | None = None, eps: float | None = None) -> Tensor:
    """Return x / sqrt(mean(x^2) + eps) over the last axes, times a weight (Zhang and Sennrich, arXiv 1910.07467).

    Args:
        input: x.
        normalized_shape: the lengths of the last axes.
        weight: a tensor of this shape, or None.
        eps: the machine epsilon of the element type unless given.

    Raises:
        RuntimeError: the last axes have other lengths.
    """
    require_last_axes(input, tuple(normalized_shape))
    dims = tuple(range(-len(tuple(normalized_shape)), 0))
    small = float(np.finfo(input._data.dtype).eps) if eps is None else eps
    result = input * ((input * input).mean(dims, keepdim=True) + small).rsqrt()
    return result if weight is None else result * weight


def require_last_axes(input: Tensor, shape: tuple[int, ...]) -> None:
    """Raise RuntimeError unless the last axes of a tensor have a shape."""
    have = input._data.shape
    if len(have) < len(shape) or have[len(have) - len(shape) :] != shape:
        raise RuntimeError(
            f"Given normalized_shape={list(shape)}, expected input with shape [*, {', '.join(map(str, shape))}], but "
            f"got input of size{list(have)}"
        )


def instance_norm(
    input: Tensor,
    running_mean: None = None,
    running_var: None = None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    use_input_stats: bool = True,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """Return (x - mean) / sqrt(var + eps) * weight + bias, with mean and var over *sizes of each channel and example.

    Args:
        input: x, [N, C, *sizes].
        running_mean: must be None: running statistics are not supported.
        running_var: must be None.
        weight: C factors, or None.
        bias: C summands, or None.
        use_input_stats: must be True.
        momentum: has no effect.
        eps: added to the variance.

    Raises:
        NotImplementedError: running statistics are given or asked for.
    """
    del momentum
    if running_mean is not None or running_var is not None or not use_input_stats:
        raise NotImplementedError("instance_norm: running statistics are not supported by gradcli.engine")
    dims = tuple(range(2, input._data.ndim))
    centred = input - input.mean(dims, keepdim=True)
    result = centred * ((centred * centred).mean(dims, keepdim=True) + eps).rsqrt()
    shape = (1, -1, *(1,) * len(dims))
    if weight is not None:
        result = result * weight.reshape(shape)
    return result if bias is None else result + passed(bias, input, weight, zeros=False).reshape(shape)


def pairwise_distance(x1: Tensor, x2: Tensor, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> Tensor:
    """Return the p-norm of x1 - x2 + eps along the last axis."""
    return (x1 - x2 + eps).norm(p, -1, keepdim)


# --- losses
def soft_margin_loss(input: Tensor, target: Tensor, *, reduction: str = "mean") -> Tensor:
    """Return log(1 + exp(-target * input)), for targets 1 and -1."""
    return reduced((-target * input).exp().log1p(), reduction)


def margin_ranking_loss(
    input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0.0, *, reduction: str = "mean"
) -> Tensor:
    """Return max(0, margin - target * (input1 - input2)), for targets 1 and -1."""
    return reduced((-target * (input1 - input2) + margin).clamp(min=0), reduction)


def hinge_embedding_loss(input: Tensor, target: Tensor, margin: float = 1.0, *, reduction: str = "mean") -> Tensor:
    """Return input (a distance) where the target is 1, max(0, margin - input) where it is -1, their sum elsewhere."""
    apart = (margin - input).clamp(min=0)
    return reduced(where(target != 1, apart, 0) + where(target != -1, input, 0), reduction)


def cosine_embedding_loss(
    input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0.0, *, reduction: str = "mean"
) -> Tensor:
    """Return 1 - cos(input1, input2) where the target is 1, max(0, cos - margin) where it is -1, and 0 elsewhere.

    Args:
        input1: vectors [N, D], or [D].
        input2: vectors of the same shape.
        target: [N], or a number: 1 or -1.
        margin: a number between -1 and 1.
        reduction: "mean", "sum" or "none".

    Raises:
        RuntimeError: the inputs do not have one axis more than the target.
    """
    small, count = 1e-12, target._data.ndim
    if count > 1:
        raise RuntimeError(
            "0D or 1D target tensor expected, multi-target not supported, input sizes: "
            f"{list(input1._data.shape)}, {list(input2._data.shape)}"
        )
    if not count + 1 == input1._data.ndim == input2._data.ndim:
        raise RuntimeError(
            f"{count}D target tensor expects {count + 1}D input tensors, but found inputs with sizes "
            f"{list(input1._data.shape)} and {list(input2._data.shape)}."
        )
    product = (input1 * input2).sum(-1)
    cosine = product / (((input1 * input1).sum(-1) + small) * ((input2 * input2).sum(-1) + small)).sqrt()
    apart = (cosine - margin).clamp(min=0)
    return reduced(where(target == 1, 1 - cosine, 0) + where(target == -1, apart, 0), reduction)


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
    """Return max(0, d(anchor, positive) - d(anchor, negative) + margin), d the p-norm along the last axis.

    With `swap`, the second distance is the smaller of it and d(positive, negative) (Balntas et al., BMVC 2016).
    """
    near, far = pairwise_distance(anchor, positive, p, eps), pairwise_distance(anchor, negative, p, eps)
    if swap:
        far = far.minimum(pairwise_distance(positive, negative, p, eps))
    return reduced((near - far + margin).clamp(min=0), reduction)


def triplet_margin_with_distance_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    *,
    distance_function: Callable[[Tensor, Tensor], Tensor] | None = None,
    margin: float = 1.0,
    swap: bool = False,
    reduction: str = "mean",
) -> Tensor:
    """Return `triplet_margin_loss` for another distance d, a function of two tensors."""
    distance = pairwise_distance if distance_function is None else distance_function
    near, far = distance(anchor, positive), distance(anchor, negative)
    if swap:
        far = far.minimum(distance(positive, negative))
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
    """Return the negative log-likelihood of counts under Poisson distributions, without log(target!).

    Args:
        input: the log of the expected counts, or with `log_input=False` the expected counts.
        target: the counts.
        log_input: exp(input) - target * input, rather than input - target * log(input + eps).
        full: add Stirling's approximation of log(target!) where target > 1.
        eps: keeps the log finite with `log_input=False`.
        reduction: "mean", "sum" or "none".
    """
    loss = input.exp() - target * input if log_input else input - target * (input + eps).log()
    if full:
        stirling = target * target.log() - target + (target * (2 * math.pi)).log() * 0.5
        loss = loss + stirling.masked_fill(target <= 1, 0)
    return reduced(loss, reduction)


def gaussian_nll_loss(
    input: Tensor, target: Tensor, var: Any, full: bool = False, eps: float = 1e-6, *, reduction: str = "mean"
) -> Tensor:
    """Return 0.5 (log(var) + (input - target)^2 / var), plus 0.5 log(2 pi) with `full`.

    Args:
        input: the expected values.
        target: the values.
        var: the variances, in the shape of input, or one for each index of all axes but the last; or a number. It is
            clamped to at least eps; the gradient passes the clamp unchanged.
        full: add the constant.
        eps: the smallest variance.
        reduction: "mean", "sum" or "none".

    Raises:
        ValueError: a variance is negative.
    """
    spread = var if isinstance(var, Tensor) else input.new_tensor(var)
    if bool((spread._data < 0).any()):
        raise ValueError("var has negative entry/entries")
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
    """Return sum over classes j != target of max(0, margin - input[target] + input[j])^p, over the number of classes.

    Args:
        input: scores [N, C], or [C].
        target: classes [N], or one.
        p: 1 or 2.
        margin: a number.
        weight: C factors, one for each target class.
        reduction: "mean", "sum" or "none".
    """
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
    """Return the mean, over the last axis, of the binary cross-entropy of logits; targets are 0 or 1."""
    scores = -(target * logsigmoid(input) + (1 - target) * logsigmoid(-input))
    if weight is not None:
        scores = scores * weight
    return reduced(scores.mean(-1), reduction)
