"""Max and average pooling over windows, and pixel shuffling."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from gradcli.engine.graph import Node
from gradcli.engine.ops.constant import passed
from gradcli.engine.ops.convolution import Sizes, Windows, each, pad_zeros, take_windows
from gradcli.engine.recording import record
from gradcli.engine.tensor import Tensor, from_array


class Pooling(NamedTuple):
    """Where the windows of a pooling lie: one number for each of the last axes; padding is on both sides."""

    kernel: tuple[int, ...]
    stride: tuple[int, ...]
    padding: tuple[int, ...]
    dilation: tuple[int, ...]
    ceil_mode: bool

    def beyond(self, sizes: tuple[int, ...]) -> tuple[int, ...]:
        """Return how many elements the last window of each axis reaches beyond the padding; 0 without ceil_mode."""
        found = []
        for size, k, s, p, d in zip(sizes, self.kernel, self.stride, self.padding, self.dilation, strict=True):
            room = size + 2 * p - d * (k - 1) - 1
            count = -(-room // s) if self.ceil_mode else room // s
            if count * s >= size + p:  # a window must start in the elements or the padding before them
                count -= 1
            found.append(max(count * s - room, 0))
        return tuple(found)

    def windows(self, input: Tensor, fill: float = 0, constant: bool = False) -> Tensor:
        """Return the windows [N, C, *outputs, elements] of a tensor [N, C, *sizes] that is padded with `fill`.

        With `constant`, the gradient is recorded as a function of the tensor, which it does not change with.
        """
        over = self.beyond(input._data.shape[2:])
        input = passed(input, input) if constant else input
        pads = tuple(width for p, o in zip(reversed(self.padding), reversed(over), strict=True) for width in (p, p + o))
        padded = pad_zeros(input, pads, fill) if any(pads) else input
        taken = take_windows(padded, Windows(padded._data.shape, self.kernel, self.stride, self.dilation))
        return taken.reshape(*taken._data.shape[: 2 + len(self.kernel)], math.prod(self.kernel))


def pooling(
    kernel: Sizes, stride: Sizes | None, padding: Sizes, n: int, dilation: Sizes = 1, ceil_mode: bool = False
) -> Pooling:
    """Return where windows lie along n axes; the stride is the size of the kernel unless given.

    Raises:
        RuntimeError: the padding is more than half of the kernel size.
    """
    shape, pads = each(kernel, n), each(padding, n)
    if any(2 * p > k for p, k in zip(pads, shape, strict=True)):
        raise RuntimeError(
            f"pad should be at most half of effective kernel size, but got pad={list(pads)}, kernel_size={list(shape)}"
        )
    apart = shape if stride is None or stride in ((), []) else each(stride, n)
    return Pooling(shape, apart, pads, each(dilation, n), ceil_mode)


def _require_images(input: Tensor, n: int) -> None:
    """Raise RuntimeError unless a tensor has n axes and channels, and perhaps a batch."""
    if input._data.ndim not in (n + 1, n + 2) or not all(input._data.shape[-n:]):
        raise RuntimeError(f"non-empty {n + 1}D or {n + 2}D (batch mode) tensor expected for input")


def max_pool(input: Tensor, places: Pooling, return_indices: bool = False) -> Any:
    """Return the maximum of every window; of equal elements, the first gets the gradient.

    Args:
        input: [N, C, *sizes], or without N.
        places: where the windows lie.
        return_indices: return the index of each maximum in the flattened *sizes as well.
    """
    n = len(places.kernel)
    _require_images(input, n)
    if input._data.ndim == n + 1:
        whole = max_pool(input.unsqueeze(0), places, return_indices)
        return tuple(part.squeeze(0) for part in whole) if return_indices else whole.squeeze(0)
    values, chosen = places.windows(input, -math.inf, constant=True).max(-1)
    if not return_indices:
        return values
    sizes = input._data.shape[2:]
    numbers = np.broadcast_to(np.arange(math.prod(sizes), dtype=np.float64).reshape(sizes), input._data.shape)
    spots = places.windows(from_array(numbers)).gather(-1, chosen.unsqueeze(-1)).squeeze(-1)
    indices = from_array(spots._data.astype(np.int64))
    indices._counter = chosen._shared_counter()  # a write to what is returned counts for what is saved
    return values, indices


def avg_pool(
    input: Tensor, places: Pooling, count_include_pad: bool = True, divisor_override: int | None = None
) -> Tensor:
    """Return the mean of every window.

    Args:
        input: [N, C, *sizes], or without N.
        places: where the windows lie.
        count_include_pad: count padded elements in the divisor (never those that ceil_mode adds beyond the padding).
        divisor_override: divide the sum by this number instead.
    """
    n = len(places.kernel)
    _require_images(input, n)
    if input._data.ndim == n + 1:
        return avg_pool(input.unsqueeze(0), places, count_include_pad, divisor_override).squeeze(0)
    taken = places.windows(input, constant=True)
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
    """The cotangent, unshuffled."""

    factor: int

    def _vjp(self, g: Tensor) -> Any:
        return pixel_unshuffle(g, self.factor)


class PixelUnshuffleBackward0(Node):
    """The cotangent, shuffled."""

    factor: int

    def _vjp(self, g: Tensor) -> Any:
        return pixel_shuffle(g, self.factor)


def pixel_shuffle(input: Tensor, upscale_factor: int) -> Tensor:
    """Return [..., C, H r, W r] from [..., C r^2, H, W] (Shi et al., arXiv 1609.05158).

    Raises:
        RuntimeError: the channels are not divisible by r^2.
    """
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
    """Return [..., C r^2, H, W] from [..., C, H r, W r]; the inverse of `pixel_shuffle`."""
    *lead, channels, height, width = input._data.shape
    r, n = downscale_factor, len(lead)
    split = input._data.reshape(*lead, channels, height // r, r, width // r, r)
    moved = split.transpose(*range(n), n, n + 2, n + 4, n + 1, n + 3)
    array = moved.reshape(*lead, channels * r * r, height // r, width // r)
    return record(PixelUnshuffleBackward0, array, (input,), factor=r)
