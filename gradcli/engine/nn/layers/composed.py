"""Activations, normalisations and losses as modules, around the functions of `functions.composed`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gradcli.engine.creation import ones
from gradcli.engine.nn.base.module import Module
from gradcli.engine.nn.functions import composed as functional
from gradcli.engine.nn.layers.losses import _Loss
from gradcli.engine.nn.parameter import Parameter
from gradcli.engine.ops.activation import softmin, tanhshrink
from gradcli.engine.tensor import Tensor


class _Applied(Module):
    """A function with fixed options."""

    _options: tuple[str, ...] = ()
    _function: Callable[..., Tensor]

    def forward(self, input: Tensor) -> Tensor:
        """Apply it."""
        return type(self)._function(input, *[getattr(self, name) for name in self._options])

    def extra_repr(self) -> str:
        """Return the options."""
        return ", ".join(str(getattr(self, name)) for name in self._options)


class Threshold(_Applied):
    """x where it is above a threshold, else a value."""

    _options = ("threshold", "value")
    _function = staticmethod(functional.threshold)

    def __init__(self, threshold: float, value: float) -> None:
        super().__init__()
        self.threshold, self.value = threshold, value


class Hardshrink(_Applied):
    """x, 0 near 0."""

    _options = ("lambd",)
    _function = staticmethod(functional.hardshrink)

    def __init__(self, lambd: float = 0.5) -> None:
        super().__init__()
        self.lambd = lambd


class Softshrink(Hardshrink):
    """x moved towards 0."""

    _function = staticmethod(functional.softshrink)


class Hardsigmoid(_Applied):
    """x / 6 + 1 / 2 between 0 and 1."""

    _function = staticmethod(functional.hardsigmoid)


class Hardswish(_Applied):
    """x times its hard sigmoid."""

    _function = staticmethod(functional.hardswish)


class Tanhshrink(_Applied):
    """x - tanh(x)."""

    _function = staticmethod(tanhshrink)


class Softmin(_Applied):
    """The softmax of -x."""

    _options = ("dim",)
    _function = staticmethod(softmin)

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.dim = dim


class RMSNorm(Module):
    """x over its root mean square, times a weight.

    Args:
        normalized_shape: the last axes.
        eps: what is added to the mean square; the machine precision unless given.
        elementwise_affine: learn a weight.
    """

    def __init__(self, normalized_shape: Any, eps: float | None = None, elementwise_affine: bool = True) -> None:
        super().__init__()
        self.normalized_shape = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
        self.eps = eps
        self.weight = Parameter(ones(*self.normalized_shape)) if elementwise_affine else None

    def forward(self, input: Tensor) -> Tensor:
        """Normalise it."""
        return functional.rms_norm(input, self.normalized_shape, self.weight, self.eps)


class PairwiseDistance(Module):
    """The p-norm of differences along the last axis."""

    def __init__(self, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> None:
        super().__init__()
        self.norm, self.eps, self.keepdim = p, eps, keepdim

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        """Return the distances."""
        return functional.pairwise_distance(x1, x2, self.norm, self.eps, self.keepdim)


class SoftMarginLoss(_Loss):
    """The logistic loss of targets 1 and -1."""

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Return the loss."""
        return functional.soft_margin_loss(input, target, reduction=self.reduction)


class _MarginLoss(_Loss):
    def __init__(self, margin: float, reduction: str) -> None:
        super().__init__(reduction=reduction)
        self.margin = margin


class MarginRankingLoss(_MarginLoss):
    """How far the order of two inputs is from the target's."""

    def __init__(self, margin: float = 0.0, reduction: str = "mean") -> None:
        super().__init__(margin, reduction)

    def forward(self, input1: Tensor, input2: Tensor, target: Tensor) -> Tensor:
        """Return the loss."""
        return functional.margin_ranking_loss(input1, input2, target, self.margin, reduction=self.reduction)


class CosineEmbeddingLoss(MarginRankingLoss):
    """How far the angle of two inputs is from the target's."""

    def forward(self, input1: Tensor, input2: Tensor, target: Tensor) -> Tensor:
        """Return the loss."""
        return functional.cosine_embedding_loss(input1, input2, target, self.margin, reduction=self.reduction)


class HingeEmbeddingLoss(_MarginLoss):
    """The distance of like pairs, and how far unlike ones are from a margin."""

    def __init__(self, margin: float = 1.0, reduction: str = "mean") -> None:
        super().__init__(margin, reduction)

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Return the loss."""
        return functional.hinge_embedding_loss(input, target, self.margin, reduction=self.reduction)


class TripletMarginLoss(_MarginLoss):
    """How much nearer the positive is to the anchor than the negative, up to a margin."""

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
    """Minus the log-likelihood under a normal distribution."""

    def __init__(self, *, full: bool = False, eps: float = 1e-6, reduction: str = "mean") -> None:
        super().__init__(reduction=reduction)
        self.full, self.eps = full, eps

    def forward(self, input: Tensor, target: Tensor, var: Any) -> Tensor:
        """Return the loss."""
        return functional.gaussian_nll_loss(input, target, var, self.full, self.eps, reduction=self.reduction)
