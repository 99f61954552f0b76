"""Pooling, dropout and other random functions."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

import numpy as np

from gradcli.engine.dtypes import Array
from gradcli.engine.generator import random_source
from gradcli.engine.graph import Node
from gradcli.engine.in_place import in_place
from gradcli.engine.nn.functions.resampling import adaptive_avg_pool, adaptive_max_pool
from gradcli.engine.ops.activation import softmax
from gradcli.engine.ops.constant import constant_in
from gradcli.engine.ops.convolution import Sizes, each, pad_zeros
from gradcli.engine.ops.pooling import Pooling, avg_pool, max_pool, pooling
from gradcli.engine.recording import record
from gradcli.engine.tensor import Tensor, from_array

P = ParamSpec("P")
R = TypeVar("R")


def _max_pooling(n: int, sizes: str) -> Callable[..., Any]:
    def pool(
        input: Tensor,
        kernel_size: Sizes,
        stride: Sizes | None = None,
        padding: Sizes = 0,
        dilation: Sizes = 1,
        ceil_mode: bool = False,
        return_indices: bool = False,
    ) -> Any:
        return max_pool(input, pooling(kernel_size, stride, padding, n, dilation, ceil_mode), return_indices)

    return _named(
        pool,
        f"max_pool{n}d",
        f"Return the maximum of every window of [N, C, {sizes}], and its flat index as well with `return_indices`.",
    )


def _avg_pooling(n: int, sizes: str) -> Callable[..., Tensor]:
    def pool(
        input: Tensor,
        kernel_size: Sizes,
        stride: Sizes | None = None,
        padding: Sizes = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> Tensor:
        places = pooling(kernel_size, stride, padding, n, 1, ceil_mode)
        return avg_pool(input, places, count_include_pad, divisor_override)

    return _named(pool, f"avg_pool{n}d", f"Return the mean of every window of [N, C, {sizes}].")


def _adaptive_pooling(
    n: int, name: str, what: str, reduced: Callable[[Tensor, Any, int], Tensor]
) -> Callable[[Tensor, Any], Tensor]:
    def pool(input: Tensor, output_size: Any) -> Tensor:
        size = output_size if isinstance(output_size, (tuple, list)) else (output_size,) * n
        return reduced(input, size, n)

    return _named(
        pool,
        f"{name}{n}d",
        f"Return {what} of a grid of cells, `output_size` along each of the last axes; cells may overlap.",
    )


def _named(function: Callable[P, R], name: str, sentence: str) -> Callable[P, R]:
    function.__name__ = function.__qualname__ = name
    function.__doc__ = sentence
    return function


_AXES = enumerate(("L", "H, W", "D, H, W"), start=1)
_KINDS = [
    (
        _max_pooling(n, sizes),
        _avg_pooling(n, sizes),
        _adaptive_pooling(n, "adaptive_avg_pool", "the means", lambda input, size, _: adaptive_avg_pool(input, size)),
        _adaptive_pooling(n, "adaptive_max_pool", "the maxima", adaptive_max_pool),
    )
    for n, sizes in _AXES
]
max_pool1d, avg_pool1d, adaptive_avg_pool1d, adaptive_max_pool1d = _KINDS[0]
max_pool2d, avg_pool2d, adaptive_avg_pool2d, adaptive_max_pool2d = _KINDS[1]
max_pool3d, avg_pool3d, adaptive_avg_pool3d, adaptive_max_pool3d = _KINDS[2]


def _lp_pooling(n: int) -> Callable[..., Tensor]:
    def pool(
        input: Tensor, norm_type: float, kernel_size: Sizes, stride: Sizes | None = None, ceil_mode: bool = False
    ) -> Tensor:
        return _lp_pool(input, float(norm_type), pooling(kernel_size, stride, 0, n, 1, ceil_mode))

    return _named(pool, f"lp_pool{n}d", "Return (sum x^p)^(1/p) of every window; NaN where the sum is negative.")


lp_pool1d, lp_pool2d = _lp_pooling(1), _lp_pooling(2)


def _lp_pool(input: Tensor, p: float, places: Pooling) -> Tensor:
    """Return the p-norms as PyTorch does: of windows that reach over the end, the mean of what is inside counts."""
    total: Tensor = avg_pool(input**p, places) * math.prod(places.kernel)
    return (total.sign() * total.abs().relu()) ** (1 / p)


def unfold(input: Tensor, kernel_size: Sizes, dilation: Sizes = 1, padding: Sizes = 0, stride: Sizes = 1) -> Tensor:
    """Return the windows of [N, C, H, W] as columns [N, C KH KW, windows]; `fold` is the adjoint.

    Args:
        input: the images, also without N.
        kernel_size: KH and KW, or a number for both.
        dilation: the distance of neighbouring elements of a window.
        padding: zeros around the image.
        stride: the distance of neighbouring windows.
    """
    if input._data.ndim == 3:
        return unfold(input.unsqueeze(0), kernel_size, dilation, padding, stride).squeeze(0)
    places = Pooling(each(kernel_size, 2), each(stride, 2), each(padding, 2), each(dilation, 2), ceil_mode=False)
    taken = places.windows(input)
    batch, channels, rows, columns, elements = taken._data.shape
    return taken.permute(0, 1, 4, 2, 3).reshape(batch, channels * elements, rows * columns)


def local_response_norm(input: Tensor, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> Tensor:
    """Return x / (k + alpha mean(x^2))^beta, the mean over `size` neighbouring channels (Krizhevsky et al., 2012)."""
    squares = (input * input).movedim(1, -1)
    padded = pad_zeros(squares, (size // 2, (size - 1) // 2))
    mean = padded.unfold(-1, size, 1).mean(-1).movedim(-1, 1)
    result: Tensor = input / (mean * alpha + k) ** beta
    return result


# --- at random
def _dropped(input: Tensor, shape: tuple[int, ...], p: float, training: bool, inplace: bool) -> Tensor:
    if not 0 <= p <= 1:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
    if not training or p == 0:
        return input
    kept = random_source(None).random(shape) >= p
    mask = from_array((kept / (1 - p) if p < 1 else kept * 0.0).astype(input._data.dtype))
    return input.mul_(mask) if inplace else input * mask


def dropout(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Return the tensor with elements set to 0 with probability p and the others scaled by 1 / (1 - p), if training.

    Raises:
        ValueError: p is not between 0 and 1.
    """
    return _dropped(input, input._data.shape, p, training, inplace)


