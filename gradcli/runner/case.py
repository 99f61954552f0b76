"""One case from its target to its result."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.backends.attribution import (
    is_users_own,
    paths_from_here,
    phase_of,
    user_code_error,
    users_frames,
    users_traceback,
)
from gradcli.backends.base import Backend, Counters, Subject
from gradcli.backends.registry import backends_for
from gradcli.backends.torch.interpreter import interpreted_kernels
from gradcli.cases import Argument, InputsFrom, InputSpec
from gradcli.checks.battery import Part, only_higher_orders, run_battery
from gradcli.checks.given_precision import right_as_given
from gradcli.diagnosis.code.lints import source_lints
from gradcli.errors import InputsNotFoundError, LostDeviceError, OverrunError, UserCodeError, is_interrupt, presentable
from gradcli.results import CheckResult, Evidence, Stage, compared_orders, judge
from gradcli.runner.arguments.buffers import as_supplied, with_buffers
from gradcli.runner.arguments.prepare import Prepared, prepared
from gradcli.runner.arguments.searching import takes_dtype
from gradcli.runner.arguments.supply import Supply
from gradcli.runner.outcome.allow import Told, excused
from gradcli.runner.outcome.expect import against_expectation
from gradcli.runner.outcome.merge import merge, with_reason
from gradcli.runner.outcome.notes import telling_notes, time_notes
from gradcli.runner.planning.plan import CheckCase, claimed
from gradcli.runner.process.interference import compressed_matrices_checked, own_functions_restored
from gradcli.spec.hints import explain_exception
from gradcli.spec.resolve import resolve
from gradcli.targets import TargetInfo
from gradcli.verdict import Verdict
from gradcli.watchdog.case import Watchdog, watched

if TYPE_CHECKING:
    from gradcli.figures import Figures

BINDING = "binding"
"""What is booked before any check: the runs that tell what forward returns, and what it uses beside its inputs."""
FIGURES_SECONDS = 5.0
"""What the figures of a page may take of the budget."""


@dataclass(slots=True)
class _Trail:
    """The results of a case so far; kept if the user's code raises."""

    backend: str | None = None
    supply: Supply | None = None
    samples: int = 0
    wanted: int = 0
    evidence: list[tuple[Evidence, ...]] = field(default_factory=list)
    forwards: int = 0
    backwards: int = 0
    lints: tuple[str, ...] = ()
    stages: dict[str, Stage] = field(default_factory=dict)
    figures: "Figures | None" = None
    first: Subject | None = None
    """The target bound to the first sample."""
    known: dict[str, Any] = field(default_factory=dict)
    """What the required checks computed on the first sample, for the optional ones."""
    told: set[Told] = field(default_factory=set)
    """The allowed findings that have a note."""

    def booked(self, subject: Subject, run: Callable[[Subject], tuple[Evidence, ...]]) -> tuple[Evidence, ...]:
        """What a run of a new subject gives, and what it ran of its code added."""
        _book_outside(subject.counters, BINDING, Counters(), perf_counter())
        try:
            return run(subject)
        finally:
            self.book(subject.counters, Counters())

    def book(self, now: Counters, before: Counters) -> None:
        """Add what ran of a subject's code since `before`, a copy of its counters."""
        self.forwards += now.forward - before.forward
        self.backwards += now.backward - before.backward
        for name, stage in now.stages.items():
            if name not in before.stages:
                self.stages[name] = self.stages.get(name, Stage()) + stage


@dataclass(frozen=True, slots=True, kw_only=True)
class _Failure:
    """The target bound to a sample at which checks failed, and what they found."""

    subject: Subject
    evidence: tuple[Evidence, ...]

    def beside(self, higher: "_Failure | None") -> "_Failure":
        """This failure with the failures at higher orders, which may have been found at another sample."""
        if higher is None:
            return self
        wrong = [e for e in higher.evidence if e.verdict is Verdict.FAILED]
        if higher.subject is not self.subject:
            wrong = [replace(e, measured_at=higher.subject) for e in wrong]
        return replace(self, evidence=(*self.evidence, *wrong))


