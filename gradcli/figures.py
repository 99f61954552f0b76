"""What a report draws: blocks of a Jacobian, and the error against the step; plain numbers that travel."""

from dataclasses import dataclass

Rows = tuple[tuple[float, ...], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class JacobianBlock:
    """A block of the Jacobian as claimed and as measured, rows for the output's entries, columns for the input's.

    `rows` and `columns` are flat indices into the output and the input; complex entries are pairs of reals,
    interleaved. `bound` is infinite where nothing could be measured.
    """

    input: str
    output: int
    order: int
    rows: tuple[int, ...]
    columns: tuple[int, ...]
    claimed: Rows
    numeric: Rows
    bound: Rows


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorCurve:
    """Central differences of one directional derivative over many steps.

    `steps` are relative to the size of the inputs; `slopes` the differences at each, `reference` the slope with the
    smallest bound, known to `bound`, and `claimed` what backward gives for the same direction and cotangent.
    """

    steps: tuple[float, ...]
    slopes: tuple[float, ...]
    reference: float
    bound: float
    claimed: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """All that is drawn for a case."""

    blocks: tuple[JacobianBlock, ...] = ()
    curve: ErrorCurve | None = None
