"""Layers that pool, pad, resample and drop."""

from __future__ import annotations

from typing import Any

from gradcli.engine.nn import functional
from gradcli.engine.nn.base.module import Module
from gradcli.engine.nn.functions.resampling import adaptive_avg_pool, adaptive_max_pool
from gradcli.engine.ops.convolution import Sizes, each
from gradcli.engine.tensor import Tensor


class MaxPool(Module):
    """The maximum of every window along the last `axes_count` axes; see `functional.max_pool2d`."""

    axes_count = 2

    def __init__(
        self,
        kernel_size: Sizes,
        stride: Sizes | None = None,
        padding: Sizes = 0,
        dilation: Sizes = 1,
        return_indices: bool = False,
        ceil_mode: bool = False,
    ) -> None:
        super().__init__()
        self.kernel_size, self.padding, self.dilation = kernel_size, padding, dilation
        self.stride = kernel_size if stride is None else stride
        self.return_indices, self.ceil_mode = return_indices, ceil_mode

    def forward(self, input: Tensor) -> Any:
        """Apply it."""
        pool = (functional.max_pool1d, functional.max_pool2d, functional.max_pool3d)[self.axes_count - 1]
        return pool(
            input, self.kernel_size, self.stride, self.padding, self.dilation, self.ceil_mode, self.return_indices
        )

    def extra_repr(self) -> str:
        """Return the sizes."""
        return (
            f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}, dilation={self.dilation}, "
            f"ceil_mode={self.ceil_mode}"
        )


