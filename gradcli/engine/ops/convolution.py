"""Convolution by im2col: windows of the input, as a matrix, times the weights.

Taking windows is linear, and so is its adjoint, col2im, which adds windows to where they were taken from.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from gradcli.engine.dtypes import Array
from gradcli.engine.graph import Node
from gradcli.engine.ops.constant import constant_in, passed
from gradcli.engine.recording import record
from gradcli.engine.tensor import Tensor

Sizes = int | Sequence[int]


def each(value: Sizes, count: int) -> tuple[int, ...]:
    """Return one number for each of `count` axes: the same for all, or those of a sequence."""
    return (int(value),) * count if isinstance(value, (int, np.integer)) else tuple(map(operator.index, value))


def _windows(padded: Array, kernel: tuple[int, ...], stride: tuple[int, ...], dilation: tuple[int, ...]) -> Array:
    """Return a view [N, C, *outputs, *kernel] of a padded array [N, C, *sizes]."""
    n = len(kernel)
    spread = tuple((k - 1) * d + 1 for k, d in zip(kernel, dilation, strict=True))
    if any(size < window for size, window in zip(padded.shape[2:], spread, strict=True)):
        raise RuntimeError(
            f"Calculated padded input size per channel: ({' x '.join(map(str, padded.shape[2:]))}). Kernel size: "
            f"({' x '.join(map(str, spread))}). Kernel size can't be greater than actual input size"
        )
    view = np.lib.stride_tricks.sliding_window_view(padded, spread, axis=tuple(range(2, 2 + n)), writeable=True)
    steps = tuple(slice(None, None, s) for s in stride) + tuple(slice(None, None, d) for d in dilation)
    return view[(slice(None), slice(None), *steps)]


class Windows:
    """Where the windows of a padded array [N, C, *sizes] lie: one number of kernel, stride and dilation for each size.

    Args:
        shape: the shape of the padded array.
        kernel: the elements of a window along each axis.
        stride: the distance of neighbouring windows.
        dilation: the distance of neighbouring elements of a window.
    """

    __slots__ = ("dilation", "kernel", "shape", "stride")

    def __init__(
        self, shape: tuple[int, ...], kernel: tuple[int, ...], stride: tuple[int, ...], dilation: tuple[int, ...]
    ) -> None:
        self.shape, self.kernel, self.stride, self.dilation = shape, kernel, stride, dilation

    def take(self, array: Array) -> Array:
        """Return a copy of the windows [N, C, *outputs, *kernel] of a padded array."""
        return np.ascontiguousarray(_windows(array, self.kernel, self.stride, self.dilation))

    def put(self, windows: Array) -> Array:
        """Return zeros of the padded shape with the windows added to where `take` takes them from."""
        whole = np.zeros(self.shape, dtype=windows.dtype)
        n = len(self.kernel)
        outputs = windows.shape[2 : 2 + n]
        for offset in np.ndindex(*self.kernel):
            spots = tuple(
                slice(o * d, o * d + s * (size - 1) + 1, s)
                for o, d, s, size in zip(offset, self.dilation, self.stride, outputs, strict=True)
            )
            whole[(slice(None), slice(None), *spots)] += windows[(..., *offset)]
        return whole


class Im2ColBackward0(Node):
    """Windows are added where they overlap."""

    windows: Windows

    def _vjp(self, g: Tensor) -> Any:
        return _col2im(g, self.windows)


class Col2ImBackward0(Node):
    """The windows of the cotangent."""

    windows: Windows

    def _vjp(self, g: Tensor) -> Any:
        return _im2col(g, self.windows)


class ConvolutionBackward0(Node):
    """The gradients of input, weight and bias; see `convolution_gradients`."""

    _saved_names = ("input", "weight")
    options: dict[str, Any]

    def _vjp(self, g: Tensor) -> Any:
        x, w = self._unpack()
        return convolution_gradients(self, g, x, w)


class ConstantPadNdBackward0(Node):
    """The padding of the cotangent is cut off."""

    pads: tuple[int, ...]

    def _vjp(self, g: Tensor) -> Any:
        return pad_zeros(g, tuple(-entry for entry in self.pads))


def _im2col(padded: Tensor, windows: Windows) -> Tensor:
    return record(Im2ColBackward0, windows.take(padded._data), (padded,), windows=windows)


def _col2im(values: Tensor, windows: Windows) -> Tensor:
    return record(Col2ImBackward0, windows.put(values._data), (values,), windows=windows)


def pad_zeros(input: Tensor, pads: tuple[int, ...], value: float = 0) -> Tensor:
    """Return the tensor padded with a constant.

    Args:
        input: the tensor.
        pads: (before, after) of the last axis, then of the one before it...; negative numbers cut elements off.
        value: the constant.
    """
    ndim = input._data.ndim
    widths = [(0, 0)] * ndim
    for place in range(len(pads) // 2):
        widths[ndim - 1 - place] = (pads[2 * place], pads[2 * place + 1])
    if any(size + min(a, 0) + min(b, 0) < 0 for size, (a, b) in zip(input._data.shape, widths, strict=True)):
        raise RuntimeError(f"narrow(): length must be non-negative: padding {list(pads)} cuts off more than there is.")
    cut = tuple(slice(max(-a, 0), size - max(-b, 0)) for (a, b), size in zip(widths, input._data.shape, strict=True))
    grown = np.pad(input._data[cut], [(max(a, 0), max(b, 0)) for a, b in widths], constant_values=value)
    return record(ConstantPadNdBackward0, grown, (input,), pads=pads)


def _product(cols: Tensor, weight: Tensor, groups: int) -> Tensor:
    """Return [N, O, *outputs] from windows [N, C, *outputs, *kernel] and weights [O, C / groups, *kernel]."""
    n = weight._data.ndim - 2
    batch, channels = cols._data.shape[:2]
    outputs, kernel = cols._data.shape[2 : 2 + n], weight._data.shape[2:]
    depth = math.prod(kernel) * (channels // groups)
    spots = math.prod(outputs)
    order = [0, 1, *range(2 + n, 2 + 2 * n), *range(2, 2 + n)]
    flat = cols.permute(order).reshape(batch, groups, depth, spots)
    rows = weight.reshape(1, groups, weight._data.shape[0] // groups, depth)
    return rows.matmul(flat).reshape(batch, weight._data.shape[0], *outputs)


def _composed(x: Tensor, w: Tensor, options: dict[str, Any]) -> Tensor:
    """Return the convolution without bias, composed of im2col and a matrix product."""
    n = w._data.ndim - 2
    stride, padding, dilation = options["stride"], options["padding"], options["dilation"]
    pads = tuple(p for size in reversed(padding) for p in (size, size))
    padded = pad_zeros(x, pads) if any(pads) else x
    windows = Windows(padded._data.shape, w._data.shape[2 : 2 + n], stride, dilation)
    return _product(_im2col(padded, windows), w, options["groups"])


def convolution_gradients(node: Node, g: Tensor, x: Tensor, w: Tensor) -> tuple[Any, ...]:
    """Return the cotangents of input x, weight w and bias for the cotangent g.

    With cols = im2col(x), the output is w @ cols + bias. So the weight gets g @ cols^T, the input col2im(w^T @ g), and
    the bias the sum of g over all axes but the channels.
    """
    options: dict[str, Any] = node.options
    n, groups = w._data.ndim - 2, options["groups"]
    pads = tuple(p for size in reversed(options["padding"]) for p in (size, size))
    padded = pad_zeros(x, pads) if any(pads) else x
    kernel = w._data.shape[2:]
    windows = Windows(padded._data.shape, kernel, options["stride"], options["dilation"])
    batch, outputs = g._data.shape[0], g._data.shape[2:]
    depth, spots = math.prod(kernel) * w._data.shape[1], math.prod(outputs)
    per_group = w._data.shape[0] // groups
    flat_g = g.reshape(batch, groups, per_group, spots)
    by_x = by_w = by_b = None
    if node._needs(0):
        rows = w.reshape(1, groups, per_group, depth).transpose(-2, -1)
        cols = rows.matmul(flat_g).reshape(batch, padded._data.shape[1], *kernel, *outputs)
        cols = cols.permute([0, 1, *range(2 + n, 2 + 2 * n), *range(2, 2 + n)])
        by_padded = _col2im(cols, windows)
        by_x = pad_zeros(by_padded, tuple(-p for p in pads)) if any(pads) else by_padded
    if node._needs(1):
        order = [0, 1, *range(2 + n, 2 + 2 * n), *range(2, 2 + n)]
        cols = _im2col(padded, windows).permute(order).reshape(batch, groups, depth, spots)
        by_w = flat_g.matmul(cols.transpose(-2, -1)).sum(0).reshape(w._data.shape)
    if node._needs(2):
        by_b = constant_in(g.sum([0, *range(2, 2 + n)]), x, w, zeros=False)
    return by_x, by_w, by_b


def require_groups(weight: Tensor, groups: int) -> None:
    """Raise RuntimeError unless the first axis of the weights can be split into the groups."""
    if groups <= 0:
        raise RuntimeError("non-positive groups is not supported")
    if weight._data.shape[0] % groups:
        raise RuntimeError(
            f"Given groups={groups}, expected weight to be divisible by {groups} at dimension 0, but got weight of "
            f"size [{list(weight._data.shape)}] instead"
        )


def _require_fitting(input: Tensor, weight: Tensor, bias: Tensor | None, n: int, stride: Any, padding: Any) -> None:
    """Raise RuntimeError unless the input has n + 1 or n + 2 axes, and bias, stride and padding fit the weights."""
    if input._data.ndim not in (n + 1, n + 2):
        raise RuntimeError(
            f"Expected {n + 1}D (unbatched) or {n + 2}D (batched) input to conv{n}d, but got input of size: "
            f"{list(input._data.shape)}"
        )
    if bias is not None and bias._data.shape != weight._data.shape[:1]:
        raise RuntimeError(
            f"Given weight of size {list(weight._data.shape)}, expected bias to be 1-dimensional with "
            f"{weight._data.shape[0]} elements, but got bias of size {list(bias._data.shape)} instead"
        )
    for what, given in (("stride", stride), ("padding", padding)):
        found = (0,) * n if isinstance(given, str) else each(given, n)
        if len(found) not in (1, n):
            raise RuntimeError(
                f"expected {what} to be a single integer value or a list of {n} values to match the convolution "
                f"dimensions, but got {what}={list(found)}"
            )
        if what == "stride" and min(found) <= 0:
            raise RuntimeError("non-positive stride is not supported")
        if what == "padding" and min(found) < 0:
            raise RuntimeError("negative padding is not supported")


def convolution(
    input: Tensor, weight: Tensor, bias: Tensor | None, stride: Sizes, padding: Any, dilation: Sizes, groups: int
) -> Tensor:
    """Return the cross-correlation [N, O, *outputs] of [N, C, *sizes] with weights [O, C / groups, *kernel].

    Args:
        input: the input, also without N.
        weight: the weights.
        bias: O numbers to add, or None.
        stride: the distance of neighbouring windows.
        padding: zeros before and after each axis; "valid" for none, "same" for outputs of the size of the input.
        dilation: the distance of neighbouring elements of a window.
        groups: C and O are split into this many groups, which are convolved separately.

    Raises:
        RuntimeError: the channels of input and weight do not fit, a window is larger than the padded input, or padding
            is "same" and a stride is not 1.
    """
    n = weight._data.ndim - 2
    require_groups(weight, groups)
    _require_fitting(input, weight, bias, n, stride, padding)
    if input._data.dtype != weight._data.dtype and bias is None:
        raise RuntimeError(f"expected scalar type {input.dtype.letter} but found {weight.dtype.letter}")
    if bias is not None and input._data.dtype != bias._data.dtype:
        raise RuntimeError(f"Input type ({input.dtype.in_c}) and bias type ({bias.dtype.in_c}) should be the same")
    if input._data.ndim == n + 1:
        return convolution(input.unsqueeze(0), weight, bias, stride, padding, dilation, groups).squeeze(0)
    if input._data.shape[1] != weight._data.shape[1] * groups:
        raise RuntimeError(
            f"Given groups={groups}, weight of size {list(weight._data.shape)}, expected input"
            f"{list(input._data.shape)} to have {weight._data.shape[1] * groups} channels, but got "
            f"{input._data.shape[1]} channels instead"
        )
    spread = each(dilation, n)
    if padding == "same":
        if any(step != 1 for step in each(stride, n)):
            raise RuntimeError("padding='same' is not supported for strided convolutions")
        whole = [d * (k - 1) for d, k in zip(spread, weight._data.shape[2:], strict=True)]
        if any(total % 2 for total in whole):  # of an odd number of zeros, one more is put after the elements
            input = pad_zeros(input, tuple(w for total in reversed(whole) for w in (0, total % 2)))
        padding = [total // 2 for total in whole]
    options = {
        "stride": each(stride, n),
        "padding": each(0 if padding == "valid" else padding, n),
        "dilation": spread,
        "groups": groups,
    }
    array = _composed(input.detach(), weight.detach(), options)._data
    if bias is not None:
        array = array + bias._data.reshape(1, -1, *(1,) * n)
    return record(ConvolutionBackward0, array, (input, weight, bias), (input, weight), options=options)


def conv_transpose(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: Sizes,
    padding: Sizes,
    output_padding: Sizes,
    groups: int,
    dilation: Sizes = 1,
) -> Tensor:
    """Return the transposed convolution [N, O, *outputs] of [N, C, *sizes] with weights [C, O / groups, *kernel].

    It is the adjoint of the convolution with these weights, plus a bias: outputs are (size - 1) * stride - 2 * padding
    + dilation * (kernel - 1) + output_padding + 1.
    """
    n = weight._data.ndim - 2
    require_groups(weight, groups)
    if input._data.dtype != weight._data.dtype:
        raise RuntimeError(f"expected scalar type {input.dtype.letter} but found {weight.dtype.letter}")
    if input._data.ndim == n + 1:
        whole = conv_transpose(input.unsqueeze(0), weight, bias, stride, padding, output_padding, groups, dilation)
        return whole.squeeze(0)
    step, pads, extra, spread = each(stride, n), each(padding, n), each(output_padding, n), each(dilation, n)
    kernel, batch = weight._data.shape[2:], input._data.shape[0]
    per_group, sizes = weight._data.shape[1], input._data.shape[2:]
    rows = weight.reshape(1, groups, weight._data.shape[0] // groups, per_group * math.prod(kernel)).transpose(-2, -1)
    flat = input.reshape(batch, groups, weight._data.shape[0] // groups, math.prod(sizes))
    cols = rows.matmul(flat).reshape(batch, per_group * groups, *kernel, *sizes)
    cols = cols.permute([0, 1, *range(2 + n, 2 + 2 * n), *range(2, 2 + n)])
    full = tuple((size - 1) * s + (k - 1) * d + 1 for size, s, k, d in zip(sizes, step, kernel, spread, strict=True))
    whole = _col2im(cols, Windows((batch, per_group * groups, *full), kernel, step, spread))
    cuts = tuple(c for p, e in zip(reversed(pads), reversed(extra), strict=True) for c in (-p, e - p))
    result = pad_zeros(whole, cuts) if any(cuts) else whole
    if bias is None:
        return result
    return result + passed(bias, input, weight, zeros=False).reshape(1, -1, *(1,) * n)


def fold_windows(windows: Tensor, places: Windows) -> Tensor:
    """Return zeros of the padded shape with windows [N, C, *outputs, *kernel] added where they lie (col2im)."""
    return _col2im(windows, places)


def take_windows(padded: Tensor, places: Windows) -> Tensor:
    """Return the windows [N, C, *outputs, *kernel] of a padded tensor (im2col)."""
    return _im2col(padded, places)