def run_case(case: CheckCase, *, failures: Path | None = None) -> CheckResult:
    """Check the target that the case names; a failure is saved in the folder `failures`, if one is given.

    Raises:
        UsageError: the target or an input of it is not as the case says.
    """
    return check_object(resolve(case.spec.target).object, case, failures=failures)


@paths_from_here()
def check_object(
    target: object,
    case: CheckCase,
    *,
    supply: Supply | None = None,
    backends: Sequence[Backend] = (),
    info: TargetInfo | None = None,
    failures: Path | None = None,
    watchdog: Watchdog | None = None,
    named: bool = True,
) -> CheckResult:
    """Check `target` itself as `case` says, with the inputs of `supply` or those that the case and inference give.

    `backends` are those that the target may belong to, in the order to be tried, and `info` what the first said of it;
    without them both are found from the target.
    `watchdog` knows what to leave out. Without `named`, a failure has evidence, and no findings.
    """
    started = perf_counter()
    trail = _Trail(supply=supply)
    watchdog = watchdog or Watchdog(budget=case.settings.budget)
    try:
        # gradcli's measurements may overflow, which the user can do nothing about.
        kept = np.errstate(all="ignore")
        with watchdog.watching(), interpreted_kernels(), own_functions_restored(), compressed_matrices_checked(), kept:
            ready = _prepared(target, case, backends, info, trail, watchdog)
            failure: _Failure | None = None
            for number, part in _schedule(ready, trail, watchdog):
                with _in_spite_of_errors(failure):
                    found = _examined(ready, number, part, trail, first_order_only=failure is not None)
                    failure = failure if found is None else found.beside(failure)
                if failure is not None and not only_higher_orders(failure.evidence):
                    break
            result = with_reason(_result(ready.case, trail))
            if failure is None:
                result = _with_resolution(result, ready.case)
            elif named:
                result = _explained(result, ready.case, failure, failures, watchdog)
                result = _with_patch(result, replace(ready, info=failure.subject.info), target, watchdog)
    except (UserCodeError, InputsNotFoundError) as error:
        result = _error(case, trail, error)
    except LostDeviceError as lost:
        result = _error(case, trail, lost.error)
    except BaseException as error:
        if is_interrupt(error) or not is_users_own(error):
            raise
        result = _error(case, trail, user_code_error(presentable(error), phase_of(error)))
    result = replace(result, notes=(*result.notes, *time_notes(watchdog, trail.samples, trail.wanted)))
    result = against_expectation(result, case.spec.expect)
    return replace(result, seconds=perf_counter() - started)


def _prepared(
    target: object,
    case: CheckCase,
    backends: Sequence[Backend],
    info: TargetInfo | None,
    trail: _Trail,
    watchdog: Watchdog,
) -> Prepared:
    """The target recognised, with its inputs."""
    backends = backends or backends_for(claimed(target, case.spec))
    trail.backend = backends[0].name
    with watchdog.during("inference of inputs", searching=True):
        ready = prepared(target, case, trail.supply, backends, info)
    trail.backend = ready.backend.name
    trail.supply = ready.supply
    watchdog.infers = ready.supply.source is InputsFrom.INFERRED and case.settings.timeout is None
    trail.wanted = len(ready.supply.samples)
    trail.lints = source_lints(ready.info)
    return ready


@contextmanager
def _in_spite_of_errors(failure: _Failure | None) -> Iterator[None]:
    """A context in which the user's code may raise, if a failure is known already: that stands then."""
    try:
        yield
    except Exception as error:
        if failure is None or not (isinstance(error, UserCodeError) or is_users_own(error)):
            raise


def _schedule(ready: Prepared, trail: _Trail, watchdog: Watchdog) -> Iterator[tuple[int, Part]]:
    """Which part of the battery runs on which sample: the required checks on each, the optional ones on the first.

    If forward is slow, further samples come last, as many as there is time for.
    """
    yield 0, Part.REQUIRED
    calls, later = watchdog.forwards, range(1, trail.wanted)
    may_wait = watchdog.is_slow and not ready.supply.all_asked
    if not may_wait:
        yield from ((number, Part.REQUIRED) for number in later)
    yield 0, Part.OPTIONAL
    if may_wait:
        yield from ((number, Part.REQUIRED) for number in later if watchdog.affords(calls))


