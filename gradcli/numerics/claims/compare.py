"""The rules that turn one measured direction into: agrees, differs, kinked, weak or silent."""

from __future__ import annotations

from enum import Enum

import numpy as np

from gradcli.frozen import dataclass
from gradcli.numerics.differences.estimate import FAIL_FACTOR, Status, StatusArray
from gradcli.numerics.maps.floats import Indices, Mask
from gradcli.numerics.maps.space import Vector
from gradcli.numerics.outcome import Doubt, Outcome
from gradcli.numerics.sampling.directions import Focus

PASS_RESOLUTION = 1e-4
"""A block passes only if errors of this relative size would have been seen."""
SILENT_NOISE = 1e-8
"""A claim and a derivative that are both zero say something only if the values are known to this relative precision."""


class Impression(Enum):
    """The result of one direction for one block."""

    AGREES = "the gradient agrees with finite differences to within the error bound for every output entry"
    DIFFERS = (
        "the gradient differs from finite differences by more than three times the error bound for some output entry"
    )
    KINKED = "some output entry has no derivative at this point"
    WEAK = "the error bound is too wide to judge the gradient"
    SILENT = "the gradient and the finite differences are both zero to within rounding"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """One direction measured: the rows of J v with bounds, and the claim; `claimless` rows have none (NaN)."""

    direction: Vector
    focus: Focus
    numeric: Vector
    bound: Vector
    claimed: Vector
    rounding: Vector
    left: Vector
    right: Vector
    kink_bound: Vector
    status: StatusArray
    size: Vector
    noise: Vector
    claimless: Mask
    certified: bool

    @property
    def tolerance(self) -> Vector:
        """The bound together with the rounding of the claim itself."""
        return self.bound + self.rounding

    @property
    def error(self) -> Vector:
        """|claimed - numeric|, row by row."""
        with np.errstate(all="ignore"):
            return np.abs(self.claimed - self.numeric)

    @property
    def smooth(self) -> Mask:
        """Rows with a two-sided derivative and a finite bound."""
        known: Mask = (self.status == Status.OK) | (self.status == Status.NOISE)
        return known & np.isfinite(self.bound)

    @property
    def broken(self) -> Mask:
        """Rows without a two-sided derivative."""
        none: Mask = (self.status == Status.KINK) | (self.status == Status.JUMP) | (self.status == Status.CUSP)
        return none

    def differing(self, scale: float, significance: float) -> Mask:
        """Rows where the claim is outside three bounds and the gap matters."""
        with np.errstate(all="ignore"):
            outside = (self.error > FAIL_FACTOR * self.tolerance) & (self.error > significance * scale)
        return self.smooth & outside & ~self.claimless

    def within_slopes(self) -> Mask:
        """Rows whose claim lies between the one-sided slopes."""
        slack = self.tolerance + np.where(np.isfinite(self.kink_bound), self.kink_bound, 0.0)
        with np.errstate(all="ignore"):
            low = np.minimum(self.left, self.right) - slack
            high = np.maximum(self.left, self.right) + slack
            inside: Mask = (self.claimed >= low) & (self.claimed <= high)
        return inside


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """An impression with its numbers, all relative to the block's scale."""

    impression: Impression
    scale: float
    error: float
    tolerance: float
    resolution: float | None
    statuses: tuple[Status, ...]

    @property
    def off(self) -> bool:
        """Whether the claim lies outside the bounds, significantly or not."""
        apart = self.impression is Impression.AGREES and self.error > FAIL_FACTOR * self.tolerance
        return apart or self.impression is Impression.DIFFERS


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """The outcome for a block whose claim first seemed to differ; `here_only` says that it holds close by.

    `located` are the wrong entries of a large block, None where they are too many, or were not `searched` for.
    """

    outcome: Outcome
    doubt: Doubt | None = None
    note: str | None = None
    judgement: Judgement
    here_only: bool = False
    located: Indices | None = None
    searched: bool = False


def judge(reading: Reading, rows: Mask, entry_scale: float, columns: int, significance: float) -> Judgement:
    """Judge the rows of one output block along a direction through one input block.

    Args:
        reading: the measured direction.
        rows: the rows of that output block.
        entry_scale: the largest |claimed entry| × scale of the block.
        columns: how many coordinates the direction moves.
        significance: relative error below which a difference does not matter.
    """
    with np.errstate(all="ignore"):
        rows = rows & ~(reading.claimless & ~reading.broken)
        ours = rows & ~reading.claimless
        smooth, tolerance, error = reading.smooth, reading.tolerance, reading.error
        seen = np.where(ours & smooth, np.abs(reading.numeric) - tolerance, 0.0)
        scale = max(entry_scale, float(seen.max(initial=0.0)) / max(1.0, columns**0.5))
        worst = float(tolerance[ours & smooth].max(initial=0.0))
        off = float(error[ours & smooth].max(initial=0.0))
        matters = significance * max(1.0, columns**0.5 / 300.0)
        agree = smooth & ((error <= tolerance) | ((error <= matters * scale) & (tolerance <= matters * scale)))
        one_sided = (reading.status == Status.DOMAIN) & (error <= tolerance) & (tolerance <= PASS_RESOLUTION * scale)
        known = np.maximum(reading.size, np.abs(reading.numeric))
        within = ours & smooth & (error <= FAIL_FACTOR * tolerance)
        silent = within & (reading.bound <= SILENT_NOISE * known + 1e-290)
        # A row below the block's rounding level says nothing of the block, however well it is known.
        silent |= within & (np.abs(reading.numeric) + reading.bound <= worst) & silent.any()
    resolution = 2 * FAIL_FACTOR * worst / scale if scale > 0 and (ours & smooth).any() else None
    statuses = tuple(Status(int(s)) for s in np.unique(reading.status[rows]))
    if (rows & reading.broken).any():
        impression = Impression.KINKED
    elif reading.differing(scale, matters)[rows].any():
        impression = Impression.DIFFERS
    elif (ours == silent).all() and (resolution is None or resolution > PASS_RESOLUTION):
        impression = Impression.SILENT
    elif (agree | one_sided)[ours].all() and resolution is not None and resolution <= PASS_RESOLUTION:
        impression = Impression.AGREES
    else:
        impression = Impression.WEAK
    return Judgement(
        impression=impression, scale=scale, error=off, tolerance=worst, resolution=resolution, statuses=statuses
    )