class AvgPool(Module):
    """The mean of every window along the last `axes_count` axes; see `functional.avg_pool2d`."""

    axes_count = 2

    def __init__(
        self,
        kernel_size: Sizes,
        stride: Sizes | None = None,
        padding: Sizes = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> None:
        super().__init__()
        self.kernel_size, self.padding = kernel_size, padding
        self.stride = kernel_size if stride is None else stride
        self.ceil_mode, self.count_include_pad = ceil_mode, count_include_pad
        self.divisor_override = divisor_override

    def forward(self, input: Tensor) -> Tensor:
        """Apply it."""
        pool: Any = (functional.avg_pool1d, functional.avg_pool2d, functional.avg_pool3d)[self.axes_count - 1]
        more = () if self.axes_count == 1 else (self.divisor_override,)
        result: Tensor = pool(
            input, self.kernel_size, self.stride, self.padding, self.ceil_mode, self.count_include_pad, *more
        )
        return result

    def extra_repr(self) -> str:
        """Return the sizes."""
        sizes = (self.kernel_size, self.stride, self.padding)
        kernel, stride, padding = (each(size, 1) if self.axes_count == 1 else size for size in sizes)
        return f"kernel_size={kernel}, stride={stride}, padding={padding}"


class AdaptivePool(Module):
    """The mean, or the maximum, of each cell of a grid along the last `axes_count` axes.

    Args:
        output_size: the cells along each axis: a number for all, or one for each; None for the length of the axis.
    """

    axes_count = 2
    largest = False

    def __init__(self, output_size: Any) -> None:
        super().__init__()
        self.output_size = output_size

    def forward(self, input: Tensor) -> Tensor:
        """Apply it."""
        size = (
            self.output_size if isinstance(self.output_size, (tuple, list)) else (self.output_size,) * self.axes_count
        )
        if self.largest:
            return adaptive_max_pool(input, size, self.axes_count)
        return adaptive_avg_pool(input, size)

    def extra_repr(self) -> str:
        """Return the size."""
        return f"output_size={self.output_size}"


class LPPool1d(Module):
    """The p-norm of every window of [N, C, L].

    Args:
        norm_type: p.
        kernel_size: the sizes of a window.
        stride: the distance of neighbouring windows; kernel_size unless given.
        ceil_mode: use windows that reach beyond the end as well.
    """

    axes_count = 1

    def __init__(
        self, norm_type: float, kernel_size: Sizes, stride: Sizes | None = None, ceil_mode: bool = False
    ) -> None:
        super().__init__()
        self.norm_type, self.kernel_size, self.stride, self.ceil_mode = norm_type, kernel_size, stride, ceil_mode

    def forward(self, input: Tensor) -> Tensor:
        """Apply it."""
        pool = functional.lp_pool1d if self.axes_count == 1 else functional.lp_pool2d
        return pool(input, self.norm_type, self.kernel_size, self.stride, self.ceil_mode)

    def extra_repr(self) -> str:
        """Return the options."""
        return (
            f"norm_type={self.norm_type}, kernel_size={self.kernel_size}, stride={self.stride}, "
            f"ceil_mode={self.ceil_mode}"
        )


class LPPool2d(LPPool1d):
    """The p-norm of every window of [N, C, H, W]; see `LPPool1d`."""

    axes_count = 2


class Pad(Module):
    """Padding of the last `axes_count` axes.

    Args:
        padding: a number for all sides; or (before, after) of the last axis, then of the one before it...
    """

    axes_count = 2
    mode = "constant"

    def __init__(self, padding: Any) -> None:
        super().__init__()
        count = 2 * self.axes_count
        self.padding = (padding,) * count if isinstance(padding, int) else tuple(padding)

    def forward(self, input: Tensor) -> Tensor:
        """Apply it."""
        return functional.pad(input, self.padding, self.mode)

    def extra_repr(self) -> str:
        """Return the widths."""
        return f"{self.padding}"


class ConstantPad(Pad):
    """Padding with a constant."""

    def __init__(self, padding: Any, value: float) -> None:
        super().__init__(padding)
        self.value = value

    def forward(self, input: Tensor) -> Tensor:
        """Apply it."""
        return functional.pad(input, self.padding, "constant", self.value)

    def extra_repr(self) -> str:
        """Return the widths and the constant."""
        return f"padding={self.padding}, value={self.value}"


class Upsample(Module):
    """Resampling of [N, C, *sizes] to other sizes; see `functional.interpolate`.

    Args:
        size: the new *sizes; or else
        scale_factor: the factors from the old sizes to the new.
        mode: "nearest", "linear", "bilinear" or "trilinear".
        align_corners: align the centres of the first and last elements, not their outer edges.
    """

    def __init__(
        self, size: Any = None, scale_factor: Any = None, mode: str = "nearest", align_corners: bool | None = None
    ) -> None:
        super().__init__()
        self.size, self.mode, self.align_corners = size, mode, align_corners
        several = isinstance(scale_factor, (tuple, list))
        self.scale_factor = (
            None if scale_factor is None else tuple(map(float, scale_factor)) if several else float(scale_factor)
        )

    def forward(self, input: Tensor) -> Tensor:
        """Apply it."""
        return functional.interpolate(input, self.size, self.scale_factor, self.mode, self.align_corners)

    def extra_repr(self) -> str:
        """Return the options."""
        first = f"size={self.size}" if self.scale_factor is None else f"scale_factor={self.scale_factor!r}"
        return f"{first}, mode={self.mode!r}"


class _Windows(Module):
    """The options of `Unfold` and `Fold`."""

    def __init__(self, kernel_size: Sizes, dilation: Sizes = 1, padding: Sizes = 0, stride: Sizes = 1) -> None:
        super().__init__()
        self.kernel_size, self.dilation, self.padding, self.stride = kernel_size, dilation, padding, stride

    def extra_repr(self) -> str:
        """Return the sizes."""
        return f"kernel_size={self.kernel_size}, dilation={self.dilation}, padding={self.padding}, stride={self.stride}"


class Unfold(_Windows):
    """The windows of [N, C, H, W] as columns [N, C KH KW, windows]; see `functional.unfold`."""

    def forward(self, input: Tensor) -> Tensor:
        """Apply it."""
        return functional.unfold(input, self.kernel_size, self.dilation, self.padding, self.stride)


class Fold(_Windows):
    """Images [N, C, H, W] as the sum of windows [N, C KH KW, windows]: the adjoint of Unfold; see `functional.fold`.

    Args:
        output_size: H and W.
        kernel_size: KH and KW.
        dilation: the distance of neighbouring elements of a window.
        padding: the width of the border around the image that windows reach into.
        stride: the distance of neighbouring windows.
    """

    def __init__(
        self,
        output_size: Sizes,
        kernel_size: Sizes,
        dilation: Sizes = 1,
        padding: Sizes = 0,
        stride: Sizes = 1,
    ) -> None:
        super().__init__(kernel_size, dilation, padding, stride)
        self.output_size = output_size

    def forward(self, input: Tensor) -> Tensor:
        """Apply it."""
        return functional.fold(input, self.output_size, self.kernel_size, self.dilation, self.padding, self.stride)

    def extra_repr(self) -> str:
        """Return the sizes."""
        return f"output_size={self.output_size}, {super().extra_repr()}"


class _Drop(Module):
    """Dropout with probability p in training, and the identity in evaluation.

    Args:
        p: the probability, from 0 to 1; what is kept is scaled by 1 / (1 - p), except by `AlphaDropout`.
        inplace: write the result to the input.

    Raises:
        ValueError: p is not between 0 and 1.
    """

    def __init__(self, p: float = 0.5, inplace: bool = False) -> None:
        super().__init__()
        if not 0 <= p <= 1:
            raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
        self.p, self.inplace = p, inplace

    def extra_repr(self) -> str:
        """Return the options."""
        return f"p={self.p}, inplace={self.inplace}"


class Dropout(_Drop):
    """Drops elements with probability p while training."""

    def forward(self, input: Tensor) -> Tensor:
        """Apply it."""
        return functional.dropout(input, self.p, self.training, self.inplace)


class Dropout2d(_Drop):
    """Drops whole channels of [N, C, H, W] with probability p while training."""

    def forward(self, input: Tensor) -> Tensor:
        """Apply it."""
        return functional.dropout2d(input, self.p, self.training, self.inplace)


class Dropout1d(_Drop):
    """Drops whole channels of [N, C, L], or [C, L], with probability p while training."""

    def forward(self, input: Tensor) -> Tensor:
        """Apply it."""
        return functional.dropout1d(input, self.p, self.training, self.inplace)


class Dropout3d(_Drop):
    """Drops whole channels of [N, C, D, H, W], or [C, D, H, W], with probability p while training."""

    def forward(self, input: Tensor) -> Tensor:
        """Apply it."""
        return functional.dropout3d(input, self.p, self.training, self.inplace)


class AlphaDropout(_Drop):
    """Dropout that keeps mean 0 and variance 1, for networks with SELU; see `functional.alpha_dropout`."""

    def forward(self, input: Tensor) -> Tensor:
        """Apply it."""
        return functional.alpha_dropout(input, self.p, self.training, self.inplace)


class Softmax2d(Module):
    """The softmax over the channels of [N, C, H, W]."""

    def forward(self, input: Tensor) -> Tensor:
        """Apply it."""
        return functional.softmax(input, -3)


class CosineSimilarity(Module):
    """The cosine of the angle between tensors along an axis.

    Args:
        dim: the axis.
        eps: the smallest norm to divide by.
    """

    def __init__(self, dim: int = 1, eps: float = 1e-8) -> None:
        super().__init__()
        self.dim, self.eps = dim, eps

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        """Apply it."""
        return functional.cosine_similarity(x1, x2, self.dim, self.eps)


class PixelUnshuffle(Module):
    """[..., C r^2, H, W] from [..., C, H r, W r], r the factor; see `functional.pixel_unshuffle`.

    Args:
        downscale_factor: r.
    """

    def __init__(self, downscale_factor: int) -> None:
        super().__init__()
        self.downscale_factor = downscale_factor

    def forward(self, input: Tensor) -> Tensor:
        """Apply it."""
        return functional.pixel_unshuffle(input, self.downscale_factor)

    def extra_repr(self) -> str:
        """Return the factor."""
        return f"downscale_factor={self.downscale_factor}"
