"""Richardson extrapolation to step zero: weights, windows of steps, and their error bounds.

A symmetric quotient o(t) = (f(x+tv) - f(x-tv)) / 2t is a power series in t², so that w steps give the derivative with
an error of order t^(2w). Windows of up to four consecutive steps are formed; the difference of two windows estimates
the truncation error. docs/numerics.md, section 2, has the derivation.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from gradcli.frozen import dataclass
from gradcli.numerics.maps.floats import EPS, TINY, Matrix, Vector

WIDTH = 4
"""The largest number of steps in a window."""
NOISE_FACTOR = 8.0
"""The bound allows for noise of this many standard deviations."""
TRUNCATION_FACTOR = 4.0
"""The truncation error is taken to be this many times the difference of two windows, one without the largest step. If
the extrapolation converges, that difference already exceeds the truncation error."""


@dataclass(frozen=True, slots=True)
class SymmetricPair:
    """The difference quotients of the two values at x ± t v, for all outputs.

    Attributes:
        step: t.
        odd: (f(x + t v) - f(x - t v)) / 2t.
        even: (f(x + t v) + f(x - t v) - 2 f(x)) / 2t.
        size: the larger one of the two absolute values.
    """

    step: float
    odd: Vector
    even: Vector
    size: Vector


def pair(step: float, right: Vector, left: Vector, centre: Vector) -> SymmetricPair:
    """Form the difference quotients of one symmetric pair of values."""
    with np.errstate(all="ignore"):
        odd = (right - left) / (2 * step)
        even = ((right - centre) + (left - centre)) / (2 * step)
        return SymmetricPair(step, odd, even, np.fmax(np.abs(right), np.abs(left)))


@lru_cache(maxsize=4096)
def odd_weights(steps: tuple[float, ...]) -> tuple[float, ...]:
    """The weights that extrapolate a polynomial in t² from the steps to t = 0."""
    return one_sided_weights(tuple(t * t for t in steps))


def one_sided_weights(steps: tuple[float, ...]) -> tuple[float, ...]:
    """The Lagrange weights that extrapolate a polynomial in t from the steps to t = 0. Their sum is one."""
    weights = []
    for i, a in enumerate(steps):
        weight = 1.0
        for j, b in enumerate(steps):
            if i != j:
                weight *= b / (b - a)
        weights.append(weight)
    return tuple(weights)


def one_sided(slopes: Sequence[Vector], steps: Sequence[float], size: Vector) -> tuple[Vector, Vector]:
    """The slope to one side, by extrapolation of quotients over the given steps, the largest first, and its bound.

    The bound is four times the change when the largest step is left out, plus the rounding errors of the quotients of
    values that are at most `size`.
    """
    wide, narrow = one_sided_weights(tuple(steps)), one_sided_weights(tuple(steps[1:]))
    slope = np.asarray(sum(w * s for w, s in zip(wide, slopes, strict=True)))
    shorter = np.asarray(sum(w * s for w, s in zip(narrow, slopes[1:], strict=True)))
    rounding = NOISE_FACTOR * EPS * size * sum(abs(w) / t for w, t in zip(wide, steps, strict=True))
    return slope, rounding + TRUNCATION_FACTOR * np.abs(slope - shorter)


@lru_cache(maxsize=4096)
def even_weights(steps: tuple[float, ...]) -> tuple[float, ...]:
    """The weights that extrapolate c + a t + b t³ + ... from the steps to t = 0.

    The even quotients have this form. Their limit c is half the change of slope at x, zero if f is smooth.
    """
    scaled = np.array(steps) / steps[0]
    powers = np.array([0, *range(1, 2 * len(steps) - 2, 2)])
    return tuple(np.linalg.solve(scaled[None, :] ** powers[:, None], np.eye(len(steps))[0]).tolist())


@dataclass(frozen=True, slots=True)
class Windows:
    """Estimates by windows of at least three steps; one row for every window.

    Attributes:
        finest: the smallest step of the window.
        value: the estimates; 0 if not finite.
        bound: their error bounds; infinite if the estimate is not finite.
        noise: the part of the bound that is due to noise and rounding.
    """

    finest: Vector
    value: Matrix
    bound: Matrix
    noise: Matrix


def _spans(count: int) -> list[tuple[int, int]]:
    """All windows of up to four of `count` consecutive steps, as (first step, number of steps)."""
    return [(start, width) for start in range(count) for width in range(1, WIDTH + 1) if start + width <= count]


def _apply(weights: Matrix, quotients: Matrix) -> Matrix:
    """Compute weights @ quotients, where a quotient that is not finite makes only the windows that use it NaN."""
    finite = np.isfinite(quotients)
    if finite.all():
        return weights @ quotients
    result = weights @ np.where(finite, quotients, 0.0)
    touched = (weights != 0).astype(float) @ (~finite).astype(float)
    return np.where(touched > 0, np.nan, result)


def _stack(pairs: list[SymmetricPair], sigmas: list[Vector]) -> tuple[Vector, Matrix, Matrix, Matrix]:
    """The steps, the odd and even quotients, and (sigma / t)² of all pairs, as arrays."""
    steps = np.array([p.step for p in pairs])
    odd = np.array([p.odd for p in pairs])
    even = np.array([p.even for p in pairs])
    return steps, odd, even, (np.array(sigmas) / steps[:, None]) ** 2


def _expected_decay(steps: Vector) -> float:
    """The largest ratio of two successive changes of a low-order estimate for which convergence is not too slow.

    The error of a single quotient is proportional to t² and that of a window of two steps to (t t')², if f is smooth.
    The expected ratio is multiplied by 1.6 and 3.2, to allow for terms of higher order; an error proportional to t has
    a ratio above that.
    """
    if len(steps) == WIDTH:
        errors = (steps[:-1] * steps[1:]) ** 2
        return 3.2 * float((errors[1] - errors[2]) / (errors[0] - errors[1]))
    errors = steps**2
    return 1.6 * float((errors[1] - errors[2]) / (errors[0] - errors[1]))


def derivative_windows(pairs: list[SymmetricPair], sigmas: list[Vector]) -> Windows:
    """The derivative by all windows of three and four consecutive pairs, with bounds.

    Args:
        pairs: symmetric pairs, the largest step first.
        sigmas: the standard deviation of a value at each pair, (m,) arrays.

    Returns:
        The windows. The bound of a window is 8 standard deviations of its noise,
        plus the rounding of quotients and sum, plus four times the change when the largest step is left out. If the
        low-order estimates do not converge as they do for a smooth function (`_expected_decay`), the last term is at
        least eight times the change when the window without the largest step is moved by one step.
    """
    steps, odd, _, variances = _stack(pairs, sigmas)
    spans = _spans(len(pairs))
    weights = np.zeros((len(spans), len(pairs)))
    for row, (start, width) in enumerate(spans):
        weights[row, start : start + width] = odd_weights(tuple(steps[start : start + width].tolist()))
    row_of = {span: row for row, span in enumerate(spans)}
    with np.errstate(all="ignore"):
        value = _apply(weights, odd)
        noise = NOISE_FACTOR * np.sqrt(_apply(weights**2, variances) / 2)
        noise += 4 * EPS * _apply(np.abs(weights), np.abs(odd)) + 8 * TINY / steps[-1]
        wide = [(start, width) for start, width in spans if width >= 3]
        rows, bounds = [], []
        for start, width in wide:
            row = row_of[start, width]
            shift = np.abs(value[row] - value[row_of[start + 1, width - 1]])
            low = 2 if width == WIDTH else 1
            slow_a = np.abs(value[row_of[start + 1, low]] - value[row_of[start, low]])
            slow_b = np.abs(value[row_of[start + 2, low]] - value[row_of[start + 1, low]])
            floor = noise[row_of[start + width - 2, 2]]
            slow = slow_b > _expected_decay(steps[start : start + width]) * slow_a + floor
            whole = np.abs(value[row_of[start + 1, width - 1]] - value[row_of[start, width - 1]])
            shift = np.where(slow, np.maximum(shift, 2 * whole), shift)
            rows.append(row)
            bounds.append(noise[row] + TRUNCATION_FACTOR * shift)
        bound = np.array(bounds).reshape(len(rows), odd.shape[1])
        known = np.isfinite(value[rows]) & np.isfinite(bound)
    finest = np.array([steps[start + width - 1] for start, width in wide])
    return Windows(finest, np.where(known, value[rows], 0.0), np.where(known, bound, np.inf), noise[rows])


def kink_windows(pairs: list[SymmetricPair], sigmas: list[Vector]) -> Windows:
    """Half the change of slope at x, (right - left) / 2, by windows of the even quotients, with bounds."""
    steps, _, even, variances = _stack(pairs, sigmas)
    spans = [(start, width) for start, width in _spans(len(pairs)) if width >= 3]
    wide, narrow = np.zeros((2, len(spans), len(pairs)))
    for row, (start, width) in enumerate(spans):
        wide[row, start : start + width] = even_weights(tuple(steps[start : start + width].tolist()))
        narrow[row, start + 1 : start + width] = even_weights(tuple(steps[start + 1 : start + width].tolist()))
    with np.errstate(all="ignore"):
        value = _apply(wide, even)
        noise = NOISE_FACTOR * np.sqrt(_apply(wide**2, variances))
        bound = noise + 2 * np.abs(value - _apply(narrow, even)) + 8 * TINY / steps[-1]
        known = np.isfinite(value) & np.isfinite(bound)
    finest = np.array([steps[start + width - 1] for start, width in spans])
    return Windows(finest, np.where(known, value, 0.0), np.where(known, bound, np.inf), noise)
