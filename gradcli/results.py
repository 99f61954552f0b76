"""What a run found: evidence, findings, results of cases and the report, as frozen values."""

import math
from collections.abc import Iterable
from dataclasses import field, replace
from typing import TYPE_CHECKING, Any

from gradcli._version import __version__
from gradcli.cases import Argument, Asked, InputSpec
from gradcli.display import Displayed
from gradcli.findings import FindingKind
from gradcli.frozen import dataclass
from gradcli.verdict import Fault, Reason, Verdict

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from gradcli.figures import Figures
    from gradcli.patches import Patch

    FloatArray = NDArray[np.float64]

SCHEMA = "gradcli.report/1"
LEFT_OUT = "left out on request"
"""The note of a check that was not run because the user did not want it."""
INTERRUPTED = 130
"""The exit code of a run that SIGINT ended."""
_EXIT_CODES = {
    Verdict.PASSED: 0,
    Verdict.SKIPPED: 0,
    Verdict.FAILED: 1,
    Verdict.ERROR: 3,
    Verdict.INCONCLUSIVE: 4,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Location:
    """A place in the user's code."""

    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Mismatch:
    """A block of the Jacobian as backward gives it and as measured, which differ; for the diagnosis, not serialised.

    Arrays have shape (rows, columns): `rows` are flat indices into the output, `columns` into the input.
    Complex inputs and outputs are pairs of reals, interleaved. `input_value` and `output_value` are
    those at `point`, the flat vector of all active inputs (and cotangents, at higher orders) where it was measured.
    `wrong_columns` are all wrong ones of a block too large for a `complete` table, where they are known.
    `wide` says that small steps show nothing there, so that no entry can be measured again with them.
    `alone` says that the `rows`, whose derivatives are far below those of the others, are the only ones that differ.
    `smooth` marks the entries that are two-sided derivatives; None says all of them.
    """

    input: int
    output: int
    order: int
    claimed: "FloatArray"
    numeric: "FloatArray"
    bound: "FloatArray"
    rows: "NDArray[np.int64]"
    columns: "NDArray[np.int64]"
    complete: bool
    point: "FloatArray"
    input_value: "NDArray[Any]"
    output_value: "NDArray[Any]"
    wrong_columns: "NDArray[np.intp] | None" = None
    wide: bool = False
    small_rows: bool = False
    smooth: "NDArray[np.bool_] | None" = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """What one check found about one input and output (either may be None: about the whole call).

    `check` names the check of the battery; errors and `bound` are absolute but for `max_rel_error` and `resolution`,
    which are relative to the largest entry of the block. `mismatch` is what the diagnosis turns into a `finding`.
    `measured_at` is the Subject at which the evidence was measured, where that is not the case's own. A failure that
    is `allowed` has the verdict PASSED.
    """

    check: str
    verdict: Verdict
    order: int = 1
    input: str | None = None
    output: int | None = None
    reference: str | None = None
    max_abs_error: float | None = None
    max_rel_error: float | None = None
    bound: float | None = None
    resolution: float | None = None
    reason: Reason | None = None
    note: str | None = None
    mismatch: Mismatch | None = None
    finding: "Finding | None" = None
    zero_everywhere: bool = False
    allowed: bool = False
    measured_at: object | None = None

    def settled(self) -> "Evidence":
        """The same evidence without what only the diagnosis needs, ready to be stored or sent."""
        if self.mismatch is None and self.measured_at is None:
            return self
        return replace(self, mismatch=None, measured_at=None)

    def to_dict(self) -> dict[str, Any]:
        """This check as in the report's `checks`."""
        return {
            "check": self.check,
            "order": self.order,
            "verdict": self.verdict.value,
            "input": self.input,
            "output": self.output,
            "reference": self.reference,
            "max_abs_error": plain_number(self.max_abs_error),
            "max_rel_error": plain_number(self.max_rel_error),
            "bound": plain_number(self.bound),
            "resolution": plain_number(self.resolution),
            "reason": None if self.reason is None else self.reason.value,
            "note": self.note,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One entry of a gradient: its index in the input, what was returned and what is right, with its bound.

    `analytic` is None where None was returned, or a gradient of another shape; then `returned_shape` tells it. `bound`
    is infinite where nothing was measured, and NaN in a report that was read from a document without bounds.
    """

    index: tuple[int, ...]
    analytic: complex | None
    numeric: complex
    bound: float
    output_index: tuple[int, ...] = ()
    returned_shape: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A named mistake: the sentence, where it shows, the worst entries, and the line of backward.

    `stray` is the input in whose place the gradient was returned, where gradients are mixed up. `corrected` is the text
    of the user's file with the mistake corrected, where one edit was found that does it; reports leave it out.
    """

    kind: FindingKind
    message: str
    order: int = 1
    input: str | None = None
    output: int | None = None
    entries: tuple[Entry, ...] = ()
    entries_total: int | None = None
    wrong_total: int | None = None
    predicate: str | None = None
    factor: str | None = None
    location: Location | None = None
    hint: str | None = None
    stray: str | None = None
    corrected: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """This finding as in the report's `findings`."""
        return {
            "code": self.kind.code,
            "name": self.kind.value,
            "message": self.message,
            "order": self.order,
            "input": self.input,
            "output": self.output,
            "entries": [list(entry.index) for entry in self.entries],
            "entries_total": self.entries_total,
            "predicate": self.predicate,
            "factor": self.factor,
            "analytic": [plain_number(entry.analytic) for entry in self.entries],
            "numeric": [plain_number(entry.numeric) for entry in self.entries],
            "bounds": [plain_number(entry.bound) for entry in self.entries],
            "location": None if self.location is None else {"file": self.location.file, "line": self.location.line},
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceExcerpt:
    """Lines of the user's file around a place, for showing; `first` is the number of the first line."""

    file: str
    first: int
    lines: tuple[str, ...]
    marked: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """What one check cost: runs of forward and backward, and wall time in seconds."""

    forward: int = 0
    backward: int = 0
    seconds: float = 0.0

    def __add__(self, other: "Stage") -> "Stage":
        return Stage(
            forward=self.forward + other.forward,
            backward=self.backward + other.backward,
            seconds=self.seconds + other.seconds,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckResult:
    """The result of one case; with a `fault` the case could not be checked, and `error` says why."""

    case_id: str
    target: str
    name: str | None
    backend: str | None
    verdict: Verdict
    seed: int
    samples: int
    inputs_from: str | None
    inputs: tuple[InputSpec, ...] = ()
    evidence: tuple[Evidence, ...] = ()
    findings: tuple[Finding, ...] = ()
    notes: tuple[str, ...] = ()
    error: str | None = None
    error_traceback: str | None = None
    excerpt: SourceExcerpt | None = None
    smallest: tuple[str, ...] = ()
    forwards: int = 0
    backwards: int = 0
    seconds: float = 0.0
    stages: tuple[tuple[str, Stage], ...] = ()
    replay: str | None = None
    expected: str | None = None
    orders: tuple[int, ...] = ()
    fault: Fault | None = None
    arguments: tuple[Argument, ...] = field(default=(), repr=False)
    figures: "Figures | None" = field(default=None, repr=False)
    patch: "Patch | None" = field(default=None, repr=False)
    asked: Asked | None = field(default=None, repr=False, compare=False)

    @property
    def resolution(self) -> float | None:
        """The largest resolution among the checks that passed by an error bound; None where there was none."""
        known = [e.resolution for e in self.evidence if e.resolution is not None and e.verdict is Verdict.PASSED]
        return max(known, default=None)

    @property
    def reason(self) -> Reason | None:
        """The first reason for which the case is inconclusive."""
        return next((e.reason for e in self.evidence if e.reason is not None), None)

    def to_dict(self) -> dict[str, Any]:
        """This case as in the report's `cases`."""
        return {
            "id": self.case_id,
            "target": self.target,
            "name": self.name,
            "backend": self.backend,
            "verdict": self.verdict.value,
            "seed": self.seed,
            "samples": self.samples,
            "inputs_from": self.inputs_from,
            "inputs": [input_to_dict(spec) for spec in self.inputs],
            "checks": [evidence.to_dict() for evidence in self.evidence],
            "findings": [finding.to_dict() for finding in self.findings],
            "notes": list(self.notes),
            "error": self.error,
            "fault": None if self.fault is None else self.fault.value,
            "expected": self.expected,
            "smallest": list(self.smallest),
            "evaluations": {"forward": self.forwards, "backward": self.backwards},
            "seconds": self.seconds,
            "replay": self.replay,
        }

    def with_replay(self, path: str) -> "CheckResult":
        """The same result, replayable from `path`."""
        return replace(self, replay=path)


@dataclass(frozen=True, slots=True, kw_only=True)
class Report(Displayed):
    """The results of a run; an `interrupted` one lacks the cases that had not ended by then."""

    cases: tuple[CheckResult, ...]
    seed: int = 0
    seconds: float = 0.0
    allow_inconclusive: bool = False
    interrupted: bool = False

    @property
    def verdict(self) -> Verdict:
        """The run's verdict: the one that decides the exit code. An interrupted run has not passed."""
        seen = {case.verdict for case in self.cases} | ({Verdict.INCONCLUSIVE} if self.interrupted else set())
        ranked = (Verdict.FAILED, Verdict.ERROR, Verdict.INCONCLUSIVE)
        return next((v for v in ranked if v in seen), Verdict.PASSED)

    @property
    def ok(self) -> bool:
        """True where the exit code is 0."""
        return self.exit_code == 0

    @property
    def exit_code(self) -> int:
        """The first of 70, 2, 1, 3, 4 and 5 that stands for a case; 0 where all passed.

        Where the run was interrupted and the cases that ended did not fail: 130.
        """
        codes = {case.fault.exit_code if case.fault else _EXIT_CODES[case.verdict] for case in self.cases}
        if self.allow_inconclusive:
            codes.discard(_EXIT_CODES[Verdict.INCONCLUSIVE])
        if all(case.verdict is Verdict.SKIPPED for case in self.cases):
            codes.add(Fault.NOTHING.exit_code)
        if self.interrupted:
            codes.add(INTERRUPTED)
        return next((code for code in (70, 2, 1, INTERRUPTED, 3, 4, 5) if code in codes), 0)

    def count(self, verdict: Verdict) -> int:
        """How many cases came to `verdict`."""
        return sum(case.verdict is verdict for case in self.cases)

    def to_dict(self) -> dict[str, Any]:
        """The document of `--format json`, schema gradcli.report/1."""
        counts = {verdict.value: self.count(verdict) for verdict in Verdict}
        return {
            "schema": SCHEMA,
            "gradcli": __version__,
            "seed": self.seed,
            "verdict": self.verdict.value,
            "exit_code": self.exit_code,
            **({"interrupted": True} if self.interrupted else {}),
            "summary": {"cases": len(self.cases), **counts, "seconds": self.seconds},
            "cases": [case.to_dict() for case in self.cases],
        }


def judge(evidence: Iterable[Evidence], *, first_order: bool = True) -> Verdict:
    """The verdict of a case from its evidence: any failure fails; a pass needs one bounded comparison.

    With `first_order` it has to be one of the first derivative: a right second one says little about the first.
    Raises nothing; no evidence at all is INCONCLUSIVE.
    """
    seen = [e for e in evidence if e.verdict is not Verdict.SKIPPED]
    for verdict in (Verdict.FAILED, Verdict.ERROR, Verdict.INCONCLUSIVE):
        if any(e.verdict is verdict for e in seen):
            return verdict
    compared = [e for e in seen if e.bound is not None or e.zero_everywhere]
    return Verdict.PASSED if any(e.order == 1 or not first_order for e in compared) else Verdict.INCONCLUSIVE


def compared_orders(evidence: Iterable[Evidence]) -> tuple[int, ...]:
    """The orders of the derivatives that were compared with another measurement, or in which something is wrong."""
    seen = [e for e in evidence if e.verdict is not Verdict.SKIPPED]
    return tuple(sorted({e.order for e in seen if e.verdict is Verdict.FAILED or _is_compared(e)}))


def _is_compared(e: Evidence) -> bool:
    """Whether a derivative was compared. Documents do not keep `zero_everywhere`, but the input and the reference."""
    return e.bound is not None or (e.input is not None and e.reference not in (None, "algebra"))


def plain_number(value: complex | None) -> Any:
    """A JSON number; non-finite ones as "nan", "inf", "-inf"; a complex one as [real, imaginary]."""
    if value is None:
        return None
    if isinstance(value, complex):
        return [plain_number(value.real), plain_number(value.imag)] if value.imag else plain_number(value.real)
    number = float(value)
    if math.isnan(number):
        return "nan"
    if math.isinf(number):
        return "inf" if number > 0 else "-inf"
    return number


def input_to_dict(spec: InputSpec) -> dict[str, Any]:
    """One input as in the report's `inputs`."""
    if spec.kind == "value":
        value = spec.value if isinstance(spec.value, bool | int | float | str | list | None) else repr(spec.value)
        return {"name": spec.name, "kind": "value", "value": plain_number(value) if isinstance(value, float) else value}
    return {
        "name": spec.name,
        "kind": "tensor",
        "shape": list(spec.shape or ()),
        "dtype": spec.dtype or "float64",
        "domain": spec.domain,
        "requires_grad": True if spec.requires_grad is None else spec.requires_grad,
    }
