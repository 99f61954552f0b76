"""Linear layers, normalisations, embeddings, and layers that reshape."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from gradcli.engine.creation import empty, ones, randn, zeros
from gradcli.engine.dtypes import int64
from gradcli.engine.nn import functional, init
from gradcli.engine.nn.base.module import Module
from gradcli.engine.nn.parameter import Parameter
from gradcli.engine.ops.convolution import each
from gradcli.engine.tensor import Tensor


class Linear(Module):
    """x W^T + b: [..., in_features] gives [..., out_features].

    Args:
        in_features: the length of the last axis.
        out_features: its length in the result.
        bias: add b.
        device: must be the CPU.
        dtype: the element type of the parameters.
    """

    def __init__(
        self, in_features: int, out_features: int, bias: bool = True, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__()
        self.in_features, self.out_features = in_features, out_features
        self.weight = Parameter(empty(out_features, in_features, device=device, dtype=dtype))
        self.register_parameter("bias", Parameter(empty(out_features, dtype=dtype)) if bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw new starting values."""
        init.start_linear(self.weight, self.bias, self.in_features)

    def forward(self, input: Tensor) -> Tensor:
        """Apply it."""
        return functional.linear(input, self.weight, self.bias)

    def extra_repr(self) -> str:
        """Return the sizes."""
        return f"in_features={self.in_features}, out_features={self.out_features}, bias={self.bias is not None}"


class Bilinear(Module):
    """y_k = x1^T W_k x2 + b_k for k up to out_features."""

    def __init__(self, in1_features: int, in2_features: int, out_features: int, bias: bool = True) -> None:
        super().__init__()
        self.in1_features, self.in2_features, self.out_features = in1_features, in2_features, out_features
        self.weight = Parameter(empty(out_features, in1_features, in2_features))
        self.register_parameter("bias", Parameter(empty(out_features)) if bias else None)
        bound = 1 / math.sqrt(in1_features)
        for parameter in self.parameters():
            init.uniform_(parameter, -bound, bound)

    def forward(self, input1: Tensor, input2: Tensor) -> Tensor:
        """Apply it."""
        return functional.bilinear(input1, input2, self.weight, self.bias)

    def extra_repr(self) -> str:
        """Return the sizes."""
        return (
            f"in1_features={self.in1_features}, in2_features={self.in2_features}, "
            f"out_features={self.out_features}, bias={self.bias is not None}"
        )


class _BatchNorm(Module):
    """Normalisation over all axes but the second; see `functional.batch_norm`.

    Args:
        num_features: C, the length of the second axis.
        eps: added to the variance.
        momentum: the weight of a new batch in the running statistics; None for the average of all batches.
        affine: learn C factors and C summands.
        track_running_stats: keep running statistics, and use them in evaluation; else those of the batch are used.
    """

    dimensions: tuple[int, ...] = (2, 3)

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
    ) -> None:
        super().__init__()
        self.num_features, self.eps, self.momentum = num_features, eps, momentum
        self.affine, self.track_running_stats = affine, track_running_stats
        self.register_parameter("weight", Parameter(ones(num_features)) if affine else None)
        self.register_parameter("bias", Parameter(zeros(num_features)) if affine else None)
        self.register_buffer("running_mean", zeros(num_features) if track_running_stats else None)
        self.register_buffer("running_var", ones(num_features) if track_running_stats else None)
        self.register_buffer("num_batches_tracked", zeros((), dtype=int64) if track_running_stats else None)

    def _check(self, input: Tensor) -> None:
        if input._data.ndim not in self.dimensions:
            wanted = " or ".join(f"{count}D" for count in self.dimensions)
            raise ValueError(f"expected {wanted} input (got {input._data.ndim}D input)")

    def reset_running_stats(self) -> None:
        """Start the running statistics again."""
        if self.num_batches_tracked is not None:
            self.running_mean.zero_()
            self.running_var.fill_(1)
            self.num_batches_tracked.zero_()

    def forward(self, input: Tensor) -> Tensor:
        """Apply it."""
        self._check(input)
        share = 0.0 if self.momentum is None else self.momentum
        if self.training and self.num_batches_tracked is not None:
            self.num_batches_tracked.add_(1)
            if self.momentum is None:
                share = 1 / float(self.num_batches_tracked)
        batch = self.training or self.running_mean is None
        return functional.batch_norm(
            input, self.running_mean, self.running_var, self.weight, self.bias, batch, share, self.eps
        )

    def extra_repr(self) -> str:
        """Return the options."""
        return (
            f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, affine={self.affine}, "
            f"bias={self.bias is not None}, track_running_stats={self.track_running_stats}"
        )


