"""Two or three symmetric pairs of values along a line: enough to confirm a slope that they meet to many digits."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from gradcli.frozen import dataclass
from gradcli.numerics.differences.stencil import even_weights, odd_weights, pair
from gradcli.numerics.maps.floats import EPS, TINY, Mask, Vector
from gradcli.numerics.sampling.line import Function, Line, on_grid

QUICK_STEP = 0.02
"""The usual first step of three pairs of values: so long that rounding is small, and short enough that a smooth
function is met to nine digits."""
BOUNDED_STEP = 0.004
"""The first step if the claim need not be met: smaller, as the bound then comes from the change by the largest step."""
KINK_FACTOR = 100.0
"""The change of slope at x may be this many times the error that is allowed: it is extrapolated with less accuracy."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreePairs:
    """The result of three (or two) pairs of values.

    Attributes:
        value: the extrapolated derivatives.
        rounding: their rounding errors.
        shift: the absolute change of `value` when the largest step is left out.
        kink: half the change of slope at x, extrapolated, without a bound.
        gain: the error of `value` for an error of one in all values.
        evaluations: the number of evaluations of the function.
    """

    value: Vector
    rounding: Vector
    shift: Vector
    kink: Vector
    gain: float
    evaluations: int

    def certifies(self, claimed: Vector, allowed: Vector) -> Mask:
        """The rows in which the claim is met: error plus rounding are within `allowed`, and there is no kink.

        An extrapolated slope does not meet a claim to nine digits by accident, so that no truncation bound is needed.
        If the claim is not met, nothing follows.
        """
        with np.errstate(all="ignore"):
            met: Mask = np.abs(self.value - claimed) + self.rounding <= allowed
        return met & self.straight(allowed)

    def straight(self, allowed: Vector) -> Mask:
        """The rows whose change of slope at x is within `KINK_FACTOR` times `allowed`."""
        with np.errstate(all="ignore"):
            straight: Mask = np.abs(self.kink) <= KINK_FACTOR * allowed
        return straight


def measure_pairs(
    f: Function,
    x: Vector,
    v: Vector,
    *,
    f0: Vector,
    rng: np.random.Generator,
    start: float = QUICK_STEP,
    enough: Callable[[ThreePairs], bool] | None = None,
) -> ThreePairs:
    """Evaluate three symmetric pairs along v (6 evaluations), or only the two smaller ones if they are enough.

    Args:
        x: the point, rounded by `directions.snap`.
        start: the largest step lies in [start, 2.2 start).
        enough: decides from the two smaller pairs whether the largest may be left out; by default it is evaluated.
    """
    line = Line(f, x, v, f0)
    first = start * (1 + rng.random())
    steps = tuple(on_grid(first * 2.0**-k * (1 + 0.1 * rng.random())) for k in range(3))
    if enough is not None:
        early = _extrapolated(line, steps[1:])
        if enough(early):
            return early
    return _extrapolated(line, steps)


def _extrapolated(line: Line, steps: tuple[float, ...]) -> ThreePairs:
    """Extrapolate the pairs at the given steps, the largest first. A pair that is known is not evaluated again."""
    with np.errstate(all="ignore"):
        pairs = [pair(t, line.at(t), line.at(-t), line.centre) for t in steps]
        wide, narrow, even = odd_weights(steps), odd_weights(steps[1:]), even_weights(steps)
        value = np.asarray(sum(w * p.odd for w, p in zip(wide, pairs, strict=True)))
        without = np.asarray(sum(w * p.odd for w, p in zip(narrow, pairs[1:], strict=True)))
        kink = np.asarray(sum(w * p.even for w, p in zip(even, pairs, strict=True)))
        size = np.maximum.reduce([np.abs(line.centre), *(p.size for p in pairs)])
        gain = sum(abs(w) / t for w, t in zip(wide, steps, strict=True))
        rounding = 4 * EPS * size * gain + 16 * TINY / steps[-1]
    scale = line.scale
    return ThreePairs(
        value=value * scale,
        rounding=rounding * scale,
        shift=np.abs(value - without) * scale,
        kink=kink * scale,
        gain=gain,
        evaluations=line.evaluations,
    )
