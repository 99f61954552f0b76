"""The connectionist temporal classification loss, margins of several labels, bags of rows, and max unpooling."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gradcli.engine.dtypes import Array
from gradcli.engine.nn.functions.losses import reduced
from gradcli.engine.nn.functions.tables import embedding
from gradcli.engine.ops.comparison import where
from gradcli.engine.ops.convolution import Sizes, each
from gradcli.engine.ops.joining import cat, stack
from gradcli.engine.ops.statistics import logsumexp
from gradcli.engine.tensor import Tensor, from_array

_NEVER = -1e30
"""The logarithm of the probability of what cannot be; finite, so that the derivatives of logsumexp are."""

_CHECKING = "(while checking arguments for ctc_loss_allocate_outputs)"


def _lengths(given: Any) -> Array:
    return np.atleast_1d(np.asarray(given._data if isinstance(given, Tensor) else given)).astype(np.int64)


def _padded(targets: Array, lengths: Array) -> Array:
    """Return targets [N, S], which may be given one after the other; what is not of a target is 0."""
    most = int(lengths.max(initial=0))
    rows = np.zeros((len(lengths), most), np.int64)
    ends = np.cumsum(lengths)
    for number, (end, length) in enumerate(zip(ends, lengths, strict=True)):
        source = targets[end - length : end] if targets.ndim == 1 else targets[number, :length]
        rows[number, :length] = source
    return rows


def _require_lengths(log_probs: Tensor, targets: Tensor, lasting: Array, wanted: Array, blank: int) -> None:
    steps, batch, classes = log_probs._data.shape
    for name, found in (("input_lengths", lasting), ("target_lengths", wanted)):
        if len(found) != batch:
            raise RuntimeError(f"{name} must be of size batch_size")
    if not 0 <= blank < classes:
        raise RuntimeError("blank must be in label range")
    if int(lasting.max(initial=0)) > steps:
        raise RuntimeError(
            f"Expected input_lengths to have value at most {steps}, but got value {lasting.max()} {_CHECKING}"
        )
    if targets._data.ndim == 2 and int(wanted.max(initial=0)) > targets._data.shape[1]:
        raise RuntimeError(
            f"Expected tensor to have size at least {wanted.max()} at dimension 1, but got size "
            f"{targets._data.shape[1]} for argument #2 'targets' {_CHECKING}"
        )


def ctc_loss(
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: Any,
    target_lengths: Any,
    blank: int = 0,
    reduction: str = "mean",
    zero_infinity: bool = False,
) -> Tensor:
    """Return minus the log-probability of the targets over all alignments (Graves et al., ICML 2006).

    Its gradient is, as PyTorch's, that of logits of which `log_probs` are the log-softmax: a sum over classes of 0.

    Args:
        log_probs: [T, N, C], or [T, C].
        targets: classes [N, S], or all of them one after the other.
        input_lengths: N lengths, at most T.
        target_lengths: N lengths.
        blank: the class that stands between labels.
        reduction: "mean" (of the losses over the lengths of their targets), "sum" or "none".
        zero_infinity: let a loss be 0, with the gradient 0, where no alignment is possible.

    Raises:
        RuntimeError: the lengths do not fit, or the index of the blank is not that of a class.
    """
    if log_probs._data.ndim == 2:
        single = targets.unsqueeze(0) if targets._data.ndim == 1 else targets
        loss = ctc_loss(log_probs.unsqueeze(1), single, input_lengths, target_lengths, blank, reduction, zero_infinity)
        return loss.squeeze(0) if reduction == "none" else loss
    steps, batch, _ = log_probs._data.shape
    lasting, wanted = _lengths(input_lengths), _lengths(target_lengths)
    _require_lengths(log_probs, targets, lasting, wanted, blank)
    rows = _padded(targets._data, wanted)
    labels = np.full((batch, 2 * rows.shape[1] + 1), blank)
    labels[:, 1::2] = rows
    total = _all_alignments(log_probs, labels, lasting, wanted, blank)
    impossible = from_array(total._data <= _NEVER / 2)
    within = from_array(np.arange(steps)[:, None, None] < lasting[:, None])
    mass = log_probs.exp().masked_fill(~within, 0).sum((0, 2))
    losses = mass - mass.detach() - total
    if zero_infinity:
        losses = losses.masked_fill(impossible, 0)
    elif bool(impossible._data.any()):  # the gradient of an infinite loss is NaN
        losses = losses * from_array(np.where(impossible._data, np.nan, 1).astype(losses._data.dtype))
        losses._data[impossible._data] = math.inf
    if reduction == "mean":
        losses = losses / from_array(np.maximum(wanted, 1).astype(losses._data.dtype))
    return reduced(losses, reduction)


def _all_alignments(log_probs: Tensor, labels: Array, lasting: Array, wanted: Array, blank: int) -> Tensor:
    """Return the logarithms of the sums of the probabilities of all alignments with labels between blanks."""
    steps, batch, _ = log_probs._data.shape
    index = from_array(np.broadcast_to(labels, (steps, *labels.shape)).copy())
    given = log_probs.gather(2, index)
    given = given.masked_fill(from_array(given._data == -math.inf), _NEVER)
    skips = np.zeros(labels.shape, bool)  # a label may follow another one at once
    skips[:, 2:] = (labels[:, 2:] != blank) & (labels[:, 2:] != labels[:, :-2])
    refused = from_array(~skips)
    never = from_array(np.full((batch, 2), _NEVER, log_probs._data.dtype))
    places = np.arange(labels.shape[1])
    alpha = given[0].masked_fill(from_array(np.broadcast_to(places > 1, labels.shape)), _NEVER)
    width = labels.shape[1]
    for step in range(1, steps):
        shifted = cat([never, alpha], 1)
        before = [alpha, shifted[:, 1 : width + 1], shifted[:, :width].masked_fill(refused, _NEVER)]
        following = logsumexp(stack(before), 0) + given[step]
        alpha = where(from_array((step < lasting)[:, None]), following, alpha)
    last = (places == 2 * wanted[:, None]) | (places == 2 * wanted[:, None] - 1)
    whole: Tensor = logsumexp(alpha.masked_fill(from_array(~last), _NEVER), 1)
    nothing = np.where(wanted == 0, 0, _NEVER).astype(whole._data.dtype)
    result: Tensor = where(from_array(lasting == 0), from_array(nothing), whole)
    return result


def multilabel_margin_loss(input: Tensor, target: Tensor, *, reduction: str = "mean") -> Tensor:
    """Return the sum of max(0, 1 - input[j] + input[i]) over labels j and other classes i, over the number of classes.

    Args:
        input: scores [N, C], or [C].
        target: the labels of each example in the same shape; they end at the first -1.
        reduction: "mean", "sum" or "none".

    Raises:
        RuntimeError: the shapes differ.
    """
    if input._data.shape != target._data.shape:
        raise RuntimeError(f"inconsistent target size: {list(target._data.shape)} for input of size: "
                           f"{list(input._data.shape)}")  # fmt: skip
    classes = input._data.shape[-1] if input._data.ndim else 1
    rows, labels = input.reshape(-1, classes), target._data.reshape(-1, classes)
    counted = np.logical_and.accumulate(labels >= 0, axis=1)
    chosen = np.where(counted, labels, 0)
    others = np.ones(labels.shape, bool)
    for row, number in zip(*np.nonzero(counted), strict=True):
        others[row, chosen[row, number]] = False
    short = (1 - rows.gather(1, from_array(chosen)).unsqueeze(2) + rows.unsqueeze(1)).relu()
    pairs = from_array(~(counted[:, :, None] & others[:, None, :]))
    losses = short.masked_fill(pairs, 0).sum((1, 2)) / classes
    return reduced(losses.reshape(input._data.shape[:-1]), reduction)


def embedding_bag(
    input: Tensor,
    weight: Tensor,
    offsets: Tensor | None = None,
    max_norm: float | None = None,
    norm_type: float = 2,
    scale_grad_by_freq: bool = False,
    mode: str = "mean",
    sparse: bool = False,
    per_sample_weights: Tensor | None = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> Tensor:
    """Return the sum, mean or maximum of the rows of a table in each bag of indices; zeros for an empty bag.

    Args:
        input: indices: bags of equal length [N, L], or bags one after the other with `offsets`.
        weight: the table [rows, D].
        offsets: where each bag begins.
        max_norm: must be None.
        norm_type: has no effect.
        scale_grad_by_freq: must be False.
        mode: "sum", "mean" or "max".
        sparse: has no effect: gradients are dense.
        per_sample_weights: a factor of each row ("sum" only).
        include_last_offset: the last offset is the end of the last bag.
        padding_idx: an index that counts for nothing.

    Raises:
        ValueError: the offsets do not fit, or the mode is unknown.
        NotImplementedError: an option that the engine does not have.
    """
    del norm_type, sparse
    if max_norm is not None or scale_grad_by_freq:
        raise NotImplementedError("embedding_bag: max_norm and scale_grad_by_freq are not supported by gradcli.engine")
    if mode not in ("sum", "mean", "max"):
        raise ValueError("mode has to be one of sum, mean or max")
    if per_sample_weights is not None and mode != "sum":
        raise NotImplementedError(
            "embedding_bag: per_sample_weights was not None. per_sample_weights is only supported for mode='sum' (got "
            f"mode='{mode}'). Please open a feature request on GitHub."
        )
    ends = _ends(input, offsets, include_last_offset)
    flat = input.reshape(-1)
    factors = None if per_sample_weights is None else per_sample_weights.reshape(-1)
    padding = -1 if padding_idx is None else padding_idx % weight._data.shape[0]
    outside = flat._data[(flat._data < 0) | (flat._data >= weight._data.shape[0])]
    if outside.size:
        raise RuntimeError(f"embedding_bag: Expected idx >= 0 && idx < num_embeddings but found idx to be {outside[0]}")
    rows = embedding(flat, weight)
    if factors is not None:
        rows = rows * factors.unsqueeze(-1)
    bags = [np.arange(*pair)[flat._data[slice(*pair)] != padding] for pair in itertools.pairwise(ends)]
    reduce: Callable[[Tensor], Tensor] = {
        "sum": lambda bag: bag.sum(0),
        "mean": lambda bag: bag.mean(0),
        "max": lambda bag: bag.max(0)[0],
    }[mode]
    return stack([reduce(rows[from_array(bag)]) if bag.size else rows.new_zeros(rows._data.shape[1]) for bag in bags])


def _ends(input: Tensor, offsets: Tensor | None, include_last: bool) -> list[int]:
    """Return where each bag begins in the flattened indices, and where the last one ends."""
    if input._data.ndim == 2:
        if offsets is not None:
            raise ValueError(
                "if input is 2D, then offsets has to be None, as input is treated is a mini-batch of fixed length "
                f"sequences. However, found offsets of type {type(offsets)}"
            )
        length = input._data.shape[1]
        return list(range(0, input._data.size + 1, length)) if length else [0] * (input._data.shape[0] + 1)
    if input._data.ndim != 1:
        raise ValueError(f"input has to be 1D or 2D Tensor, but got Tensor of dimension {input._data.ndim}")
    if offsets is None:
        raise ValueError("offsets has to be a 1D Tensor but got None")
    if offsets._data.ndim != 1:
        raise ValueError(f"offsets has to be a 1D Tensor, but got Tensor of dimension {offsets._data.ndim}")
    found: list[int] = offsets._data.tolist()
    if found and found[0]:
        raise RuntimeError(
            "offsets[0] has to be 0, i.e., the first sequence in the mini-batch has to start from position 0. However, "
            f"got {found[0]}"
        )
    if found and found[-1] > input._data.size:
        raise RuntimeError(
            f"offsets[-1] can not be greater than input's length ({input._data.size}) but got offsets[-1] of "
            f"{found[-1]}"
        )
    return found if include_last else [*found, input._data.size]


def max_unpool(
    input: Tensor,
    indices: Tensor,
    kernel_size: Sizes,
    stride: Sizes | None,
    padding: Sizes,
    output_size: Sequence[int] | None,
    n: int,
) -> Tensor:
    """Return zeros with the maxima of a max pooling put back where they came from.

    Args:
        input: the maxima [N, C, *sizes], or without N.
        indices: their flat indices, as `max_pool` returns them.
        kernel_size: the kernel of the pooling.
        stride: its stride; the kernel's size unless given.
        padding: its padding.
        output_size: the sizes before the pooling, for which several may be possible.
        n: the number of sizes.

    Raises:
        ValueError: no such tensor can have been pooled.
        RuntimeError: the indices have another shape, or lie outside.
    """
    kernel, pads = each(kernel_size, n), each(padding, n)
    step = kernel if stride is None else each(stride, n)
    sizes = [
        (size - 1) * s + k - 2 * p for size, s, k, p in zip(input._data.shape[-n:], step, kernel, pads, strict=True)
    ]
    if output_size is not None:
        asked = list(output_size)[-n:]
        for dim, (have, want, s) in enumerate(zip(sizes, asked, step, strict=True)):
            if not have - s < want < have + s:
                raise ValueError(
                    f'invalid output_size "{tuple(asked)}" (dim {dim} must be between {have - s} and {have + s})'
                )
        sizes = asked
    if input._data.shape != indices._data.shape:
        raise RuntimeError(
            f"Expected shape of indices to be same as that of the input tensor ({list(input._data.shape)}) but got "
            f"indices tensor with shape: {list(indices._data.shape)}"
        )
    lead = input._data.shape[:-n]
    if indices._data.size and not (indices._data.min() >= 0 and indices._data.max() < math.prod(sizes)):
        volume = "x".join(map(str, sizes))
        raise RuntimeError(f"Found an invalid max index: {indices._data.max()} (output volumes are of size {volume})")
    flat = input.new_zeros(*lead, math.prod(sizes))
    put: Tensor = flat.scatter(-1, indices.reshape(*lead, -1), input.reshape(*lead, -1))
    return put.reshape(*lead, *sizes)


def _unpooling(n: int) -> Callable[..., Tensor]:
    def unpool(
        input: Tensor,
        indices: Tensor,
        kernel_size: Sizes,
        stride: Sizes | None = None,
        padding: Sizes = 0,
        output_size: Sequence[int] | None = None,
    ) -> Tensor:
        return max_unpool(input, indices, kernel_size, stride, padding, output_size, n)

    unpool.__name__ = unpool.__qualname__ = f"max_unpool{n}d"
    unpool.__doc__ = f"Return the maxima put back where `max_pool{n}d` took them, and zeros elsewhere."
    return unpool


max_unpool1d, max_unpool2d, max_unpool3d = (_unpooling(n) for n in (1, 2, 3))
