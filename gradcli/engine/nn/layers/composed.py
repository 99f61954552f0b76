"""Activations, normalisations and losses as modules, around the functions of `functions.composed`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gradcli.engine.creation import ones
from gradcli.engine.nn.base.module import Module
from gradcli.engine.nn.functions import composed as functional
from gradcli.engine.nn.functions.shares import softmin
from gradcli.engine.nn.layers.losses import _Loss
from gradcli.engine.nn.parameter import Parameter
from gradcli.engine.ops.activation import tanhshrink
from gradcli.engine.tensor import Tensor


class _Applied(Module):
    """A module that applies a function with the options that it stores."""

    _options: tuple[str, ...] = ()
    _function: Callable[..., Tensor]

    def forward(self, input: Tensor) -> Tensor:
        """Apply it."""
        return type(self)._function(input, *[getattr(self, name) for name in self._options])

    def extra_repr(self) -> str:
        """Return the options."""
        return ", ".join(str(getattr(self, name)) for name in self._options)


class Threshold(_Applied):
    """x where x > threshold, else `value`."""

    _options = ("threshold", "value")
    _function = staticmethod(functional.threshold)

    def __init__(self, threshold: float, value: float) -> None:
        super().__init__()
        self.threshold, self.value = threshold, value

    def extra_repr(self) -> str:
        """Return the options."""
        return f"threshold={self.threshold}, value={self.value}"


class Hardshrink(_Applied):
    """x where |x| > lambd, else 0."""

    _options = ("lambd",)
    _function = staticmethod(functional.hardshrink)

    def __init__(self, lambd: float = 0.5) -> None:
        super().__init__()
        self.lambd = lambd


class Softshrink(Hardshrink):
    """x moved towards 0 by lambd, and 0 where |x| <= lambd."""

    _function = staticmethod(functional.softshrink)


class Hardsigmoid(_Applied):
    """x / 6 + 1 / 2, clamped to [0, 1]."""

    _function = staticmethod(functional.hardsigmoid)


class Hardswish(_Applied):
    """x hardsigmoid(x)."""

    _function = staticmethod(functional.hardswish)


class Tanhshrink(_Applied):
    """x - tanh(x)."""

    _function = staticmethod(tanhshrink)


class Softmin(_Applied):
    """softmax(-x) along an axis."""

    _options = ("dim",)
    _function = staticmethod(softmin)

    def __init__(self, dim: int | None = None) -> None:
        super().__init__()
        self.dim = dim

    def extra_repr(self) -> str:
        """Return the options."""
        return f"dim={self.dim}"


class RMSNorm(Module):
    """x / sqrt(mean(x^2) + eps) over the last axes, times a weight; see `functional.rms_norm`.

    Args:
        normalized_shape: the lengths of the last axes.
        eps: the machine epsilon of the element type unless given.
        elementwise_affine: learn a weight of this shape.
    """

    def __init__(self, normalized_shape: Any, eps: float | None = None, elementwise_affine: bool = True) -> None:
        super().__init__()
        self.normalized_shape = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
        self.eps, self.elementwise_affine = eps, elementwise_affine
        self.weight = Parameter(ones(*self.normalized_shape)) if elementwise_affine else None

    def extra_repr(self) -> str:
        """Return the options."""
        return f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}"

    def forward(self, input: Tensor) -> Tensor:
        """Normalise it."""
        return functional.rms_norm(input, self.normalized_shape, self.weight, self.eps)


class PairwiseDistance(Module):
    """The p-norm of x1 - x2 + eps along the last axis."""

    def __init__(self, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> None:
        super().__init__()
        self.norm, self.eps, self.keepdim = p, eps, keepdim

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        """Return the distances."""
        return functional.pairwise_distance(x1, x2, self.norm, self.eps, self.keepdim)


class SoftMarginLoss(_Loss):
    """log(1 + exp(-target * input)), for targets 1 and -1."""

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Return the loss."""
        return functional.soft_margin_loss(input, target, reduction=self.reduction)


class _MarginLoss(_Loss):
    def __init__(self, margin: float, reduction: str) -> None:
        super().__init__(reduction=reduction)
        self.margin = margin


class MarginRankingLoss(_MarginLoss):
    """max(0, margin - target * (input1 - input2)), for targets 1 (input1 should be larger) and -1."""

    def __init__(self, margin: float = 0.0, reduction: str = "mean") -> None:
        super().__init__(margin, reduction)

    def forward(self, input1: Tensor, input2: Tensor, target: Tensor) -> Tensor:
        """Return the loss."""
        return functional.margin_ranking_loss(input1, input2, target, self.margin, reduction=self.reduction)


class CosineEmbeddingLoss(MarginRankingLoss):
    """1 - cos(input1, input2) for target 1, max(0, cos - margin) for target -1."""

    def forward(self, input1: Tensor, input2: Tensor, target: Tensor) -> Tensor:
        """Return the loss."""
        return functional.cosine_embedding_loss(input1, input2, target, self.margin, reduction=self.reduction)


class HingeEmbeddingLoss(_MarginLoss):
    """input (a distance) for target 1, max(0, margin - input) for target -1."""

    def __init__(self, margin: float = 1.0, reduction: str = "mean") -> None:
        super().__init__(margin, reduction)

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Return the loss."""
        return functional.hinge_embedding_loss(input, target, self.margin, reduction=self.reduction)


class TripletMarginLoss(_MarginLoss):
    """max(0, d(anchor, positive) - d(anchor, negative) + margin); see `functional.triplet_margin_loss`."""

    def __init__(
        self, margin: float = 1.0, p: float = 2.0, eps: float = 1e-6, swap: bool = False, reduction: str = "mean"
    ) -> None:
        super().__init__(margin, reduction)
        self.p, self.eps, self.swap = p, eps, swap

    def forward(self, anchor: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
        """Return the loss."""
        return functional.triplet_margin_loss(
            anchor, positive, negative, self.margin, self.p, self.eps, self.swap, reduction=self.reduction
        )


class GaussianNLLLoss(_Loss):
    """The negative log-likelihood of normal distributions; see `functional.gaussian_nll_loss`."""

    def __init__(self, *, full: bool = False, eps: float = 1e-6, reduction: str = "mean") -> None:
        super().__init__(reduction=reduction)
        self.full, self.eps = full, eps

    def forward(self, input: Tensor, target: Tensor, var: Any) -> Tensor:
        """Return the loss."""
        return functional.gaussian_nll_loss(input, target, var, self.full, self.eps, reduction=self.reduction)
