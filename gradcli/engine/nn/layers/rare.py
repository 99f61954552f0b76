"""Rarer losses, bags of embeddings, unpooling and upsampling as modules."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from gradcli.engine.creation import randn
from gradcli.engine.nn import functional
from gradcli.engine.nn.base.module import Module
from gradcli.engine.nn.functions.sequences import max_unpool
from gradcli.engine.nn.layers.losses import _Loss
from gradcli.engine.nn.layers.pooling import Upsample
from gradcli.engine.nn.parameter import Parameter
from gradcli.engine.ops.convolution import Sizes, each
from gradcli.engine.tensor import Tensor


class CTCLoss(Module):
    """The connectionist temporal classification loss; see `functional.ctc_loss`."""

    def __init__(self, blank: int = 0, reduction: str = "mean", zero_infinity: bool = False) -> None:
        super().__init__()
        self.blank, self.reduction, self.zero_infinity = blank, reduction, zero_infinity

    def forward(self, log_probs: Tensor, targets: Tensor, input_lengths: Any, target_lengths: Any) -> Tensor:
        """Return the loss."""
        return functional.ctc_loss(
            log_probs, targets, input_lengths, target_lengths, self.blank, self.reduction, self.zero_infinity
        )


class MultiLabelMarginLoss(_Loss):
    """Margins between the labels of each example and the other classes; see `functional.multilabel_margin_loss`."""

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Return the loss."""
        return functional.multilabel_margin_loss(input, target, reduction=self.reduction)


class MultiLabelSoftMarginLoss(_Loss):
    """The mean binary cross-entropy of logits over the last axis; see `functional.multilabel_soft_margin_loss`."""

    def __init__(self, weight: Tensor | None = None, reduction: str = "mean") -> None:
        super().__init__(reduction=reduction)
        self.register_buffer("weight", weight)

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Return the loss."""
        return functional.multilabel_soft_margin_loss(input, target, self.weight, reduction=self.reduction)


class MultiMarginLoss(_Loss):
    """Margins between the class of each example and the others; see `functional.multi_margin_loss`."""

    def __init__(
        self, p: int = 1, margin: float = 1.0, weight: Tensor | None = None, *, reduction: str = "mean"
    ) -> None:
        super().__init__(reduction=reduction)
        if p not in (1, 2):
            raise ValueError("only p == 1 and p == 2 supported")
        self.register_buffer("weight", weight)
        self.p, self.margin = p, margin

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Return the loss."""
        return functional.multi_margin_loss(input, target, self.p, self.margin, self.weight, reduction=self.reduction)


class PoissonNLLLoss(_Loss):
    """Minus the log-likelihood of counts under a Poisson distribution; see `functional.poisson_nll_loss`."""

    def __init__(
        self, log_input: bool = True, full: bool = False, eps: float = 1e-8, *, reduction: str = "mean"
    ) -> None:
        super().__init__(reduction=reduction)
        self.log_input, self.full, self.eps = log_input, full, eps

    def forward(self, log_input: Tensor, target: Tensor) -> Tensor:
        """Return the loss."""
        return functional.poisson_nll_loss(
            log_input, target, self.log_input, self.full, eps=self.eps, reduction=self.reduction
        )