def _examined(ready: Prepared, number: int, part: Part, trail: _Trail, *, first_order_only: bool) -> _Failure | None:
    """Run a part of the battery on sample `number`, perhaps of order 1 alone; returns what failed, if a check does.

    The evidence and the counts of calls go into the trail.
    """
    seed, settings = ready.case.seed + number, ready.case.settings
    settings = replace(settings, order=1) if first_order_only else settings
    sweep = number == 0 and ready.case.spec.expect.verdict != "surrogate"
    excuse = partial(excused, allow=dict(settings.allow), told=trail.told)
    arguments = None if part is Part.OPTIONAL else _drawn(ready, number, trail)
    with ready.backend.session():
        subject, known = _bound(ready, number, arguments, trail)
        shared = trail.known if number == 0 else {}
        run = partial(
            run_battery,
            settings=settings,
            seed=seed,
            sweep=sweep,
            sizes_given=ready.supply.source is not InputsFrom.INFERRED,
            excuse=excuse,
            part=part,
            known=shared,
        )
        try:
            evidence = run(subject)
            lower = _right_as_given(subject, evidence, seed)
        finally:
            trail.book(subject.counters, known)
        if lower is not None:
            shared.clear()
            evidence = trail.booked(lower, run)
            trail.first, subject = lower if number == 0 else trail.first, lower
        trail.evidence.append(evidence)
        failed = judge(evidence) is Verdict.FAILED
        if (settings.figures or settings.tables) and (failed or (number == 0 and part is Part.REQUIRED)):
            _draw(ready, subject, evidence, seed, trail)
    return _Failure(subject=subject, evidence=evidence) if failed else None


def _drawn(ready: Prepared, number: int, trail: _Trail) -> Sequence[Argument]:
    """The arguments of sample `number`."""
    trail.samples = number + 1
    arguments = ready.supply.samples[number]()
    if number == 0:
        trail.supply = ready.supply.with_shapes_of(arguments)
    return arguments


def _bound(
    ready: Prepared, number: int, arguments: Sequence[Argument] | None, trail: _Trail
) -> tuple[Subject, Counters]:
    """The target bound to a sample, or to the first without `arguments`; and the counts that the trail has already."""
    if arguments is None:
        assert trail.first is not None  # noqa: S101 - the first sample is bound first; for the type checker
        counters = trail.first.counters
        return trail.first, replace(counters, stages=dict(counters.stages))
    supply, began = trail.supply or ready.supply, perf_counter()
    subject = ready.backend.bind(ready.target, as_supplied(arguments, supply), info=ready.info)
    if number == 0:
        trail.supply = with_buffers(supply, subject, ready.case)
        if trail.supply is not supply:
            subject = ready.backend.bind(ready.target, as_supplied(arguments, trail.supply), info=ready.info)
        trail.first = subject
    _book_outside(subject.counters, BINDING, Counters(), began)
    return subject, Counters()


def _right_as_given(subject: Subject, evidence: tuple[Evidence, ...], seed: int) -> Subject | None:
    """The target in the inputs' own precision, where its gradients are right in it."""
    counters = subject.counters
    before, began = Counters(forward=counters.forward, backward=counters.backward), perf_counter()
    lower = right_as_given(subject, evidence, seed)
    _book_outside(counters, "given precision", before, began)
    return lower


def _book_outside(counters: Counters, name: str, before: Counters, began: float) -> None:
    """Book the runs since `before`, if there are any, that belong to no check."""
    if (counters.forward, counters.backward) != (before.forward, before.backward):
        counters.book(name, before, perf_counter() - began)


def _draw(ready: Prepared, subject: Subject, evidence: tuple[Evidence, ...], seed: int, trail: _Trail) -> None:
    """Measure what a report shows in addition to the verdict."""
    from gradcli.runner.outcome.details import drawn

    with watched() as dog:
        during = dog.during("figures", optional=True, share=FIGURES_SECONDS)
        with ready.backend.session(), suppress(OverrunError), during:
            trail.figures = drawn(ready, subject, evidence, seed=seed, before=trail.figures)


