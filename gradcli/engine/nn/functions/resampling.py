"""Padding, resizing, adaptive pooling, and `fold`."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from gradcli.engine.dtypes import Array
from gradcli.engine.ops.constant import passed
from gradcli.engine.ops.convolution import Sizes, Windows, each, fold_windows, pad_zeros
from gradcli.engine.ops.joining import stack
from gradcli.engine.tensor import Tensor, from_array

_LINEAR = {"linear": 1, "bilinear": 2, "bicubic": 2, "trilinear": 3}
_NEAREST = {"nearest": 0.0, "nearest-exact": 0.5}
"""Where in each new element the old one is looked up."""


def _positions(mode: str, size: int, before: int, after: int) -> Array:
    """Return, for every place of a padded axis, the place of the axis that its value is copied from."""
    places = np.arange(-before, size + after)
    if mode == "replicate":
        return places.clip(0, size - 1)
    widest = size if mode == "circular" else size - 1
    if max(before, after) > widest:
        raise RuntimeError(
            f"Padding size should be less than the corresponding input dimension, but got: padding ({before}, {after}) "
            f"for a dimension of {size} in mode {mode!r}"
        )
    if mode == "circular":
        return places % size
    return np.asarray((size - 1) - np.abs((size - 1) - np.abs(places)))


def _require_pairs(pad: Sequence[int], ndim: int) -> None:
    """Raise RuntimeError unless there are two numbers for an axis, and no more axes than the tensor has."""
    if len(pad) % 2:
        raise RuntimeError("Padding length must be divisible by 2")
    if len(pad) > 2 * ndim:
        raise RuntimeError(
            "Padding length should be less than or equal to two times the input dimension but got padding length "
            f"{len(pad)} and input of dimension {ndim}"
        )


def pad(input: Tensor, pad: Sequence[int], mode: str = "constant", value: float | None = None) -> Tensor:
    """Return the tensor padded before and after its last axes.

    Args:
        input: the tensor.
        pad: (before, after) of the last axis, then of the one before it...; negative numbers cut elements off.
        mode: "constant"; "reflect" (the edge is not repeated), "replicate" or "circular", which pad all axes but the
            first one or two.
        value: the constant; 0 unless given.

    Raises:
        ValueError: there is no such mode.
        NotImplementedError: the mode does not pad so many axes.
        RuntimeError: the padding is too wide for the axis, its numbers do not fit the axes, or a value is given for
            another mode than "constant".
    """
    _require_pairs(pad, input._data.ndim)
    if mode == "constant":
        return pad_zeros(input, tuple(pad), 0 if value is None else value)
    if mode not in ("reflect", "replicate", "circular"):
        raise ValueError(f"Unrecognised padding mode {mode}: use constant, reflect, replicate or circular")
    if value is not None and value != 0:
        raise RuntimeError(f'Padding mode "{mode}" doesn\'t take in value argument')
    axes, ndim = len(pad) // 2, input._data.ndim
    if not axes + 1 <= ndim <= axes + 2:
        raise NotImplementedError(
            f"Padding size {len(pad)} is not supported for {ndim}D input tensor: mode {mode!r} pads all axes but the "
            "first one or two"
        )
    result = input if mode == "circular" else passed(input, input)
    for number in range(axes):
        place = ndim - 1 - number
        found = _positions(mode, input._data.shape[place], pad[2 * number], pad[2 * number + 1])
        result = result.index_select(place, from_array(found.astype(np.int64)))
    return result


def _target(input: Tensor, size: Any, scale_factor: Any) -> tuple[tuple[int, ...], tuple[float | None, ...]]:
    n = input._data.ndim - 2
    if (size is None) == (scale_factor is None):
        raise ValueError("only one of size or scale_factor should be defined, and one must be")
    if size is not None:
        return each(size, n), (None,) * n
    factors = tuple(scale_factor) if isinstance(scale_factor, (tuple, list)) else (scale_factor,) * n
    sizes = [math.floor(have * by) for have, by in zip(input._data.shape[2:], factors, strict=True)]
    return tuple(sizes), factors


def interpolate(
    input: Tensor,
    size: Any = None,
    scale_factor: Any = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
    antialias: bool = False,
) -> Tensor:
    """Return [N, C, *sizes] resampled to other sizes.

    Args:
        input: the tensor.
        size: the new *sizes: a number for all axes, or one for each; or else
        scale_factor: the factors from the old sizes to the new, which are rounded down.
        mode: "nearest", "nearest-exact", "linear", "bilinear", "bicubic", "trilinear" or "area".
        align_corners: align the centres of the first and last elements, not their outer edges (linear modes only).
        recompute_scale_factor: sample at distances of old over new size, not of 1 / scale_factor.
        antialias: must be False.

    Raises:
        NotImplementedError: another mode, or one that does not fit the number of axes, or antialias.
        ValueError: the mode takes no `align_corners`, or not exactly one of size and scale_factor is given.
    """
    if not 3 <= input._data.ndim <= 5 or mode not in (*_NEAREST, *_LINEAR, "area"):
        raise NotImplementedError(
            f"Input Error: Only 3D, 4D and 5D input Tensors supported (got {input._data.ndim}D) for the modes: "
            f"nearest | linear | bilinear | bicubic | trilinear | lanczos | area | nearest-exact (got {mode})"
        )
    target, factors = _target(input, size, scale_factor)
    if recompute_scale_factor:
        factors = (None,) * len(target)
    if antialias:
        raise NotImplementedError("interpolate: antialias=True is not supported by gradcli.engine")
    if mode == "area":
        return adaptive_avg_pool(input, target)
    if align_corners is not None and mode not in _LINEAR:
        raise ValueError("align_corners option can only be set with the interpolating modes: linear | bilinear | "
                         "bicubic | trilinear")  # fmt: skip
    if mode in _LINEAR and _LINEAR[mode] != len(target):
        raise NotImplementedError(f"Got {input._data.ndim}D input, but {mode} mode needs {_LINEAR[mode] + 2}D input")
    result = input
    for number, (want, factor) in enumerate(zip(target, factors, strict=True)):
        place, have = number + 2, input._data.shape[number + 2]
        scale = have / want if factor is None else 1 / factor
        if mode in _NEAREST:
            found = np.floor((np.arange(want) + _NEAREST[mode]) * scale).astype(np.int64).clip(0, have - 1)
            result = result.index_select(place, from_array(found))
        elif mode == "bicubic":
            result = _cubic(result, place, _positions_between(have, want, scale, bool(align_corners)))
        else:
            result = _between(result, place, _linear_positions(have, want, scale, bool(align_corners)))
    return result


def _linear_positions(have: int, want: int, scale: float, align: bool) -> Array:
    """Return the coordinates of the new elements on the old axis, whose elements lie at 0, 1, ..."""
    return np.asarray(np.maximum(_positions_between(have, want, scale, align), 0.0))


def _positions_between(have: int, want: int, scale: float, align: bool) -> Array:
    """As `_linear_positions`; the first may lie before the first old element."""
    if align:
        return np.asarray(np.arange(want) * ((have - 1) / (want - 1) if want > 1 else 0.0))
    return np.asarray((np.arange(want) + 0.5) * scale - 0.5)


def _cubic(input: Tensor, place: int, where: Array) -> Tensor:
    """Return the values at coordinates along an axis by cubic convolution (Keys, 1981) of four neighbours.

    Its slope at distance 1 is -3/4, and neighbours outside are those at the edge.
    """
    have = input._data.shape[place]
    low = np.floor(where)
    t = where - low
    shares = (
        ((-0.75 * (t + 1) + 3.75) * (t + 1) - 6) * (t + 1) + 3,
        (1.25 * t - 2.25) * t * t + 1,
        (1.25 * (1 - t) - 2.25) * (1 - t) * (1 - t) + 1,
        ((-0.75 * (2 - t) + 3.75) * (2 - t) - 6) * (2 - t) + 3,
    )
    shape = [-1 if axis == place else 1 for axis in range(input._data.ndim)]
    result: Any = 0
    for number, share in enumerate(shares):
        found = (low + number - 1).astype(np.int64).clip(0, have - 1)
        factor = from_array(share.astype(input._data.dtype).reshape(shape))
        result = result + input.index_select(place, from_array(found)) * factor
    neighbours: Tensor = result
    return neighbours


def _between(input: Tensor, place: int, where: Array) -> Tensor:
    """Return the values at coordinates along an axis, interpolated linearly."""
    have = input._data.shape[place]
    low = np.floor(where).astype(np.int64).clip(0, have - 1)
    high = (low + 1).clip(0, have - 1)
    shape = [-1 if axis == place else 1 for axis in range(input._data.ndim)]
    share = from_array((where - low).astype(input._data.dtype).reshape(shape))
    first, second = (input.index_select(place, from_array(found)) for found in (low, high))
    return first * (1 - share) + second * share


def _cells(have: int, want: int) -> list[slice]:
    return [slice(i * have // want, -(-(i + 1) * have // want)) for i in range(want)]


def _sizes(output_size: Any, shape: tuple[int, ...]) -> tuple[int, ...]:
    given = (output_size,) * len(shape) if isinstance(output_size, int) else tuple(output_size)
    return tuple(have if want is None else int(want) for want, have in zip(given, shape, strict=True))


def _adaptive(input: Tensor, output_size: Any, n: int, reduced: Any) -> Tensor:
    """Reduce each cell i of an axis, from floor(i n / want) to ceil((i + 1) n / want)."""
    shape = input._data.shape[-n:]
    sizes = _sizes(output_size, shape)
    grids = [_cells(have, want) for have, want in zip(shape, sizes, strict=True)]
    cells = [reduced(input[(..., *cell)]) for cell in itertools.product(*grids)]
    return stack(cells, -1).reshape(*input._data.shape[:-n], *sizes)


def adaptive_avg_pool(input: Tensor, output_size: Any) -> Tensor:
    """Return the means of the cells of a grid; a size of None keeps that of the axis."""
    n = input._data.ndim - 2 if not isinstance(output_size, (tuple, list)) else len(output_size)
    dims = tuple(range(-n, 0))
    one = math.prod(_sizes(output_size, input._data.shape[-n:])) == 1  # which PyTorch computes as a mean
    return _adaptive(input if one else passed(input, input), output_size, n, lambda cell: cell.mean(dims))


def adaptive_max_pool(input: Tensor, output_size: Any, n: int) -> Tensor:
    """Return the maxima of the cells of a grid over the last n axes; a size of None keeps that of the axis."""
    return _adaptive(passed(input, input), output_size, n, lambda cell: cell.flatten(-n).max(-1)[0])


def fold(
    input: Tensor, output_size: Sizes, kernel_size: Sizes, dilation: Sizes = 1, padding: Sizes = 0, stride: Sizes = 1
) -> Tensor:
    """Return images [N, C, H, W] as the sum of windows [N, C KH KW, windows], the adjoint of `unfold`.

    Args:
        input: the windows, also without N.
        output_size: H and W.
        kernel_size: KH and KW.
        dilation: the distance of neighbouring elements of a window.
        padding: the width of the border around the image that windows reach into; it is cut off.
        stride: the distance of neighbouring windows.

    Raises:
        RuntimeError: the number of rows or of windows does not fit the sizes.
    """
    if input._data.ndim == 2:
        return fold(input.unsqueeze(0), output_size, kernel_size, dilation, padding, stride).squeeze(0)
    kernel, spread, pads, step = (each(value, 2) for value in (kernel_size, dilation, padding, stride))
    grown = tuple(size + 2 * p for size, p in zip(each(output_size, 2), pads, strict=True))
    outputs = [(g - d * (k - 1) - 1) // s + 1 for g, d, k, s in zip(grown, spread, kernel, step, strict=True)]
    batch, rows, count = input._data.shape
    channels = rows // math.prod(kernel)
    if channels * math.prod(kernel) != rows or count != math.prod(outputs):
        raise RuntimeError(
            f"Given output_size={each(output_size, 2)}, kernel_size={kernel}, dilation={spread}, padding={pads}, "
            f"stride={step}, expected input of {math.prod(kernel)} x channels rows and {math.prod(outputs)} windows, "
            f"but got {rows} rows and {count} windows"
        )
    windows = input.reshape(batch, channels, *kernel, *outputs).permute(0, 1, 4, 5, 2, 3)
    whole = fold_windows(windows, Windows((batch, channels, *grown), kernel, step, spread))
    return pad_zeros(whole, (-pads[1], -pads[1], -pads[0], -pads[0])) if any(pads) else whole
