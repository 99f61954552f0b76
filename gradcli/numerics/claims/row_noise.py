"""The noise of rows whose values have rounding errors beyond their last digit, and the error it makes in slopes."""

from __future__ import annotations

import numpy as np

from gradcli.frozen import dataclass
from gradcli.numerics.differences.stencil import NOISE_FACTOR
from gradcli.numerics.maps.floats import TINY, Vector

REMNANT = 64.0
"""If values consist of rounding errors only, they stay below this many times the noise when the input changes by its
own magnitude, and so do their claimed changes."""


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
