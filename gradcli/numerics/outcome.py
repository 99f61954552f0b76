"""The results of a verification: values only, no arithmetic."""

from __future__ import annotations

from enum import Enum

from gradcli.frozen import dataclass
from gradcli.numerics.maps.floats import Indices, Mask, Matrix
from gradcli.numerics.maps.space import Vector

Pair = tuple[int, int]
"""The numbers of an input block and an output block."""

DIFFERENCES = "finite-difference"
AUTODIFF = "autodiff"


class Outcome(Enum):
    """The outcome for one input and one output."""

    AGREES = "agrees"
    DIFFERS = "differs"
    UNDECIDED = "undecided"

    @property
    def sentence(self) -> str:
        """What the outcome means, in one sentence."""
        return _OUTCOMES[self]


_OUTCOMES = {
    Outcome.AGREES: "The gradient agrees with finite differences to within their error bound.",
    Outcome.DIFFERS: (
        "The gradient differs from finite differences by more than three times their error bound, along several "
        "directions, with several steps and at several points."
    ),
    Outcome.UNDECIDED: "The finite differences are not accurate enough to judge the gradient.",
}


class Doubt(Enum):
    """Why an outcome is undecided."""

    KINK = "kink"
    NOISE = "noisy-forward"
    DOMAIN = "domain"
    NO_SIGNAL = "no-signal"
    BUDGET = "budget"

    @property
    def sentence(self) -> str:
        """What the doubt means, in one sentence."""
        return _DOUBTS[self]


_DOUBTS = {
    Doubt.KINK: (
        "The function has no derivative here or nearby, and the gradient does not lie between the function's left "
        "and right slopes."
    ),
    Doubt.NOISE: (
        "The function's values are inexact far beyond float64 rounding: coarsely rounded, noisy, or from an "
        "iteration that stops early."
    ),
    Doubt.DOMAIN: "The function is not finite, or raises, at the point itself or at every nearby point that was tried.",
    Doubt.NO_SIGNAL: (
        "There is nothing to compare: the input or the output is empty, or the derivative is lost in rounding."
    ),
    Doubt.BUDGET: "The limit on function evaluations was reached before a decision.",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Entries of the Jacobian of one output with respect to one input, claimed and measured.

    `claimed`, `numeric` and `bound` are (rows, columns); `rows` and `columns` are flat indices within the output block
    and the input block; `complete` says that they are all of them. `point` is the full flat x of the measurement.
    `wide` says that it took steps as long as the input; `alone` that its rows, whose derivatives are far below those
    of others, are the only ones that differ, and are to be compared with themselves. `smooth` marks the entries that
    are two-sided derivatives, where differences told; None says all of them.
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
    alone: bool = False
    smooth: Mask | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class KinkNote:
    """An input entry that lies on a kink: slopes of the most affected output to both sides, and the claim.

    `output` is the flat number of that output (None for a projection of several), `slack` how far the slopes can be
    wrong. `jump` says that the output jumps there, and has no slopes.
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
        """Whether the claim lies between the slopes, as any choice of gradient at a kink does."""
        if self.jump:
            return True
        slack = 3 * self.slack + 1e-6 * (abs(self.left) + abs(self.right))
        return min(self.left, self.right) - slack <= self.claimed <= max(self.left, self.right) + slack


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockOutcome:
    """The outcome for one input block and one output block.

    `max_abs_error` is in units of the derivative; `max_rel_error` and `resolution` are relative to the largest entry
    of the block (in units where every input entry is scaled by its own size); `resolution` is the smallest such error
    that would have been noticed, None where nothing was bounded. `reference` says what the claim was compared with:
    differences of the map, or the witness (which differences of the map then certified). `special` is given where the
    claim is proven wrong at the point of the verification alone.
    """

    input: int
    output: int
    outcome: Outcome
    doubt: Doubt | None = None
    max_abs_error: float = 0.0
    max_rel_error: float = 0.0
    bound: float = 0.0
    resolution: float | None = None
    zero_everywhere: bool = False
    note: str | None = None
    table: Table | None = None
    wrong_columns: Indices | None = None
    reference: str = DIFFERENCES
    special: KinkNote | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Verification:
    """The outcomes of all blocks, the kinks met, and what it cost."""

    blocks: tuple[BlockOutcome, ...]
    kinks: tuple[KinkNote, ...]
    point: Vector
    moved: bool
    evaluations: int
    vjps: int
    notes: tuple[str, ...]
