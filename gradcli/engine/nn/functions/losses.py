"""Losses as functions.

They return their formula per element or example for `reduction="none"`, its sum for "sum", its mean for "mean".
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from gradcli.engine.dtypes import Array, Size
from gradcli.engine.graph import Node
from gradcli.engine.ops.activation import (
    hardtanh,
    log_softmax,
    logsigmoid,
)  # fmt: skip
from gradcli.engine.ops.constant import constant_in
from gradcli.engine.ops.operands import arrays, check_broadcast, require_one_dtype
from gradcli.engine.recording import record, tracked
from gradcli.engine.tensor import Tensor, from_array


class MseLossBackward0(Node):
    """d (x - y)^2 = 2 (x - y) (dx - dy), over the number of elements if the result is a mean."""

    _saved_names = ("self", "target")
    factor: float

    def _vjp(self, g: Tensor) -> Any:
        x, y = self._unpack()
        by_x = g * (x - y) * self.factor
        return by_x if self._needs(0) else None, -by_x if self._needs(1) else None


class NllLossBackward0(Node):
    """The target class of each example gets minus its factor: its weight, over the sum of weights if it is a mean."""

    _saved_names = ("self", "target", "weight", "factors")
    shape: tuple[int, ...]
    dim: int
    ignore_index: int

    def _vjp(self, g: Tensor) -> Any:
        x, target, _, factors = self._unpack()
        index = target.masked_fill(target == self.ignore_index, 0).unsqueeze(self.dim)
        values = (g * -factors).unsqueeze(self.dim)
        return constant_in(g.new_zeros(self.shape).scatter_add(self.dim, index, values), x)


class _Reduced(Node):
    """Of a sum or mean of losses, or of the losses: the rule of one loss, its cotangent times weight and `factor`."""

    factor: float

    def _of_each(self, g: Tensor, weight: Tensor | None) -> Tensor:
        scaled = g * self.factor
        return scaled if weight is None else scaled * weight


class BinaryCrossEntropyBackward0(_Reduced):
    """d loss = (p - y) / max(p (1 - p), 1e-12) dp + (log(1 - p) - log(p)) dy."""

    _saved_names = ("self", "target", "weight")

    def _vjp(self, g: Tensor) -> Any:
        p, y, weight = self._unpack()
        g = self._of_each(g, weight)
        by_p = by_y = None
        if self._needs(0):
            by_p = g * (p - y) / (p * (1 - p)).clamp(min=1e-12)
        if self._needs(1):
            by_y = g * ((1 - p).log() - p.log())
        return by_p, by_y


class BinaryCrossEntropyWithLogitsBackward0(_Reduced):
    """Of (1 - y) x - f l with f = 1 + (w - 1) y and l = log p, p = sigmoid(x): (f p - w y) dx - (x + (w - 1) l) dy.

    The gradient of w is -y l.
    """

    _saved_names = ("self", "target", "pos_weight", "weight")

    def _vjp(self, g: Tensor) -> Any:
        x, y, w, weight = self._unpack()
        g = self._of_each(g, weight)
        by_x = by_y = by_w = None
        if self._needs(0):
            p = x.sigmoid()
            by_x = g * (p - y if w is None else ((w - 1) * y + 1) * p - w * y)
        if self._needs(1):
            by_y = -g * (x if w is None else x + (w - 1) * logsigmoid(x))
        if self._needs(2):
            by_w = -g * y * logsigmoid(x)
        return by_x, by_y, by_w


class SmoothL1LossBackward0(_Reduced):
    """d loss = max(-limit, min(x - y, limit)) (dx - dy), times the factor."""

    _saved_names = ("self", "target")
    limit: float

    def _vjp(self, g: Tensor) -> Any:
        x, y = self._unpack()
        by_x = self._of_each(hardtanh(x - y, -self.limit, self.limit) * g, None)
        return by_x if self._needs(0) else None, -by_x if self._needs(1) else None


class HuberLossBackward0(SmoothL1LossBackward0):
    """As SmoothL1LossBackward0."""


def _recorded(
    kind: type[_Reduced],
    losses: Array,
    given: tuple[Tensor | None, ...],
    reduction: str,
    weight: Tensor | None = None,
    divisor: float = 1.0,
    **constants: Any,
) -> Tensor:
    """Return losses over a divisor, times a weight for each, reduced: one node, unless the weight has a gradient."""
    saved = given if issubclass(kind, SmoothL1LossBackward0) else (*given, weight)
    if weight is not None and tracked(weight):
        each: Tensor = record(kind, losses, given, (*given, None), factor=1.0, **constants)
        return reduced(each * weight, reduction)
    plain = from_array(losses)
    scaled = plain if divisor == 1 else plain / divisor
    whole = scaled if weight is None else scaled * weight
    share = whole._data.size if reduction == "mean" and whole._data.size else 1
    return record(kind, reduced(whole, reduction)._data, given, saved, factor=1 / (divisor * share), **constants)


def reduced(loss: Tensor, reduction: str) -> Tensor:
    """Return the mean or the sum of a loss, or the loss itself for "none".

    Raises:
        ValueError: the reduction is none of these.
    """
    if reduction not in ("mean", "sum", "none"):
        raise ValueError(f"{reduction} is not a valid value for reduction")
    return loss.mean() if reduction == "mean" else loss.sum() if reduction == "sum" else loss


def _warn_broadcast(input: Tensor, target: Tensor) -> None:
    if input._data.shape != target._data.shape:
        warnings.warn(
            f"Using a target size ({Size(target._data.shape)}) that is different to the input size "
            f"({Size(input._data.shape)}). This will likely lead to incorrect results due to "
            "broadcasting. Please ensure "
            "they have the same size.",
            UserWarning,
            stacklevel=3,
        )


def mse_loss(input: Tensor, target: Tensor, *, reduction: str = "mean") -> Tensor:
    """Return (input - target)^2, reduced; warns when the shapes differ."""
    _warn_broadcast(input, target)
    check_broadcast(input._data.shape, target._data.shape)
    x, y = arrays(input, target)
    gap = x - y
    square = gap * gap
    if reduction not in ("mean", "sum", "none"):
        raise ValueError(f"{reduction} is not a valid value for reduction")
    array = square if reduction == "none" else square.sum() if reduction == "sum" else square.mean()
    factor = 2.0 / square.size if reduction == "mean" and square.size else 2.0
    return record(MseLossBackward0, array, (input, target), (input, target), factor=factor)


def l1_loss(input: Tensor, target: Tensor, *, reduction: str = "mean") -> Tensor:
    """Return |input - target|, reduced; warns when the shapes differ."""
    _warn_broadcast(input, target)
    return reduced((input - target).abs(), reduction)


def smooth_l1_loss(input: Tensor, target: Tensor, *, reduction: str = "mean", beta: float = 1.0) -> Tensor:
    """Return d^2 / (2 beta) where |d| < beta, else |d| - beta / 2, with d = input - target; reduced.

    Raises:
        RuntimeError: beta is negative.
    """
    if beta < 0:
        raise RuntimeError("smooth_l1_loss does not support negative values for beta.")
    if beta == 0:
        return l1_loss(input, target, reduction=reduction)
    losses = _huber(input, target, beta)
    return _recorded(SmoothL1LossBackward0, losses, (input, target), reduction, divisor=beta, limit=beta)


def huber_loss(input: Tensor, target: Tensor, *, reduction: str = "mean", delta: float = 1.0) -> Tensor:
    """Return d^2 / 2 where |d| < delta, else delta (|d| - delta / 2), with d = input - target; reduced.

    Raises:
        RuntimeError: delta is not positive.
    """
    if delta <= 0:
        raise RuntimeError("huber_loss does not support non-positive values for delta.")
    losses = _huber(input, target, delta)
    return _recorded(HuberLossBackward0, losses, (input, target), reduction, limit=delta)


def _huber(input: Tensor, target: Tensor, delta: float) -> Array:
    gap = input.detach() - target.detach()
    size = gap.abs()
    inside = from_array(size._data < delta)
    return ((gap * gap * 0.5).masked_fill(~inside, 0) + ((size - delta / 2) * delta).masked_fill(inside, 0))._data


def nll_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    ignore_index: int = -100,
    reduction: str = "mean",
) -> Tensor:
    """Return minus the log-probability of the target class.

    Args:
        input: log-probabilities [N, C, ...], or [C].
        target: classes [N, ...], or one.
        weight: C factors; "mean" divides by the sum of those of the targets.
        ignore_index: a target that counts for nothing.
        reduction: "mean", "sum" or "none".

    Raises:
        ValueError: there is no such reduction, or the batches differ in size.
        RuntimeError: the target does not hold integers, or the element types of input and weight differ.
        IndexError: there is no such class.
    """
    if reduction not in ("mean", "sum", "none"):
        raise ValueError(f"{reduction} is not a valid value for reduction")
    if target._data.dtype.kind not in "iu":
        raise RuntimeError(f"expected target dtype to be Long or Byte, but got {target.dtype.letter}")
    require_one_dtype("nll_loss", input, weight)
    dim = 0 if input._data.ndim == 1 else 1
    if dim and input._data.shape[0] != target._data.shape[0]:
        raise ValueError(
            f"Expected input batch_size ({input._data.shape[0]}) to match target batch_size ({target._data.shape[0]})."
        )
    ignored = target._data == ignore_index
    classes = np.where(ignored, 0, target._data)
    outside = (classes < 0) | (classes >= input._data.shape[dim])
    if bool(outside.any()):
        raise IndexError(f"Target {classes[outside][0]} is out of bounds.")
    factors = np.ones(classes.shape, dtype=input._data.dtype) if weight is None else weight._data[classes]
    none = input._data.dtype.type(0)
    factors = np.where(ignored, none, factors)
    index = np.expand_dims(classes, dim)
    with np.errstate(all="ignore"):
        if reduction == "mean":
            factors = factors / factors.sum()
        losses = -np.take_along_axis(input._data, index, dim).squeeze(dim) * factors
    array = losses if reduction == "none" else losses.sum()
    if reduction == "mean" and not losses.size:
        array = np.full_like(array, np.nan)
    saved = (input, target, weight, from_array(np.where(ignored, none, factors)))
    return record(NllLossBackward0, array, (input,), saved, shape=input._data.shape, dim=dim, ignore_index=ignore_index)


def cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    ignore_index: int = -100,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Tensor:
    """Return `nll_loss` of the log-softmax over the classes.

    Args:
        input: logits [N, C, ...], or [C].
        target: classes as in `nll_loss`; or, in floating point, probabilities of the shape of input.
        weight: C factors.
        ignore_index: a target class that counts for nothing.
        reduction: "mean", "sum" or "none"; "mean" of probabilities divides by N.
        label_smoothing: the share of the target distribution that is spread evenly over all classes (Szegedy et al.,
            arXiv 1512.00567).
    """
    dim = 0 if input._data.ndim == 1 else 1
    if target._data.shape == input._data.shape and target._data.dtype.kind != "f":
        raise RuntimeError(
            f"Expected floating point type for target with class probabilities, got {target.dtype.letter}"
        )
    logs = log_softmax(input, dim)
    if target._data.dtype.kind == "f" and target._data.shape == input._data.shape:
        count = input._data.shape[dim]
        spread = target * (1 - label_smoothing) + label_smoothing / count
        weighted = logs if weight is None else logs * weight.reshape(-1, *(1 for _ in logs._data.shape[dim + 1 :]))
        losses = -(spread * weighted).sum(dim)
        return reduced(losses, reduction)
    loss = nll_loss(logs, target, weight, ignore_index, reduction)
    if not label_smoothing:
        return loss
    counted = target._data != ignore_index
    shape = (-1, *(1 for _ in logs._data.shape[dim + 1 :]))
    smooth = -(logs if weight is None else logs * weight.reshape(shape)).sum(dim) * from_array(
        counted.astype(input._data.dtype)
    )
    if reduction != "none":
        smooth = smooth.sum()
    if reduction == "mean":
        factors = counted if weight is None else weight._data[np.where(counted, target._data, 0)] * counted
        smooth = smooth / float(factors.sum())
    even: Tensor = smooth * (label_smoothing / logs._data.shape[dim])
    return loss * (1 - label_smoothing) + even


def binary_cross_entropy(
    input: Tensor, target: Tensor, weight: Tensor | None = None, reduction: str = "mean"
) -> Tensor:
    """Return -(y log(p) + (1 - y) log(1 - p)) for p = input and y = target, each log clamped to at least -100; reduced.

    At p = 0 and p = 1 the gradient is finite: its denominator p (1 - p) is clamped to at least 1e-12, as in PyTorch.

    Raises:
        ValueError: input and target have different shapes.
        RuntimeError: they have different element types, or an input is not between 0 and 1.
    """
    if input._data.shape != target._data.shape:
        raise ValueError(
            f"Using a target size ({target.shape}) that is different to the input size ({input.shape}) is deprecated. "
            "Please ensure they have the same size."
        )
    require_one_dtype("binary_cross_entropy", input, target)
    if not bool(((input._data >= 0) & (input._data <= 1)).all()):
        raise RuntimeError("all elements of input should be between 0 and 1")
    p, y = input._data, target._data
    with np.errstate(divide="ignore"):
        array = -(y * np.maximum(np.log(p), -100) + (1 - y) * np.maximum(np.log1p(-p), -100)).astype(p.dtype)
    return _recorded(BinaryCrossEntropyBackward0, array, (input, target), reduction, weight)


def binary_cross_entropy_with_logits(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    reduction: str = "mean",
    pos_weight: Tensor | None = None,
) -> Tensor:
    """Return the binary cross-entropy of sigmoid(input), without overflow; reduced.

    Args:
        input: logits.
        target: numbers between 0 and 1, of the same shape.
        weight: a factor for each element.
        reduction: "mean", "sum" or "none".
        pos_weight: a factor of the term with `target`.

    Raises:
        ValueError: input and target have different shapes.
    """
    if input._data.shape != target._data.shape:
        raise ValueError(f"Target size ({target.shape}) must be the same as input size ({input.shape})")
    if target._data.dtype.kind not in "fc":
        kinds = input.dtype.letter, target.dtype.letter
        raise RuntimeError(f"result type {kinds[0]} can't be cast to the desired output type {kinds[1]}")
    x, y = input.detach(), target.detach()
    terms = logsigmoid(x)
    if pos_weight is not None:
        terms = ((pos_weight.detach() - 1) * y + 1) * terms
    given = (input, target, pos_weight)
    return _recorded(BinaryCrossEntropyWithLogitsBackward0, ((1 - y) * x - terms)._data, given, reduction, weight)


def kl_div(input: Tensor, target: Tensor, reduction: str = "mean", log_target: bool = False) -> Tensor:
    """Return target * (log(target) - input), reduced; a term is 0 where target is 0.

    Args:
        input: log-probabilities.
        target: probabilities, or with `log_target` their logs.
        reduction: "mean" (over all elements), "batchmean" (the sum over the length of the first axis, which is the
            mathematical definition), "sum" or "none".
        log_target: whether the target holds logs.
    """
    losses = target.exp() * (target - input) if log_target else target.xlogy(target) - target * input
    if reduction == "batchmean":
        return losses.sum() / int(input._data.shape[0])
    return reduced(losses, reduction)
