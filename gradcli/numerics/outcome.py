"""The types of the results of a verification."""

from __future__ import annotations

from enum import Enum

from gradcli.frozen import dataclass
from gradcli.numerics.maps.floats import Indices, Mask, Matrix, Vector

Pair = tuple[int, int]
"""The numbers of an input block and an output block."""

DIFFERENCES = "finite-difference"
AUTODIFF = "autodiff"


class Outcome(Enum):
    """The outcome for one pair of an input block and an output block.

    * AGREES: finite differences meet the claim to nine digits, or the error is within their error bound or too small
      to count.
    * DIFFERS: the claim is off by more than three error bounds, along several directions, with several steps and at
      several points; or it differs from the reference at two points, and the slopes along two directions are those of
      the reference.
    * UNDECIDED: the finite differences are not accurate enough to judge the claim.
    """

    AGREES = "agrees"
    DIFFERS = "differs"
    UNDECIDED = "undecided"


class Doubt(Enum):
    """Why an outcome is undecided.

    * KINK: forward has no derivative here or nearby, and the claim does not lie between its one-sided slopes.
    * NOISE: the values are inexact far beyond float64 rounding: coarsely rounded, noisy, or from an iteration that
      stops early.
    * DOMAIN: forward is not finite, or raises, at the point itself or at every nearby point that was tried.
    * NO_SIGNAL: the input or the output is empty, or the derivative is below rounding errors.
    * BUDGET: the limit on evaluations was reached before a decision.
    """

    KINK = "kink"
    NOISE = "noisy-forward"
    DOMAIN = "domain"
    NO_SIGNAL = "no-signal"
    BUDGET = "budget"


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Entries of the Jacobian of one output block with respect to one input block, claimed and measured.

    Attributes:
        claimed: the claimed entries, (rows, columns).
        numeric: the measured entries, by finite differences or from the reference.
        bound: their error bounds.
        rows: the flat indices of the rows within the output block.
        columns: the flat indices of the columns within the input block.
        complete: whether these are all rows and columns of the block.
        point: the whole flat x at which they were measured.
        cotangent: the cotangent of a row that is a projection.
        wide: whether they were measured over large steps.
        small_rows: whether only these rows differ; their derivatives are far below those of the others, and each error
            is to be compared with the largest derivative among these rows.
        smooth: which entries are two-sided derivatives; None if all are.
    """

    claimed: Matrix
    numeric: Matrix
    bound: Matrix
    rows: Indices
    columns: Indices
    complete: bool
    point: Vector
    cotangent: Vector | None = None
    wide: bool = False
    small_rows: bool = False
    smooth: Mask | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class KinkNote:
    """An input entry that lies on a kink, with the one-sided slopes of the output whose slope changes most.

    Attributes:
        coordinate: the flat number of the entry.
        left: the slope to the left.
        right: the slope to the right.
        claimed: the claimed derivative.
        output: the flat number of the output; None for a projection of several outputs.
        slack: the error bound of the slopes.
        jump: whether the output jumps there; it then has no slopes.
    """

    coordinate: int
    left: float
    right: float
    claimed: float
    output: int | None = None
    slack: float = 0.0
    jump: bool = False

    @property
    def between(self) -> bool:
        """Whether the claim lies between the one-sided slopes, and so is an acceptable choice. True at a jump."""
        if self.jump:
            return True
        slack = 3 * self.slack + 1e-6 * (abs(self.left) + abs(self.right))
        return min(self.left, self.right) - slack <= self.claimed <= max(self.left, self.right) + slack


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockOutcome:
    """The outcome for one pair of an input block and an output block.

    Attributes:
        input: the number of the input block.
        output: the number of the output block.
        outcome: the outcome.
        doubt: why it is UNDECIDED, if it is.
        max_abs_error: the largest error of an entry, as a derivative.
        max_rel_error: the largest error relative to the largest entry (both times the scale of the input entry).
        bound: the error bound of the numbers that the claim was compared with, as a derivative; None if nothing was
            decided or measured. Where three pairs of values meet the claim to nine digits, which gives no bound of
            their own, it is four times the difference plus rounding; where the reference agrees, what `resolution`
            leaves open.
        resolution: every relative error above this would have been detected, by the comparison with `reference`; None
            if not known. Finite differences may support a reference that agrees with the claim to two digits only.
        zero_everywhere: whether claim and derivative are zero at all points tried.
        note: a sentence for the report.
        table: claimed and measured entries.
        wrong_columns: the wrong entries of the input block, if they were located.
        reference: what the claim was compared with: `DIFFERENCES`, or `AUTODIFF`, confirmed by finite differences.
        special: an entry whose claim is wrong at exactly this point, although the pair was judged at another.
        unexplained: whether no step size gave an error bound small enough to decide, and nothing else is known of why.
    """

    input: int
    output: int
    outcome: Outcome
    doubt: Doubt | None = None
    max_abs_error: float = 0.0
    max_rel_error: float = 0.0
    bound: float | None = None
    resolution: float | None = None
    zero_everywhere: bool = False
    note: str | None = None
    table: Table | None = None
    wrong_columns: Indices | None = None
    reference: str = DIFFERENCES
    special: KinkNote | None = None
    unexplained: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Verification:
    """The result of a verification.

    Attributes:
        blocks: the outcomes of all pairs.
        kinks: the entries that lie on kinks.
        point: the point, rounded to the grid.
        moved: whether some pairs were judged at other points.
        evaluations: the number of evaluations of forward.
        vjps: the number of runs of backward.
        notes: sentences for the report.
    """

    blocks: tuple[BlockOutcome, ...]
    kinks: tuple[KinkNote, ...]
    point: Vector
    moved: bool
    evaluations: int
    vjps: int
    notes: tuple[str, ...]