class TripletMarginWithDistanceLoss(_Loss):
    """max(0, d(anchor, positive) - d(anchor, negative) + margin) for a distance d of the user's.

    Args:
        distance_function: d; the Euclidean distance unless given.
        margin: a number.
        swap: use d(positive, negative) where that is smaller than d(anchor, negative).
        reduction: "mean", "sum" or "none".
    """

    def __init__(
        self,
        *,
        distance_function: Callable[[Tensor, Tensor], Tensor] | None = None,
        margin: float = 1.0,
        swap: bool = False,
        reduction: str = "mean",
    ) -> None:
        super().__init__(reduction=reduction)
        self.distance_function, self.margin, self.swap = distance_function, margin, swap

    def forward(self, anchor: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
        """Return the loss."""
        return functional.triplet_margin_with_distance_loss(
            anchor, positive, negative, distance_function=self.distance_function, margin=self.margin, swap=self.swap,
            reduction=self.reduction,
        )  # fmt: skip


class EmbeddingBag(Module):
    """A table [num_embeddings, embedding_dim] whose rows are summed up in bags; see `functional.embedding_bag`."""

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        *,
        mode: str = "mean",
        include_last_offset: bool = False,
        padding_idx: int | None = None,
    ) -> None:
        super().__init__()
        self.num_embeddings, self.embedding_dim, self.mode = num_embeddings, embedding_dim, mode
        self.include_last_offset, self.padding_idx = include_last_offset, padding_idx
        table = randn(num_embeddings, embedding_dim)
        if padding_idx is not None:
            table[padding_idx] = 0
        self.weight = Parameter(table)

    def forward(self, input: Tensor, offsets: Tensor | None = None, per_sample_weights: Tensor | None = None) -> Tensor:
        """Return a row for each bag."""
        return functional.embedding_bag(
            input, self.weight, offsets, mode=self.mode, per_sample_weights=per_sample_weights,
            include_last_offset=self.include_last_offset, padding_idx=self.padding_idx,
        )  # fmt: skip

    def extra_repr(self) -> str:
        """Return the sizes and the mode."""
        text = f"{self.num_embeddings}, {self.embedding_dim}, mode={self.mode!r}"
        return text if self.padding_idx is None else f"{text}, padding_idx={self.padding_idx}"


class _MaxUnpool(Module):
    axes_count: int

    def __init__(self, kernel_size: Sizes, stride: Sizes | None = None, padding: Sizes = 0) -> None:
        super().__init__()
        count = self.axes_count
        self.kernel_size, self.padding = each(kernel_size, count), each(padding, count)
        self.stride = self.kernel_size if stride is None else each(stride, count)

    def forward(self, input: Tensor, indices: Tensor, output_size: Sequence[int] | None = None) -> Tensor:
        """Return the maxima at their places."""
        places = self.kernel_size, self.stride, self.padding
        return max_unpool(input, indices, *places, output_size, self.axes_count)

    def extra_repr(self) -> str:
        """Return the sizes."""
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class MaxUnpool1d(_MaxUnpool):
    """Zeros with the maxima of [N, C, L] put back where `MaxPool1d` took them."""

    axes_count = 1


class MaxUnpool2d(_MaxUnpool):
    """Zeros with the maxima of [N, C, H, W] put back where `MaxPool2d` took them."""

    axes_count = 2


class MaxUnpool3d(_MaxUnpool):
    """Zeros with the maxima of [N, C, D, H, W] put back where `MaxPool3d` took them."""

    axes_count = 3


class LocalResponseNorm(Module):
    """Normalisation over neighbouring channels; see `functional.local_response_norm`."""

    def __init__(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> None:
        super().__init__()
        self.size, self.alpha, self.beta, self.k = size, alpha, beta, k

    def forward(self, input: Tensor) -> Tensor:
        """Return the tensor normalised."""
        return functional.local_response_norm(input, self.size, self.alpha, self.beta, self.k)

    def extra_repr(self) -> str:
        """Return the numbers."""
        return f"{self.size}, alpha={self.alpha}, beta={self.beta}, k={self.k}"


class ChannelShuffle(Module):
    """The channels of the groups interleaved; see `functional.channel_shuffle`."""

    def __init__(self, groups: int) -> None:
        super().__init__()
        self.groups = groups

    def forward(self, input: Tensor) -> Tensor:
        """Return the tensor with its channels in another order."""
        return functional.channel_shuffle(input, self.groups)

    def extra_repr(self) -> str:
        """Return the number of groups."""
        return f"groups={self.groups}"


class UpsamplingNearest2d(Upsample):
    """[N, C, H, W] with every element repeated."""

    def __init__(self, size: Any = None, scale_factor: Any = None) -> None:
        super().__init__(size, scale_factor, mode="nearest")


class UpsamplingBilinear2d(Upsample):
    """[N, C, H, W] interpolated, with the corners aligned."""

    def __init__(self, size: Any = None, scale_factor: Any = None) -> None:
        super().__init__(size, scale_factor, mode="bilinear", align_corners=True)
