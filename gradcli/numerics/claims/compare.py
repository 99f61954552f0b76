"""Judges one measured direction: the claim agrees, differs, is on a kink, or cannot be judged."""

from __future__ import annotations

import math
from dataclasses import replace
from enum import Enum

import numpy as np

from gradcli.frozen import dataclass
from gradcli.numerics.differences.estimate import FAIL_FACTOR, Slopes, Status, StatusArray
from gradcli.numerics.differences.stencil import TRUNCATION_FACTOR
from gradcli.numerics.differences.three_pairs import ThreePairs
from gradcli.numerics.maps.floats import Indices, Mask, Vector
from gradcli.numerics.maps.sizes import FINE, NOTHING
from gradcli.numerics.outcome import Doubt, Outcome
from gradcli.numerics.sampling.directions import Focus

PASS_RESOLUTION = 1e-4
"""By small steps alone, a pair agrees only at this resolution or a finer one: a mistake of 0.1 %, the smallest that a
formula usually makes, is then above it tenfold. Coarser agreements come with a note, and need values that are known to
be stored in few digits (`survey._at_its_precision`) or large steps (`wide_steps`)."""


class Impression(Enum):
    """The result of one direction for one pair of blocks."""

    AGREES = (
        "the gradient agrees with finite differences for every output entry: any difference is within the error "
        "bound or too small to count as an error, and the finite differences are accurate enough to show an error"
    )
    DIFFERS = (
        "the gradient differs from finite differences by more than three times the error bound for some output entry"
    )
    KINKED = "some output entry has no derivative at this point"
    WEAK = "the error bound is too wide to judge the gradient"
    SILENT = "the gradient and the finite differences are both zero to within rounding"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading(Slopes):
    """The slopes of all rows along one direction, measured and claimed.

    Attributes:
        direction: the direction v.
        focus: which entries it moves.
        numeric: the measured slopes J v.
        bound: their error bounds.
        claimed: the claimed slopes, NaN for rows without a claim.
        rounding: the rounding errors of the claimed slopes.
        left: the slopes to the left.
        right: the slopes to the right.
        kink_bound: the error bounds of half the difference of `left` and `right`.
        status: the `Status` of every row, as a number.
        size: the absolute values of the rows at the point.
        noise: the standard deviations of the rows' values.
        claimless: the rows without a claim.
    """

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

    @property
    def tolerance(self) -> Vector:
        """The error bound plus the rounding error of the claimed slope."""
        return self.bound + self.rounding

    @property
    def error(self) -> Vector:
        """|claimed - numeric| for every row."""
        with np.errstate(all="ignore"):
            return np.abs(self.claimed - self.numeric)

    def differing(self, scale: float, significance: float) -> Mask:
        """The rows in which the claim is wrong by more than three bounds and by a significant part of `scale`."""
        with np.errstate(all="ignore"):
            outside = (self.error > FAIL_FACTOR * self.tolerance) & (self.error > significance * scale)
        return self.smooth & outside & ~self.claimless

    def within_slopes(self) -> Mask:
        """The rows whose claim lies between the one-sided slopes, within their error bounds."""
        slack = self.tolerance + np.where(np.isfinite(self.kink_bound), self.kink_bound, 0.0)
        with np.errstate(all="ignore"):
            low = np.minimum(self.left, self.right) - slack
            high = np.maximum(self.left, self.right) + slack
            inside: Mask = (self.claimed >= low) & (self.claimed <= high)
        return inside