def _explained(
    result: CheckResult, case: CheckCase, failure: _Failure, failures: Path | None, watchdog: Watchdog
) -> CheckResult:
    """The result of a failure, with its findings and the smallest input."""
    from gradcli.runner.outcome.failed import explained

    return explained(result, case, failure.subject, failure.evidence, failures, watchdog)


def _with_patch(result: CheckResult, ready: Prepared, target: object, watchdog: Watchdog) -> CheckResult:
    """The result with a patch, where a finding came with a correction that is proven."""
    if all(finding.corrected is None for finding in result.findings):
        return result
    from gradcli.runner.outcome.patching import with_patch

    return with_patch(result, ready, target, watchdog, check_object)


def _result(case: CheckCase, trail: _Trail) -> CheckResult:
    evidence = merge(trail.evidence)
    supply, empty = trail.supply, case.result(judge(evidence, first_order=case.settings.first_order))
    return replace(
        empty,
        backend=trail.backend,
        samples=trail.samples,
        inputs_from=empty.inputs_from if supply is None else supply.source.value,
        inputs=_inputs(case, supply),
        evidence=evidence,
        notes=(*_declared(case), *_readings(trail), *trail.lints, *telling_notes(evidence)),
        forwards=trail.forwards,
        stages=tuple(trail.stages.items()),
        backwards=trail.backwards,
        orders=compared_orders(evidence),
        figures=trail.figures,
    )


def _readings(trail: _Trail) -> tuple[str, ...]:
    """How the inputs came about, and how what the target returned was read."""
    notes = () if trail.supply is None else trail.supply.notes
    return notes if trail.first is None else (*trail.first.readings, *notes)


def _declared(case: CheckCase) -> tuple[str, ...]:
    """What a spec allows the target, with its reason."""
    spec = case.spec
    if spec.nondeterminism is None:
        return ()
    return (f"results may differ between calls by {spec.nondeterminism:g} of their largest entry: {spec.reason}",)


def _inputs(case: CheckCase, supply: Supply | None) -> tuple[InputSpec, ...]:
    if supply is None:
        return case.spec.inputs or ()
    floating = case.settings.dtype
    return tuple(
        replace(spec, dtype=floating) if takes_dtype(spec) and floating != "float64" else spec
        for spec in (*supply.specs, *supply.held)
    )


def _with_resolution(result: CheckResult, case: CheckCase) -> CheckResult:
    """A pass becomes a failure if its resolution is worse than required."""
    required = case.settings.require_resolution
    if required is None or result.verdict is not Verdict.PASSED:
        return result
    if result.resolution is not None and result.resolution <= required:
        return result
    caught = "no error bound is known, so it is unknown which relative error would have been caught"
    if result.resolution is not None:
        caught = f"a relative error below {result.resolution:.1e} would not have been caught"
    note = f"{caught}, and --require-resolution demands {required:.1e}"
    evidence = Evidence(check="resolution", verdict=Verdict.FAILED, resolution=result.resolution, note=note)
    return replace(result, verdict=Verdict.FAILED, evidence=(*result.evidence, evidence), notes=(note, *result.notes))


def _error(case: CheckCase, trail: _Trail, error: UserCodeError | InputsNotFoundError) -> CheckResult:
    cause = error.__cause__
    hint = None if cause is None else explain_exception(cause)
    result = replace(_result(case, trail), verdict=Verdict.ERROR, error=str(error))
    if isinstance(error, UserCodeError):
        result = replace(result, error_traceback=error.user_traceback or None)
    elif cause is not None and users_frames(cause.__traceback__):
        result = replace(result, error_traceback=users_traceback(cause))
    call = trail.supply.call_of(trail.samples - 1) if trail.supply is not None and trail.samples > 1 else None
    notes = [] if call is None else [f"this was raised with other inputs than the first ones: {call}"]
    return replace(result, notes=(*([] if hint is None else [hint]), *notes, *result.notes))
