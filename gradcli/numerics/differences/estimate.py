"""A measured derivative with its error bound."""

from __future__ import annotations

from enum import IntEnum

import numpy as np
import numpy.typing as npt

from gradcli.frozen import dataclass
from gradcli.numerics.maps.floats import Mask, Matrix, Vector

FAIL_FACTOR = 3.0
"""A claim differs only if it is wrong by more than this many error bounds, because on difficult functions one bound in
a thousand does not hold (docs/measurements.md)."""


class Status(IntEnum):
    """What the values of one output along a line are like. Arrays of statuses hold the member's number.

    * OK: they are smooth, and the derivative lies within the bound.
    * KINK: the slopes on the left and on the right differ.
    * JUMP: they jump at the point.
    * CUSP: they are continuous there, but their slope is unbounded.
    * NOISE: they have noise far above float64 rounding, which the bound includes.
    * STAIRCASE: over short distances they are constant or jump, as rounded numbers do, so there is no bound.
    * DOMAIN: they are finite on one side of the point only; the derivative is the slope on that side.
    * UNRESOLVED: no step size gave a consistent derivative.
    """

    OK = 0
    KINK = 1
    JUMP = 2
    CUSP = 3
    NOISE = 4
    STAIRCASE = 5
    DOMAIN = 6
    UNRESOLVED = 7


StatusArray = npt.NDArray[np.int8]


class Slopes:
    """Which of several slopes are two-sided derivatives, by their statuses and error bounds."""

    __slots__ = ()
    bound: Matrix
    status: StatusArray

    @property
    def smooth(self) -> Mask:
        """The slopes that are two-sided derivatives, with a finite bound."""
        known: Mask = (self.status == Status.OK) | (self.status == Status.NOISE)
        return known & np.isfinite(self.bound)

    @property
    def broken(self) -> Mask:
        """Where there is no two-sided derivative: at a kink, jump or cusp."""
        none: Mask = (self.status == Status.KINK) | (self.status == Status.JUMP) | (self.status == Status.CUSP)
        return none


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate(Slopes):
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
