"""The cases of a run, one after the other or in worker processes, to results in the order of the plan."""

from collections.abc import Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path

from gradcli.results import CheckResult
from gradcli.runner.case import run_case
from gradcli.runner.interference import end_refused
from gradcli.runner.isolate import run_isolated
from gradcli.runner.plan import CheckCase
from gradcli.settings import Settings
from gradcli.verdict import Verdict

_STOPPING = (Verdict.FAILED, Verdict.ERROR)


def execute(cases: Sequence[CheckCase], settings: Settings, *, failures: Path | None = None) -> Iterator[CheckResult]:
    """Results in the order of `cases`, each as soon as it and those before it are known.

    With `settings.jobs` above 1 or a `settings.timeout` the cases run in worker processes, which may crash or be
    killed without harm to the others. With `settings.fail_fast` the cases after the first failure are not run, and
    come as SKIPPED. Failures are saved in the folder `failures` as seen from where the run starts, and named as seen
    from there, though a target changes the working directory.
    """
    start = Path.cwd()
    failures = None if failures is None else start / failures
    isolated = settings.jobs > 1 or settings.timeout is not None
    results = run_isolated(cases, settings, failures) if isolated else _in_process(cases, failures)
    done = 0
    with closing(results):
        for result in results:
            done += 1
            yield _seen_from(start, result)
            if settings.fail_fast and result.verdict in _STOPPING:
                break
    for case in cases[done:]:
        yield replace(case.result(Verdict.SKIPPED), notes=("not run: stopped at the first failure",))


def _in_process(cases: Sequence[CheckCase], failures: Path | None) -> Generator[CheckResult, None, None]:
    for case in cases:
        with end_refused():
            result = run_case(case, failures=failures)
        yield result


def _seen_from(start: Path, result: CheckResult) -> CheckResult:
    """The result with the path of its saved failure relative to `start`, where it lies below."""
    saved = None if result.replay is None else Path(result.replay)
    if saved is None or not saved.is_relative_to(start):
        return result
    return result.with_replay(str(saved.relative_to(start)))
