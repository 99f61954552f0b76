"""A measured derivative with its error bound."""

from __future__ import annotations

from enum import IntEnum

import numpy as np
import numpy.typing as npt

from gradcli.frozen import dataclass
from gradcli.numerics.maps.space import Vector

FAIL_FACTOR = 3.0
"""A claim counts as different only if it is off by more than so many error bounds, because on hard functions one bound
in a thousand does not hold."""


class Status(IntEnum):
    """The kind of values along a line for one output; arrays of statuses hold the member's number."""

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
    """The derivative of every output along one direction, with a bound on its error.

    `value`, `bound`, `left`, `right`, `kink_bound`, `noise` and `step` have one entry an output. `left` and `right`
    are the
    one-sided slopes, known to `bound + kink_bound`; `noise` is the standard deviation of a value; `step` is the finest
    displacement (in multiples of the direction) the chosen estimate rests on; `evaluations` counts forward runs.
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
        """Outputs whose derivative exists here and has a finite bound."""
        known: npt.NDArray[np.bool_] = (self.status == Status.OK) | (self.status == Status.NOISE)
        return known & np.isfinite(self.bound)

    @property
    def broken(self) -> npt.NDArray[np.bool_]:
        """Outputs that have no two-sided derivative at this point."""
        none: npt.NDArray[np.bool_] = (
            (self.status == Status.KINK) | (self.status == Status.JUMP) | (self.status == Status.CUSP)
        )
        return none
