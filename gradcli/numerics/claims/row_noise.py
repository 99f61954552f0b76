"""The noise of rows whose values have rounding errors beyond their last digit, and the error it makes in slopes."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

import numpy as np

from gradcli.frozen import dataclass
from gradcli.numerics.differences.formats import FLOAT32, fit, format_of
from gradcli.numerics.differences.noise import residual_noise
from gradcli.numerics.differences.stencil import NOISE_FACTOR
from gradcli.numerics.maps.floats import TINY, Vector
from gradcli.numerics.maps.sizes import ROUNDING
from gradcli.numerics.maps.vector_map import VectorMap
from gradcli.numerics.sampling.directions import CLOSE_BY, TRIES, random_direction

REMNANT = 64.0
"""If values consist of rounding errors only, they stay below this many times the noise when the input changes by its
own magnitude, and so do their claimed changes."""
ACROSS = FLOAT32.roundoff * np.array([-64.0, -49.3, -33.9, -13.4, 5.1, 19.8, 37.8, 53.1, 64.0])
"""Places along a line, as parts of x, between which a value of float32 rounds about a hundred times; at unequal
distances, so that rounding errors do not repeat."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RowNoise:
    """The noise of the rows at one point.

    Attributes:
        given: what the map gives (`value_noise`); zero if it gives none.
        seen: what a change of x by a few roundings shows, if it was measured and is smaller. It is if the rounding
            errors of large terms cancel, and also if these errors are the same at neighbouring points.
    """

    given: Vector
    seen: Vector

    def slope_error(self, numeric: Vector, claimed: Vector, steps: Vector) -> Vector:
        """The error that `seen` makes in slopes over these steps; 0 if measured and claimed slope are exactly zero."""
        still = (numeric == 0) & (claimed == 0)
        return np.where(still, 0.0, NOISE_FACTOR * self.seen / steps)

    def inherited(self, numeric: Vector, claimed: Vector, values: Vector) -> Vector:
        """The error of slopes if `given` is right: relative to the slope, it is as large as relative to the value.

        A saturated softmax has derivatives that are differences of nearly equal numbers. Their rounding errors change
        as smoothly as they do, so that neighbouring points do not show them. Near a zero crossing a value is small
        beside its slope although no digits are lost; therefore the slope counts as `REMNANT` values at most.
        """
        with np.errstate(all="ignore"):
            ratio = np.fmax(np.abs(numeric), np.abs(claimed)) / np.maximum(np.abs(values), TINY)
            error: Vector = NOISE_FACTOR * self.given * np.fmin(ratio, REMNANT)
        return error


def is_single_below(map_: VectorMap, x: Vector, scales: Vector, rng: np.random.Generator) -> bool:
    """Whether a map computes the gradient of a function whose values are float32 numbers, at x and close by."""
    below = map_.below
    while below is not None:
        size = below.domain.size
        with suppress(Exception), np.errstate(all="ignore"):
            values = [np.asarray(below.value(x[:size]), dtype=np.float64)]
            if fit(values[0], FLOAT32.digits).all():
                points = (x + CLOSE_BY * random_direction(rng, scales) for _ in range(TRIES))
                values += [np.asarray(below.value(point[:size]), dtype=np.float64) for point in points]
                if format_of(np.concatenate(values)) is FLOAT32:
                    return True
        below = below.below
    return False


def noise_of_single(read: Callable[[Vector], Vector], x: Vector, v: Vector) -> Vector:
    """The noise of rows over a distance that crosses a hundred jumps of float32 values; 0 if it is float64 rounding.

    A gradient that multiplies float32 values by float64 numbers jumps where they do and is smooth between the jumps, so
    that closer points do not show its noise. One that is computed without these values has none.
    """
    try:
        values = np.array([read(x + t * v) for t in ACROSS])
    except Exception:  # outside the domain
        return np.zeros(read(x).size)
    with np.errstate(all="ignore"):
        noise = residual_noise(ACROSS, values, (4, 5))
        return np.where(noise > ROUNDING * np.abs(values).max(axis=0), noise, 0.0)