class BatchNorm1d(_BatchNorm):
    """Batch normalisation of [N, C] or [N, C, L] (Ioffe and Szegedy, arXiv 1502.03167)."""


class BatchNorm2d(_BatchNorm):
    """Batch normalisation of [N, C, H, W] (Ioffe and Szegedy, arXiv 1502.03167)."""

    dimensions = (4,)


class BatchNorm3d(_BatchNorm):
    """Batch normalisation of [N, C, D, H, W] (Ioffe and Szegedy, arXiv 1502.03167)."""

    dimensions = (5,)


class _InstanceNorm(_BatchNorm):
    """Normalisation of each channel of each example, with or without N; running statistics are not supported."""

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float = 0.1,
        affine: bool = False,
        track_running_stats: bool = False,
    ) -> None:
        if track_running_stats:
            raise NotImplementedError(
                f"{type(self).__name__}: track_running_stats=True is not supported by gradcli.engine"
            )
        super().__init__(num_features, eps, momentum, affine, track_running_stats)

    def forward(self, input: Tensor) -> Tensor:
        """Apply it."""
        self._check(input)
        if input._data.ndim == self.dimensions[0]:
            return self.forward(input.unsqueeze(0)).squeeze(0)
        return functional.instance_norm(input, weight=self.weight, bias=self.bias, eps=self.eps)


class InstanceNorm1d(_InstanceNorm):
    """Instance normalisation of [N, C, L] (Ulyanov et al., arXiv 1607.08022)."""

    dimensions = (2, 3)


class InstanceNorm2d(_InstanceNorm):
    """Instance normalisation of [N, C, H, W] (Ulyanov et al., arXiv 1607.08022)."""

    dimensions = (3, 4)


class InstanceNorm3d(_InstanceNorm):
    """Instance normalisation of [N, C, D, H, W] (Ulyanov et al., arXiv 1607.08022)."""

    dimensions = (4, 5)


class LayerNorm(Module):
    """Normalisation over the last axes (Ba et al., arXiv 1607.06450); see `functional.layer_norm`."""

    def __init__(
        self,
        normalized_shape: int | Sequence[int],
        eps: float = 1e-5,
        elementwise_affine: bool = True,
        bias: bool = True,
    ) -> None:
        super().__init__()
        self.normalized_shape = (
            each(normalized_shape, 1) if isinstance(normalized_shape, int) else tuple(normalized_shape)
        )
        self.eps, self.elementwise_affine = eps, elementwise_affine
        self.register_parameter("weight", Parameter(ones(self.normalized_shape)) if elementwise_affine else None)
        with_bias = elementwise_affine and bias
        self.register_parameter("bias", Parameter(zeros(self.normalized_shape)) if with_bias else None)

    def forward(self, input: Tensor) -> Tensor:
        """Apply it."""
        return functional.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        """Return the options."""
        return (
            f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}, "
            f"bias={self.bias is not None}"
        )


