"""What a report draws: blocks of a Jacobian, and the error against the step; plain numbers that travel."""

from typing import TYPE_CHECKING

from gradcli.frozen import dataclass

if TYPE_CHECKING:
    from gradcli.traces import TraceGraph

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
class GradientEntry:
    """One entry of a gradient: as backward returns it, and by differences of forward with their bound.

    `why` says what kept the entry from being measured, None where it was; then `bound` is finite.
    """

    index: tuple[int, ...]
    analytic: complex
    numeric: complex
    bound: float
    why: str | None = None

    @property
    def in_bounds(self) -> float:
        """The difference of the two as a multiple of the bound."""
        return in_bounds(self.analytic, self.numeric, self.bound)


@dataclass(frozen=True, slots=True, kw_only=True)
class GradientTable:
    """A few entries of the gradient of <grad_output, f> by one input, at one order.

    `of_ones` says whether grad_output is ones, rather than random numbers of both signs; from order 2 on, it is the
    cotangent of backward's gradients, and `at_ones` says the same of backward's grad_output. `references` are what the
    verdict compared this gradient with. `errors` holds, for equal parts of the input in row-major order, the difference
    along a random direction of the part as a multiple of its bound, NaN where there is none; empty where all entries
    are shown.
    """

    input: str
    order: int
    shape: tuple[int, ...]
    of_ones: bool
    references: tuple[str, ...]
    entries: tuple[GradientEntry, ...]
    entries_total: int
    errors: tuple[float, ...] = ()
    at_ones: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """All that is drawn for a case; `trace` is one forward and backward of it, where hooks fired in that."""

    blocks: tuple[JacobianBlock, ...] = ()
    curve: ErrorCurve | None = None
    tables: tuple[GradientTable, ...] = ()
    trace: "TraceGraph | None" = None


def in_bounds(analytic: complex, numeric: complex, bound: float) -> float:
    """The difference of two values as a multiple of the bound; zero where they are equal."""
    error = abs(analytic - numeric)
    return 0.0 if error == 0 else float(error / bound) if bound > 0 else float("inf")
