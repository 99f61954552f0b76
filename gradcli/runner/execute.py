"""Runs the cases and gives their results in order; no case can end the run."""

import re
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path

from gradcli.results import CheckResult
from gradcli.runner.jobs import Broken, CheckJob, Done, Outcome, Refused
from gradcli.runner.planning.import_folders import module_or_file_of
from gradcli.runner.planning.plan import CheckCase
from gradcli.runner.pool import Pool
from gradcli.runner.process.interrupts import Interrupted
from gradcli.verdict import Fault, Verdict

_STOPPING = (Verdict.FAILED, Verdict.ERROR)


def execute(
    cases: Sequence[CheckCase],
    pool: Pool,
    start: Path,
    *,
    known: Sequence[CheckResult | None] = (),
    fail_fast: bool = False,
    failures: Path | None = None,
) -> Iterator[CheckResult]:
    """Results in the order of `cases`, each as soon as it and those before it are known.

    Cases whose results are `known` from before, one or None for each case, are not run. With `fail_fast` the cases
    after the first failure are not run either, and come as SKIPPED. Failures are saved in the folder `failures` as seen
    from `start`, and named as seen from there.

    Raises:
        Interrupted: a signal came; the results known by then have been yielded.
    """
    failures = None if failures is None else start / failures
    known = known or [None] * len(cases)
    ready = [case for case, before in zip(cases, known, strict=True) if not (case.spec.problem or before)]
    jobs = [CheckJob(target=case.spec.target, case=case, failures=failures) for case in ready]
    done = 0
    with closing(pool.outcomes(jobs)) as outcomes:
        try:
            for case, before in zip(cases, known, strict=True):
                result = before or (refused(case) if case.spec.problem else concluded(case, next(outcomes)))
                done += 1
                yield _seen_from(start, result)
                if fail_fast and result.verdict in _STOPPING:
                    break
        except Interrupted:
            yield from (_seen_from(start, concluded(ready[n], outcome)) for n, outcome in pool.finished())
            raise
    for case, before in zip(cases[done:], known[done:], strict=True):
        yield before or replace(case.result(Verdict.SKIPPED), notes=("not run: stopped at the first failure",))


def concluded(case: CheckCase, outcome: Outcome) -> CheckResult:
    """The result that an outcome stands for."""
    if isinstance(outcome, Done):
        result: CheckResult = outcome.value
        return result
    if isinstance(outcome, Broken):
        last = outcome.trace.strip().splitlines()[-1]
        broken = _faulty(case, f"internal error in gradcli: {last}", outcome.exit_code)
        return replace(broken, error_traceback=outcome.trace)
    if isinstance(outcome, Refused):
        return _faulty(case, placed(case, outcome.message), outcome.exit_code)
    lost = _faulty(case, outcome.message_for(case.spec.target), outcome.exit_code, crashed=True)
    return replace(lost, seconds=outcome.seconds, error_traceback=outcome.trace)


def placed(case: CheckCase, message: str) -> str:
    """The message, with the place of the case in its spec, or the target, in front of it."""
    origin = case.spec.origin
    if origin is None:
        name = re.escape(case.spec.target.rpartition(":")[2])
        named = module_or_file_of(case.spec.target) in message or re.search(rf"\b{name}\b", message)
        return message if named else f"{case.spec.target}: {message}"
    return f"{origin}:{case.spec.column}: {message.removeprefix(f'{origin}: ')}"


def refused(case: CheckCase) -> CheckResult:
    """The result of a case with a problem."""
    problem = case.spec.problem
    assert problem is not None  # noqa: S101 - as just seen; for the type checker
    if problem.exit_code == 0:
        return replace(case.result(Verdict.SKIPPED), notes=(problem.message,))
    return _faulty(case, problem.message, problem.exit_code, crashed=problem.crashed)


def _faulty(case: CheckCase, message: str, exit_code: int, *, crashed: bool = False) -> CheckResult:
    fault = {
        Fault.INTERNAL.exit_code: Fault.INTERNAL,
        Fault.USAGE.exit_code: Fault.IMPORT if crashed else Fault.USAGE,
        Fault.NOTHING.exit_code: Fault.NOTHING,
    }.get(exit_code)
    verdict = Verdict.SKIPPED if fault is Fault.NOTHING else Verdict.ERROR
    return replace(case.result(verdict), error=message, fault=fault)


def _seen_from(start: Path, result: CheckResult) -> CheckResult:
    """The result with the path of its saved failure relative to `start`, where it lies below."""
    saved = None if result.replay is None else Path(result.replay)
    if saved is None or not saved.is_relative_to(start):
        return result
    return result.with_replay(str(saved.relative_to(start)))
