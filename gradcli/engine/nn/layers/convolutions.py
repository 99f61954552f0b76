"""Convolutions and transposed convolutions."""

from __future__ import annotations

import math
from typing import Any

from gradcli.engine.creation import empty
from gradcli.engine.nn import functional
from gradcli.engine.nn.base.module import Module
from gradcli.engine.nn.init import start_linear
from gradcli.engine.nn.parameter import Parameter
from gradcli.engine.ops.convolution import Sizes, each
from gradcli.engine.tensor import Tensor


class _Conv(Module):
    """A cross-correlation over the last `axes_count` axes; see `ops.convolution.convolution`.

    Args:
        in_channels: C, the length of the second axis.
        out_channels: its length in the result.
        kernel_size: the size of a window: a number for all axes, or one for each.
        stride: the distance of neighbouring windows.
        padding: the width of the padding on both sides; or "valid" for none, "same" for results of the input's size.
        dilation: the distance of neighbouring elements of a window.
        groups: the channels are split into this many groups, which are convolved separately.
        bias: add one learned number for each output channel.
        padding_mode: "zeros", "reflect", "replicate" or "circular".
        device: must be the CPU.
        dtype: the element type of the parameters.

    Raises:
        ValueError: there is no such padding or padding mode, or the channels cannot be split into the groups.
    """

    axes_count = 2
    transposed = False

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Sizes,
        stride: Sizes = 1,
        padding: Any = 0,
        dilation: Sizes = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        _require_groups(in_channels, out_channels, groups)
        _require_padding(padding, stride, padding_mode)
        self.padding_mode = padding_mode
        n = self.axes_count
        self.in_channels, self.out_channels, self.groups = in_channels, out_channels, groups
        self.kernel_size, self.stride, self.dilation = each(kernel_size, n), each(stride, n), each(dilation, n)
        self.padding = padding if isinstance(padding, str) else each(padding, n)
        first, second = (in_channels, out_channels) if self.transposed else (out_channels, in_channels)
        self.weight = Parameter(empty(first, second // groups, *self.kernel_size, device=device, dtype=dtype))
        self.register_parameter("bias", Parameter(empty(out_channels, dtype=dtype)) if bias else None)
        start_linear(self.weight, self.bias, self.weight._data.shape[1] * math.prod(self.kernel_size))

    def forward(self, input: Tensor) -> Tensor:
        """Apply it."""
        image: Tensor = input
        padding: Any = self.padding
        if self.padding_mode != "zeros":
            image = functional.pad(input, self._widths(), self.padding_mode)
            padding = 0
        return functional.conv2d(image, self.weight, self.bias, self.stride, padding, self.dilation, self.groups)

    def _widths(self) -> tuple[int, ...]:
        """Return the padding as `functional.pad` takes it."""
        if self.padding == "valid":
            return (0,) * (2 * self.axes_count)
        if isinstance(self.padding, str):
            whole = [d * (k - 1) for d, k in zip(self.dilation, self.kernel_size, strict=True)]
            return tuple(width for total in reversed(whole) for width in (total // 2, total - total // 2))
        return tuple(width for size in reversed(self.padding) for width in (size, size))

    def extra_repr(self) -> str:
        """Return the options that are not the default."""
        n = self.axes_count
        text = f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, stride={self.stride}"
        if self.padding != (0,) * n:
            text += f", padding={self.padding}"
        if self.dilation != (1,) * n:
            text += f", dilation={self.dilation}"
        if self.groups != 1:
            text += f", groups={self.groups}"
        if any(getattr(self, "output_padding", ())):
            text += f", output_padding={self.output_padding}"
        text = text if self.bias is not None else text + ", bias=False"
        return text if self.padding_mode == "zeros" else text + f", padding_mode={self.padding_mode}"


def _require_groups(in_channels: int, out_channels: int, groups: int) -> None:
    """Raise ValueError unless both numbers of channels can be split into the groups."""
    if groups <= 0:
        raise ValueError("groups must be a positive integer")
    if in_channels % groups:
        raise ValueError("in_channels must be divisible by groups")
    if out_channels % groups:
        raise ValueError("out_channels must be divisible by groups")


def _require_padding(padding: Any, stride: Sizes, mode: str) -> None:
    """Raise ValueError for a word that means no padding, or no mode of it."""
    if isinstance(padding, str):
        if padding not in ("same", "valid"):
            raise ValueError(f"Invalid padding string {padding!r}, should be one of {{'valid', 'same'}}")
        if padding == "same" and any(step != 1 for step in each(stride, 1)):
            raise ValueError("padding='same' is not supported for strided convolutions")
    if mode not in ("zeros", "reflect", "replicate", "circular"):
        raise ValueError(
            "padding_mode must be one of {'zeros', 'reflect', 'replicate', 'circular'}, but got "
            f"padding_mode={mode!r}"
        )


class Conv1d(_Conv):
    """A cross-correlation of [N, C, L]."""

    axes_count = 1


class Conv2d(_Conv):
    """A cross-correlation of [N, C, H, W]."""


class Conv3d(_Conv):
    """A cross-correlation of [N, C, D, H, W]."""

    axes_count = 3


class _ConvTranspose(_Conv):
    """A transposed convolution, the adjoint of a convolution; see `ops.convolution.conv_transpose`."""

    transposed = True

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Sizes,
        stride: Sizes = 1,
        padding: Sizes = 0,
        output_padding: Sizes = 0,
        groups: int = 1,
        bias: bool = True,
        dilation: Sizes = 1,
    ) -> None:
        super().__init__(in_channels, out_channels, kernel_size, stride, padding, dilation, groups, bias)
        self.output_padding, self.cut = each(output_padding, self.axes_count), each(padding, self.axes_count)

    def forward(self, input: Tensor) -> Tensor:
        """Apply it."""
        return functional.conv_transpose2d(
            input, self.weight, self.bias, self.stride, self.cut, self.output_padding, self.groups, self.dilation
        )


class ConvTranspose1d(_ConvTranspose):
    """A transposed convolution of [N, C, L]."""

    axes_count = 1


class ConvTranspose2d(_ConvTranspose):
    """A transposed convolution of [N, C, H, W]."""


class ConvTranspose3d(_ConvTranspose):
    """A transposed convolution of [N, C, D, H, W]."""

    axes_count = 3