def feature_dropout(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Return [N, C, ...] with whole channels set to 0 with probability p, the others scaled by 1 / (1 - p)."""
    shape = input._data.shape
    return _dropped(input, (*shape[:2], *(1 for _ in shape[2:])), p, training, inplace)


def _channel_dropout(n: int, sizes: str, *, unbatched: bool) -> Callable[..., Tensor]:
    def drop(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
        lead = 1 if unbatched and input._data.ndim == n + 1 else 2
        shape = input._data.shape
        return _dropped(input, (*shape[:lead], *(1 for _ in shape[lead:])), p, training, inplace)

    also = ", also without N," if unbatched else ""
    return _named(drop, f"dropout{n}d", f"Return [N, C, {sizes}]{also} with whole channels dropped; see `dropout`.")


dropout1d, dropout3d = _channel_dropout(1, "L", unbatched=True), _channel_dropout(3, "D, H, W", unbatched=True)
dropout2d = _channel_dropout(2, "H, W", unbatched=False)  # PyTorch reads three axes as [N, C, L]


def alpha_dropout(input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False) -> Tensor:
    """Return the tensor with elements set to the lower limit of SELU with probability p, then scaled and shifted.

    Mean 0 and variance 1 stay as they are (Klambauer et al., arXiv 1706.02515).

    Raises:
        ValueError: p is not between 0 and 1.
    """
    if p == 1 or not 0 <= p <= 1:
        return _dropped(input, input._data.shape, p, training, inplace)
    if not training or p == 0:
        return input
    limit = -1.7580993408473766
    a = ((1 - p) * (1 + p * limit**2)) ** -0.5
    kept = from_array(random_source(None).random(input._data.shape) >= p)
    result = input.masked_fill(~kept, limit) * a - a * p * limit
    return input.copy_(result) if inplace else result


def rrelu(
    input: Tensor, lower: float = 1 / 8, upper: float = 1 / 3, training: bool = False, inplace: bool = False
) -> Tensor:
    """Return x where x > 0, else x times (lower + upper) / 2, or if training a random slope between the two."""
    slopes = np.full(input._data.shape, (lower + upper) / 2)
    if training:
        slopes = random_source(None).uniform(lower, upper, input._data.shape)
    slopes = np.where(input._data > 0, 1.0, slopes).astype(input._data.dtype)
    return in_place(input, _scaled, slopes) if inplace else _scaled(input, slopes)


class RreluWithNoiseBackward0(Node):
    """The cotangent times the slope that was drawn for each element."""

    _saved_names = ("self", "noise")

    def _vjp(self, g: Tensor) -> Any:
        x, slopes = self._unpack()
        return constant_in(g * slopes, x)


def _scaled(input: Tensor, slopes: Array) -> Tensor:
    return record(RreluWithNoiseBackward0, input._data * slopes, (input,), (input, from_array(slopes)))


def gumbel_softmax(logits: Tensor, tau: float = 1, hard: bool = False, eps: float = 1e-10, dim: int = -1) -> Tensor:
    """Return a softmax of logits with Gumbel noise (Jang et al., arXiv 1611.01144).

    Args:
        logits: unnormalised log-probabilities.
        tau: the temperature.
        hard: return a one-hot vector of the largest element, with the gradient of the softmax (straight-through).
        eps: has no effect.
        dim: the axis.
    """
    del eps
    noise = random_source(None).gumbel(size=logits._data.shape).astype(logits._data.dtype)
    soft = softmax((logits + from_array(noise)) / tau, dim)
    if not hard:
        return soft
    index = soft.max(dim, keepdim=True)[1]
    picked = from_array(np.zeros_like(soft._data)).scatter(dim, index, 1.0)
    return picked - soft.detach() + soft


def channel_shuffle(input: Tensor, groups: int) -> Tensor:
    """Return [N, C, ...] with the channels of the groups interleaved (Zhang et al., arXiv 1707.01083)."""
    batch, channels, *rest = input._data.shape
    return input.reshape(batch, groups, channels // groups, *rest).transpose(1, 2).reshape(batch, channels, *rest)