@dataclass(frozen=True, slots=True, kw_only=True)
class QuickReading:
    """The slopes of two or three pairs of values, beside the claim: a reading that is valid if they meet it.

    The third pair is left out if the two smaller ones decide.
    """

    short: ThreePairs
    reading: Reading

    def met(self, allowed: Vector) -> Mask:
        """The rows whose slope meets the claim to within `allowed`, and which show no kink."""
        return self.short.certifies(self.reading.claimed, allowed)

    def rough(self) -> Reading:
        """The reading for claims that are not met: its bound is four times the change that the largest step makes."""
        with np.errstate(all="ignore"):
            bound = TRUNCATION_FACTOR * self.short.shift + self.short.rounding + np.abs(self.short.kink)
        return replace(self.reading, bound=bound)


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """The result of one direction for one pair, with numbers.

    Attributes:
        impression: the result.
        scale: what errors are compared with: the largest scaled entry, or a larger value if the slopes show one.
        error: the largest |claimed slope - measured slope| of a row.
        tolerance: the largest bound of such an error.
        resolution: every error above this part of `scale` would have been detected; None if not known.
        statuses: the statuses of the rows.
    """

    impression: Impression
    scale: float
    error: float
    tolerance: float
    resolution: float | None
    statuses: tuple[Status, ...]

    @property
    def off(self) -> bool:
        """Whether the claim is wrong by more than three bounds, even if that is not significant."""
        apart = self.impression is Impression.AGREES and self.error > FAIL_FACTOR * self.tolerance
        return apart or self.impression is Impression.DIFFERS


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """The outcome for a pair whose claim seemed to differ at first.

    Attributes:
        outcome: the outcome.
        doubt: why it is UNDECIDED, if it is.
        note: a sentence for the report.
        judgement: the measurement with the largest error.
        here_only: whether the claim is right at nearby points.
        located: the wrong entries of a large block; None if there are too many, or `searched` is False.
        searched: whether the wrong entries were searched for.
        in_small_entries: whether only entries that are far smaller than the largest are wrong.
    """

    outcome: Outcome
    doubt: Doubt | None = None
    note: str | None = None
    judgement: Judgement
    here_only: bool = False
    located: Indices | None = None
    searched: bool = False
    in_small_entries: bool = False


def resolution_of(tolerance: float, scale: float) -> float | None:
    """The relative error of an entry above which it would have been detected; None if the scale is zero.

    A slope must be off by more than three error bounds, and a random direction shows at least half of an entry's error.
    The bound is the widest of all rows, so that smaller errors may be detected in other rows.
    """
    return 2 * FAIL_FACTOR * tolerance / scale if scale > 0 else None


def of_sum(significance: float, columns: int) -> float:
    """The smallest relative error of a slope that matters, if the errors of so many entries add up in it.

    It is the significance of one entry for up to 90,000 entries; beyond, it grows as the root of their number.
    """
    return significance * max(1.0, math.sqrt(columns) / 300.0)


def judge(reading: Reading, rows: Mask, entry_scale: float, columns: int, significance: float) -> Judgement:
    """Judge the rows of one output block along a direction through one input block.

    The scale is the largest scaled entry or, if that is larger, the largest slope seen divided by the root of the
    number of entries: what a single entry of typical size would contribute to such a slope. The
    significance is raised for many entries (`of_sum`).

    Args:
        entry_scale: the largest |claimed entry| · scale of the pair.
    """
    with np.errstate(all="ignore"):
        rows = rows & ~(reading.claimless & ~reading.broken)
        ours = rows & ~reading.claimless
        smooth, tolerance, error = reading.smooth, reading.tolerance, reading.error
        slopes = np.where(ours & smooth, np.abs(reading.numeric) - tolerance, 0.0)
        scale = max(entry_scale, float(slopes.max(initial=0.0)) / max(1.0, columns**0.5))
        worst = float(tolerance[ours & smooth].max(initial=0.0))
        off = float(error[ours & smooth].max(initial=0.0))
        matters = of_sum(significance, columns)
        agree = smooth & ((error <= tolerance) | ((error <= matters * scale) & (tolerance <= matters * scale)))
        one_sided = (reading.status == Status.DOMAIN) & (error <= tolerance) & (tolerance <= PASS_RESOLUTION * scale)
        known = np.maximum(reading.size, np.abs(reading.numeric))
        within = ours & smooth & (error <= FAIL_FACTOR * tolerance)
        silent = within & (reading.bound <= FINE * known + NOTHING)
        silent &= np.abs(reading.numeric) <= FAIL_FACTOR * tolerance
        # A slope below the largest bound of the rows is below the rounding level of the block, and counts as zero too.
        silent |= within & (np.abs(reading.numeric) + reading.bound <= worst) & silent.any()
    resolution = resolution_of(worst, scale) if (ours & smooth).any() else None
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
