"""One case from its target to its result."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from time import perf_counter

from gradcli.backends.base import Backend, Counters, Subject
from gradcli.backends.guard import is_users_own, phase_of, user_code_error, users_frames, users_traceback
from gradcli.backends.registry import backends_for
from gradcli.cases import InputSpec
from gradcli.checks.battery import Part, run_battery
from gradcli.diagnosis.lints import source_lints
from gradcli.errors import InputsNotFoundError, UserCodeError, is_interrupt, presentable
from gradcli.figures import Figures
from gradcli.results import CheckResult, Evidence, Stage, judge
from gradcli.runner.allow import excused
from gradcli.runner.buffers import as_supplied, with_buffers
from gradcli.runner.expect import against_expectation
from gradcli.runner.interference import own_kept
from gradcli.runner.merge import merge
from gradcli.runner.notes import telling_notes, time_notes
from gradcli.runner.plan import CheckCase, claimed
from gradcli.runner.prepare import Prepared, prepared
from gradcli.runner.supply import Supply, takes_dtype
from gradcli.spec.hints import explain_exception
from gradcli.spec.resolve import resolve
from gradcli.targets import TargetInfo
from gradcli.verdict import Verdict
from gradcli.watchdog.case import Watchdog, watched

FIGURES_SECONDS = 5.0
"""What the figures of a page may take of the budget."""


@dataclass(slots=True)
class _Trail:
    """What has been seen of a case so far; kept when the user's code raises half-way."""

    backend: str | None = None
    supply: Supply | None = None
    samples: int = 0
    wanted: int = 0
    evidence: list[tuple[Evidence, ...]] = field(default_factory=list)
    forwards: int = 0
    backwards: int = 0
    lints: tuple[str, ...] = ()
    stages: dict[str, Stage] = field(default_factory=dict)
    figures: Figures | None = None

    def book(self, now: Counters, before: Counters) -> None:
        """Add what ran of a subject's code since `before`, a copy of its counters."""
        self.forwards += now.forward - before.forward
        self.backwards += now.backward - before.backward
        for name, stage in now.stages.items():
            if name not in before.stages:
                self.stages[name] = self.stages.get(name, Stage()) + stage


def run_case(case: CheckCase, *, failures: Path | None = None) -> CheckResult:
    """Check the target that the case names; a failure is saved in the folder `failures`, if one is given.

    Raises:
        UsageError: the target or an input of it is not as the case says.
    """
    return check_object(resolve(case.spec.target).object, case, failures=failures)


def check_object(
    target: object,
    case: CheckCase,
    *,
    supply: Supply | None = None,
    backends: Sequence[Backend] = (),
    info: TargetInfo | None = None,
    failures: Path | None = None,
    watchdog: Watchdog | None = None,
) -> CheckResult:
    """Check `target` itself as `case` says, with the inputs of `supply` or those that the case and inference give.

    `backends` are those that the target may belong to, in the order to be tried, and `info` what the first said of it;
    without them the target tells.
    `watchdog` knows what to leave out.
    """
    started = perf_counter()
    trail = _Trail(supply=supply)
    watchdog = watchdog or Watchdog(budget=case.settings.budget)
    try:
        with watchdog.watching(), own_kept():
            result = _checked(target, case, backends, info, trail, failures, watchdog)
    except (UserCodeError, InputsNotFoundError) as error:
        result = _error(case, trail, error)
    except BaseException as error:
        if is_interrupt(error) or not is_users_own(error):
            raise
        result = _error(case, trail, user_code_error(presentable(error), phase_of(error)))
    result = replace(result, notes=(*result.notes, *time_notes(watchdog, trail.samples, trail.wanted)))
    result = against_expectation(result, case.spec.expect)
    return replace(result, seconds=perf_counter() - started)


def _checked(
    target: object,
    case: CheckCase,
    backends: Sequence[Backend],
    info: TargetInfo | None,
    trail: _Trail,
    failures: Path | None,
    watchdog: Watchdog,
) -> CheckResult:
    backends = backends or backends_for(claimed(target, case.spec))
    trail.backend = backends[0].name
    with watchdog.during("inference of inputs", searching=True):
        ready = prepared(target, case, trail.supply, backends, info)
    trail.backend = ready.backend.name
    case, trail.supply = ready.case, ready.supply
    trail.lints = source_lints(ready.info)
    for subject in _examinations(ready, trail, watchdog):
        if judge(trail.evidence[-1]) is Verdict.FAILED:
            from gradcli.runner.failed import explained

            return explained(_result(case, trail), case, subject, trail.evidence[-1], failures, watchdog)
    return _with_resolution(_result(case, trail), case)