class GroupNorm(Module):
    """Normalisation over groups of channels (Wu and He, arXiv 1803.08494); see `functional.group_norm`.

    Raises:
        ValueError: num_channels is not divisible by num_groups.
    """

    def __init__(self, num_groups: int, num_channels: int, eps: float = 1e-5, affine: bool = True) -> None:
        super().__init__()
        if num_channels % num_groups:
            raise ValueError(f"num_channels ({num_channels}) must be divisible by num_groups ({num_groups})")
        self.num_groups, self.num_channels, self.eps, self.affine = num_groups, num_channels, eps, affine
        self.register_parameter("weight", Parameter(ones(num_channels)) if affine else None)
        self.register_parameter("bias", Parameter(zeros(num_channels)) if affine else None)

    def forward(self, input: Tensor) -> Tensor:
        """Apply it."""
        return functional.group_norm(input, self.num_groups, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        """Return the options."""
        return (
            f"{self.num_groups}, {self.num_channels}, eps={self.eps}, affine={self.affine}, "
            f"bias={self.bias is not None}"
        )


class Embedding(Module):
    """A table [num_embeddings, embedding_dim]; an index [*] gives [*, embedding_dim]; see `functional.embedding`."""

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        sparse: bool = False,
    ) -> None:
        super().__init__()
        self.max_norm, self.norm_type, self.scale_grad_by_freq = max_norm, norm_type, scale_grad_by_freq
        self.sparse = sparse  # has no effect: gradients are dense
        if padding_idx is not None and not -num_embeddings <= padding_idx < num_embeddings:
            raise AssertionError("Padding_idx must be within num_embeddings")
        self.num_embeddings, self.embedding_dim, self.padding_idx = num_embeddings, embedding_dim, padding_idx
        table = randn(num_embeddings, embedding_dim)
        if padding_idx is not None:
            table[padding_idx] = 0
        self.weight = Parameter(table)

    @classmethod
    def from_pretrained(cls, embeddings: Tensor, freeze: bool = True, padding_idx: int | None = None) -> Embedding:
        """Return an embedding with these rows [rows, D]; they are trained only if `freeze` is False."""
        rows, columns = embeddings.shape
        table = cls(rows, columns, padding_idx)
        table.weight = Parameter(embeddings, requires_grad=not freeze)
        return table

    def forward(self, input: Tensor) -> Tensor:
        """Return the rows at the index."""
        return functional.embedding(
            input, self.weight, self.padding_idx, self.max_norm, self.norm_type, self.scale_grad_by_freq
        )

    def extra_repr(self) -> str:
        """Return the sizes."""
        text = f"{self.num_embeddings}, {self.embedding_dim}"
        if self.padding_idx is not None:
            text += f", padding_idx={self.padding_idx}"
        if self.max_norm is not None:
            text += f", max_norm={self.max_norm}"
        if self.norm_type != 2:
            text += f", norm_type={self.norm_type}"
        return text + (f", scale_grad_by_freq={self.scale_grad_by_freq}" if self.scale_grad_by_freq else "")


class Flatten(Module):
    """Merges the axes from start_dim to end_dim into one."""

    def __init__(self, start_dim: int = 1, end_dim: int = -1) -> None:
        super().__init__()
        self.start_dim, self.end_dim = start_dim, end_dim

    def forward(self, input: Tensor) -> Tensor:
        """Apply it."""
        return input.flatten(self.start_dim, self.end_dim)

    def extra_repr(self) -> str:
        """Return the range."""
        return f"start_dim={self.start_dim}, end_dim={self.end_dim}"


class Unflatten(Module):
    """Splits one axis into several."""

    def __init__(self, dim: int, unflattened_size: Sequence[int]) -> None:
        super().__init__()
        self.dim, self.unflattened_size = dim, tuple(unflattened_size)

    def forward(self, input: Tensor) -> Tensor:
        """Apply it."""
        return input.unflatten(self.dim, self.unflattened_size)

    def extra_repr(self) -> str:
        """Return the sizes."""
        return f"dim={self.dim}, unflattened_size={self.unflattened_size}"


class PixelShuffle(Module):
    """[..., C, H r, W r] from [..., C r^2, H, W], r the factor; see `functional.pixel_shuffle`."""

    def __init__(self, upscale_factor: int) -> None:
        super().__init__()
        self.upscale_factor = upscale_factor

    def forward(self, input: Tensor) -> Tensor:
        """Apply it."""
        return functional.pixel_shuffle(input, self.upscale_factor)

    def extra_repr(self) -> str:
        """Return the factor."""
        return f"upscale_factor={self.upscale_factor}"
