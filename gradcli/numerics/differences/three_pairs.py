"""Three symmetric pairs against a prediction: enough where the claimed derivative is met to many digits."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from gradcli.frozen import dataclass
from gradcli.numerics.differences.stencil import even_weights, odd_weights, pair
from gradcli.numerics.maps.floats import EPS, TINY, Mask
from gradcli.numerics.maps.space import Vector
from gradcli.numerics.sampling.line import Function, Line, on_grid


@dataclass(frozen=True, slots=True, kw_only=True)
class Prediction:
    """What three pairs say: the extrapolated derivative, its rounding, the shift of the last step, and the kink."""

    value: Vector
    rounding: Vector
    shift: Vector
    kink: Vector
    evaluations: int

    def certifies(self, claimed: Vector, allowed: Vector) -> Mask:
        """Rows where the claim is met within `allowed`, with rounding and kink below it.

        A claim that an extrapolated quotient meets to nine digits cannot meet it by accident, so no truncation bound is
        needed; a claim that is not met proves nothing here.
        """
        with np.errstate(all="ignore"):
            met: Mask = (np.abs(self.value - claimed) + self.rounding <= allowed) & (np.abs(self.kink) <= 100 * allowed)
        return met


def predict(
    f: Function,
    x: Vector,
    v: Vector,
    *,
    f0: Vector,
    rng: np.random.Generator,
    start: float = 0.02,
    enough: Callable[[Prediction], bool] | None = None,
) -> Prediction:
    """Evaluate three symmetric pairs along v (6 evaluations), or the finer two if they are enough.

    Args:
        f: the function.
        x: the point, on the grid of `probe.snap`.
        v: the direction.
        f0: f(x).
        rng: draws the steps.
        start: the coarsest step lies in [start, 2.2 start).
        enough: says of the finer two pairs whether the coarsest may be left out; it is evaluated by default.
    """
    line = Line(f, x, v, f0)
    first = start * (1 + rng.random())
    steps = tuple(on_grid(first * 2.0**-k * (1 + 0.1 * rng.random())) for k in range(3))
    if enough is not None:
        early = _extrapolated(line, steps[1:])
        if enough(early):
            return early
    return _extrapolated(line, steps)


def _extrapolated(line: Line, steps: tuple[float, ...]) -> Prediction:
    """What the pairs at some steps, coarsest first, amount to; a pair is evaluated once."""
    with np.errstate(all="ignore"):
        pairs = [pair(t, line.at(t), line.at(-t), line.centre) for t in steps]
        wide, narrow, even = odd_weights(steps), odd_weights(steps[1:]), even_weights(steps)
        value = np.asarray(sum(w * p.odd for w, p in zip(wide, pairs, strict=True)))
        without = np.asarray(sum(w * p.odd for w, p in zip(narrow, pairs[1:], strict=True)))
        kink = np.asarray(sum(w * p.even for w, p in zip(even, pairs, strict=True)))
        size = np.maximum.reduce([np.abs(line.centre), *(p.size for p in pairs)])
        rounding = 4 * EPS * size * sum(abs(w) / t for w, t in zip(wide, steps, strict=True)) + 16 * TINY / steps[-1]
    scale = line.scale
    return Prediction(
        value=value * scale,
        rounding=rounding * scale,
        shift=np.abs(value - without) * scale,
        kink=kink * scale,
        evaluations=line.evaluations,
    )