def _examinations(ready: Prepared, trail: _Trail, watchdog: Watchdog) -> Iterator[Subject]:
    """The samples put through what a case needs, then the first one through what time allows.

    Of a slow forward the further samples come last, as many as can be afforded.
    """
    trail.wanted = len(ready.supply.samples)
    yield (first := _examined(ready, 0, trail))
    calls, later = watchdog.forwards, range(1, trail.wanted)
    may_wait = watchdog.is_slow and not ready.supply.all_asked
    if not may_wait:
        yield from (_examined(ready, number, trail) for number in later)
    _put_through(ready, first, 0, Part.OPTIONAL, trail)
    yield first
    if may_wait:
        yield from (_examined(ready, number, trail) for number in later if watchdog.affords(calls))


def _examined(ready: Prepared, number: int, trail: _Trail) -> Subject:
    """Sample `number` put through the battery; its evidence goes into the trail."""
    trail.samples = number + 1
    arguments = ready.supply.samples[number]()
    if number == 0:
        trail.supply = ready.supply.with_shapes_of(arguments)
    supply = trail.supply or ready.supply
    with ready.backend.session():
        subject = ready.backend.bind(ready.target, as_supplied(arguments, supply), info=ready.info)
        if number == 0:
            trail.supply = with_buffers(supply, subject, ready.case)
            if trail.supply is not supply:
                subject = ready.backend.bind(ready.target, as_supplied(arguments, trail.supply), info=ready.info)
        _put_through(ready, subject, number, Part.REQUIRED, trail)
    return subject


def _put_through(ready: Prepared, subject: Subject, number: int, part: Part, trail: _Trail) -> None:
    """Add what a part of the battery finds, and what it cost, to the trail; the call that bound the subject counts."""
    counters = subject.counters
    known = replace(counters, stages=dict(counters.stages)) if part is Part.OPTIONAL else Counters()
    sweep = number == 0 and ready.case.spec.expect.verdict != "surrogate"
    seed, settings = ready.case.seed + number, ready.case.settings
    excuse = partial(excused, allow=dict(settings.allow))
    try:
        with ready.backend.session():
            evidence = run_battery(subject, settings, seed=seed, sweep=sweep, excuse=excuse, part=part)
    finally:
        trail.book(counters, known)
    trail.evidence.append(evidence)
    first = number == 0 and part is Part.REQUIRED
    if (settings.figures or settings.tables) and (first or judge(evidence) is Verdict.FAILED):
        from gradcli.runner.drawn import drawn

        with watched() as dog, ready.backend.session(), dog.during("figures", optional=True, share=FIGURES_SECONDS):
            trail.figures = drawn(ready, subject, evidence, seed=seed, before=trail.figures)


def _result(case: CheckCase, trail: _Trail) -> CheckResult:
    evidence = merge(trail.evidence)
    supply = trail.supply
    return replace(
        case.result(judge(evidence)),
        backend=trail.backend,
        samples=trail.samples,
        inputs_from=None if supply is None else supply.source.value,
        inputs=_inputs(case, supply),
        evidence=evidence,
        notes=(*_declared(case), *(() if supply is None else supply.notes), *trail.lints, *telling_notes(evidence)),
        forwards=trail.forwards,
        stages=tuple(trail.stages.items()),
        backwards=trail.backwards,
        orders=tuple(sorted({e.order for e in evidence if e.verdict is not Verdict.SKIPPED})),
        figures=trail.figures,
    )


def _declared(case: CheckCase) -> tuple[str, ...]:
    """What a spec allows the target, with its reason."""
    spec = case.spec
    if spec.nondeterminism is None:
        return ()
    return (f"results may vary by {spec.nondeterminism:g} of the largest: {spec.reason}",)


def _inputs(case: CheckCase, supply: Supply | None) -> tuple[InputSpec, ...]:
    if supply is None:
        return case.spec.inputs or ()
    floating = case.settings.dtype
    return tuple(
        replace(spec, dtype=floating) if takes_dtype(spec) and floating != "float64" else spec
        for spec in (*supply.specs, *supply.held)
    )


def _with_resolution(result: CheckResult, case: CheckCase) -> CheckResult:
    """A pass becomes a failure where it would not have caught the error asked for."""
    required = case.settings.require_resolution
    if required is None or result.verdict is not Verdict.PASSED:
        return result
    if result.resolution is not None and result.resolution <= required:
        return result
    had = "unknown" if result.resolution is None else f"{result.resolution:.1e}"
    note = f"resolution {had}, and {required:.1e} is required: a relative error below it would not have been caught"
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
    return result if hint is None else replace(result, notes=(hint, *result.notes))
