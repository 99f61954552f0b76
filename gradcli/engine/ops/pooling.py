"""Pooling: every window of a tensor reduced to one element; and channels that become pixels."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from gradcli.engine.graph import Node
from gradcli.engine.ops.convolution import Sizes, Windows, each, pad_zeros, take_windows
from gradcli.engine.recording import record
from gradcli.engine.tensor import Tensor, from_array


class Pooling(NamedTuple):
    """Where the windows of a pooling lie, along the last axes."""

    kernel: tuple[int, ...]
    stride: tuple[int, ...]
    padding: tuple[int, ...]
    dilation: tuple[int, ...]
    ceil_mode: bool

    def beyond(self, sizes: tuple[int, ...]) -> tuple[int, ...]:
        """Return how far the last windows reach over the padded end of each axis, where part of a window counts."""
        found = []
        for size, k, s, p, d in zip(sizes, self.kernel, self.stride, self.padding, self.dilation, strict=True):
            room = size + 2 * p - d * (k - 1) - 1
            count = -(-room // s) if self.ceil_mode else room // s
            if count * s >= size + p:  # the last window would start beyond the elements and the padding before them
                count -= 1
            found.append(max(count * s - room, 0))
        return tuple(found)

    def windows(self, input: Tensor, fill: float = 0) -> Tensor:
        """Return the windows [N, C, *outputs, elements], with a number in the places around the tensor."""
        over = self.beyond(input._data.shape[2:])
        pads = tuple(width for p, o in zip(reversed(self.padding), reversed(over), strict=True) for width in (p, p + o))
        padded = pad_zeros(input, pads, fill) if any(pads) else input
        taken = take_windows(padded, Windows(padded._data.shape, self.kernel, self.stride, self.dilation))
        return taken.reshape(*taken._data.shape[: 2 + len(self.kernel)], math.prod(self.kernel))


def pooling(
    kernel: Sizes, stride: Sizes | None, padding: Sizes, n: int, dilation: Sizes = 1, ceil_mode: bool = False
) -> Pooling:
    """Return where windows lie along n axes; they follow each other unless a stride is given.

    Raises:
        RuntimeError: the padding is more than half of the kernel.
    """
    shape, pads = each(kernel, n), each(padding, n)
    if any(2 * p > k for p, k in zip(pads, shape, strict=True)):
        raise RuntimeError(
            f"pad should be at most half of effective kernel size, but got pad={list(pads)}, kernel_size={list(shape)}"
        )
    apart = shape if stride is None or stride in ((), []) else each(stride, n)
    return Pooling(shape, apart, pads, each(dilation, n), ceil_mode)


def max_pool(input: Tensor, places: Pooling, return_indices: bool = False) -> Any:
    """Return the largest element of every window; the first of equal ones gets the gradient.

    Args:
        input: [N, C, *sizes], or without N.
        places: where the windows lie.
        return_indices: return the place of each element in the flattened sizes, too.
    """
    n = len(places.kernel)
    if input._data.ndim == n + 1:
        whole = max_pool(input.unsqueeze(0), places, return_indices)
        return tuple(part.squeeze(0) for part in whole) if return_indices else whole.squeeze(0)
    values, chosen = places.windows(input, -math.inf).max(-1)
    if not return_indices:
        return values
    sizes = input._data.shape[2:]
    numbers = np.broadcast_to(np.arange(math.prod(sizes), dtype=np.float64).reshape(sizes), input._data.shape)
    spots = places.windows(from_array(numbers)).gather(-1, chosen.unsqueeze(-1)).squeeze(-1)
    return values, from_array(spots._data.astype(np.int64))


def avg_pool(
    input: Tensor, places: Pooling, count_include_pad: bool = True, divisor_override: int | None = None
) -> Tensor:
    """Return the mean of every window.

    Args:
        input: [N, C, *sizes], or without N.
        places: where the windows lie.
        count_include_pad: count the padding as elements.
        divisor_override: divide the sum by this number instead.
    """
    n = len(places.kernel)
    if input._data.ndim == n + 1:
        return avg_pool(input.unsqueeze(0), places, count_include_pad, divisor_override).squeeze(0)
    taken = places.windows(input)
    if divisor_override is not None:
        return taken.sum(-1) / divisor_override
    over = places.beyond(input._data.shape[2:])
    if not any(over) and (count_include_pad or not any(places.padding)):
        return taken.mean(-1)
    inside = np.ones((1, 1, *input._data.shape[2:]), dtype=input._data.dtype)
    around = [(0, 0), (0, 0), *((p, p) for p in places.padding)]
    inside = np.pad(inside, around, constant_values=1 if count_include_pad else 0)
    inside = np.pad(inside, [(0, 0), (0, 0), *((0, o) for o in over)])
    windows = Windows(inside.shape, places.kernel, places.stride, places.dilation).take(inside)
    count = windows.sum(axis=tuple(range(2 + n, 2 + 2 * n)))
    return taken.sum(-1) / from_array(count)


class PixelShuffleBackward0(Node):
    """The pixels go back to their channels."""

    factor: int

    def _vjp(self, g: Tensor) -> Any:
        return pixel_unshuffle(g, self.factor)


class PixelUnshuffleBackward0(Node):
    """The channels go back to their pixels."""

    factor: int

    def _vjp(self, g: Tensor) -> Any:
        return pixel_shuffle(g, self.factor)


def pixel_shuffle(input: Tensor, upscale_factor: int) -> Tensor:
    """Return [..., C, H r, W r] from [..., C r^2, H, W]."""
    *lead, channels, height, width = input._data.shape
    r = upscale_factor
    if channels % (r * r):
        raise RuntimeError(
            "pixel_shuffle expects its input's 'channel' dimension to be divisible by the square of "
            "upscale_factor, but "
            f"input.size(-3)={channels} is not divisible by {r * r}"
        )
    split = input._data.reshape(*lead, channels // (r * r), r, r, height, width)
    n = len(lead)
    moved = split.transpose(*range(n), n, n + 3, n + 1, n + 4, n + 2)
    return record(
        PixelShuffleBackward0, moved.reshape(*lead, channels // (r * r), height * r, width * r), (input,), factor=r
    )


def pixel_unshuffle(input: Tensor, downscale_factor: int) -> Tensor:
    """Return [..., C r^2, H, W] from [..., C, H r, W r]."""
    *lead, channels, height, width = input._data.shape
    r, n = downscale_factor, len(lead)
    split = input._data.reshape(*lead, channels, height // r, r, width // r, r)
    moved = split.transpose(*range(n), n, n + 2, n + 4, n + 1, n + 3)
    array = moved.reshape(*lead, channels * r * r, height // r, width // r)
    return record(PixelUnshuffleBackward0, array, (input,), factor=r)
