"""A measured derivative with its error bound."""

from __future__ import annotations

from enum import IntEnum

import numpy as np
import numpy.typing as npt

from gradcli.frozen import dataclass
from gradcli.numerics.maps.space import Vector

FAIL_FACTOR = 3.0
"""A claim differs only if it is wrong by more than this many error bounds, because on difficult functions one bound in
a thousand does not hold (docs/measurements.md)."""


class Status(IntEnum):
    """What the values of one output along a line are like. Arrays of statuses hold the member's number."""

    OK = 0
    KINK = 1
    JUMP = 2
    CUSP = 3
    NOISE = 4
    STAIRCASE = 5
    DOMAIN = 6
    UNRESOLVED = 7

    @property
    def sentence(self) -> str:
        """What the status means, in one sentence."""
        return _SENTENCES[self]

    @property
    def smooth(self) -> bool:
        """Whether the value is a two-sided derivative with a bound."""
        return self in (Status.OK, Status.NOISE)


_SENTENCES = {
    Status.OK: "The function is smooth here and the derivative lies within the bound.",
    Status.KINK: "The slopes on the left and on the right differ.",
    Status.JUMP: "The function jumps at this point.",
    Status.CUSP: "The function is continuous here but its slope is unbounded.",
    Status.NOISE: "The values have noise far above float64 rounding; the bound includes this noise.",
    Status.STAIRCASE: (
        "Over short distances the values are constant or jump, as rounded numbers do, so there is no bound."
    ),
    Status.DOMAIN: "The function is finite on one side of the point only; the value is the slope on that side.",
    Status.UNRESOLVED: "No step size gave a consistent derivative.",
}

StatusArray = npt.NDArray[np.int8]


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """The derivatives of all outputs along one direction, with error bounds. Vectors have one entry for every output.

    Attributes:
        value: the derivatives.
        bound: their error bounds; infinite if there is none.
        status: the `Status` of every output, as a number.
        left: the slopes to the left, with the error bound `bound + kink_bound`.
        right: the slopes to the right, with the same error bound.
        kink_bound: the error bound of half the difference of `right` and `left`.
        noise: the standard deviation of a value.
        step: the smallest step t that the estimate uses.
        evaluations: the number of evaluations of the function.
    """

    value: Vector
    bound: Vector
    status: StatusArray
    left: Vector
    right: Vector
    kink_bound: Vector
    noise: Vector
    step: Vector
    evaluations: int

    @property
    def smooth(self) -> npt.NDArray[np.bool_]:
        """The outputs that have a derivative here, with a finite bound."""
        known: npt.NDArray[np.bool_] = (self.status == Status.OK) | (self.status == Status.NOISE)
        return known & np.isfinite(self.bound)

    @property
    def broken(self) -> npt.NDArray[np.bool_]:
        """The outputs that have no two-sided derivative here: at a kink, jump or cusp."""
        none: npt.NDArray[np.bool_] = (
            (self.status == Status.KINK) | (self.status == Status.JUMP) | (self.status == Status.CUSP)
        )
        return none
