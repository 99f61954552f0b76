"""The path of a check from what was asked to its exit code."""

import sys
from dataclasses import dataclass, field, replace
from pathlib import Path
from time import perf_counter
from types import TracebackType
from typing import TYPE_CHECKING, final

from gradcli.cli.arguments.options import (
    choice_from,
    format_from,
    inputs_from,
    reports_from,
    shard_from,
)
from gradcli.cli.arguments.request import CheckRequest
from gradcli.cli.exits import write_error
from gradcli.cli.output.incremental import GrowingReport
from gradcli.cli.output.progress import Progress
from gradcli.cli.output.show import Format, conclude, format_named, opened, show, write_report
from gradcli.cli.output.slow_cases import slow_cases_reported, slowest
from gradcli.cli.output.streams import ReportStream, report_stream
from gradcli.cli.pools import Site, site, starting_folder
from gradcli.errors import UsageError
from gradcli.results import CheckResult, Report
from gradcli.runner.execute import execute
from gradcli.runner.planning.choose import chosen
from gradcli.runner.planning.configuration import Configuration, configuration, default_targets, settings_from
from gradcli.runner.planning.gather import gather_all
from gradcli.runner.planning.plan import CheckCase, plan
from gradcli.runner.process.interrupts import Interrupted, Interrupts
from gradcli.runner.store.last import note_failed
from gradcli.runner.store.saved import FOLDER
from gradcli.settings import Settings
from gradcli.verdict import Fault

if TYPE_CHECKING:
    from gradcli.runner.store.cache import Cache

_REFUSED = (Fault.USAGE, Fault.NOTHING)
"""Where nothing else came of any case nothing has been run, and no report is written."""


def check(request: CheckRequest) -> int:
    """Run the request and return the exit code."""
    stream = report_stream()
    configured = configuration(starting_folder())
    settings = settings_from(request.options, configured)
    if request.in_process and (settings.jobs > 1 or settings.timeout is not None):
        raise UsageError("--in-process runs cases one after the other and cannot stop one: leave out -j and --timeout")
    name = format_from(request.form, terminal=stream.isatty())
    form = format_named(name, verbose=request.verbose, quiet=request.quiet, terminal=stream.isatty())
    with (
        opened(form, stream),
        site(
            in_process=request.in_process,
            size=settings.jobs,
            timeout=settings.timeout,
            executor=request.executor,
            triton=settings.triton,
        ) as here,
        slow_cases_reported(here.pool, wanted=not request.quiet),
    ):
        run = _planned(request, settings, configured, here, form, stream)
        fail_fast = run.settings.fail_fast
        with run:
            for result in execute(
                run.cases, here.pool, here.start, known=run.known, fail_fast=fail_fast, failures=FOLDER
            ):
                run.add(result)
        if not form.closing:
            return run.concluded()
    with Interrupts():
        return run.concluded()


@final
@dataclass(slots=True, kw_only=True)
class Run:
    """The cases of a run and their results, each shown as it comes; `end` is the signal that ended the run early."""

    settings: Settings
    start: Path
    started: float
    cases: tuple[CheckCase, ...]
    known: tuple[CheckResult | None, ...]
    cache: "Cache | None"
    form: Format
    stream: ReportStream
    progress: Progress
    reports: tuple[GrowingReport, ...]
    shown: list[CheckResult] = field(default_factory=list)
    end: Interrupted | None = None

    def __enter__(self) -> None:
        self.progress.__enter__()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        """Take the progress away; an interrupt waits until what is known has been written."""
        self.progress.__exit__(kind, error, trace)
        self.end = error if isinstance(error, Interrupted) else None
        return self.end is not None

    def add(self, result: CheckResult) -> None:
        """Show a result, and append it to the reports that grow."""
        show(result, self.form, self.stream, self.progress)
        self.shown.append(result)
        for report in self.reports if result.fault not in _REFUSED else ():
            report.add(result)

    def concluded(self) -> int:
        """Show the end of the run, write the reports, and return the exit code. Raises Interrupted if a signal came."""
        report = Report(
            cases=tuple(self.shown),
            seed=self.settings.seed,
            seconds=perf_counter() - self.started,
            allow_inconclusive=self.settings.allow_inconclusive,
            interrupted=self.end is not None,
        )
        conclude(report, self.form, self.stream)
        is_run = any(case.fault not in _REFUSED for case in self.shown)
        for each in self.reports if is_run or report.interrupted else ():
            write_report(report, each.path)
        if is_run:
            _remember(self.start, self.cases, self.shown, self.cache)
        if self.end is not None:
            raise self.end
        return report.exit_code


def _planned(
    request: CheckRequest,
    settings: Settings,
    configured: Configuration,
    here: Site,
    form: Format,
    stream: ReportStream,
) -> Run:
    """The options that are left read, the targets gathered, and the cases planned."""
    started = perf_counter()
    inputs = inputs_from(request.inputs, request.arguments)
    paths = reports_from(request.reports or configured.reports)
    figures = any(path.suffix == ".html" for path in paths)
    settings = replace(settings, figures=figures, tables=request.verbose and not request.quiet)
    shard = shard_from(request.shard)
    choice = choice_from(request, here.start)
    targets = request.targets or default_targets(here.start, configured)
    try:
        specs = gather_all(targets, inputs, request.grad, request.saved, pool=here.pool)
    except Interrupted:
        empty = Report(cases=(), seed=settings.seed, seconds=perf_counter() - started, interrupted=True)
        for path in paths:
            write_report(empty, path)
        raise
    cases = plan(chosen(specs, choice), settings, shard)
    cache = _cache(here.start) if request.cache else None
    known = tuple(None if cache is None else cache.known(case) for case in cases)
    # A line that is drawn again and again would write over a debugger's prompt.
    wanted = not request.quiet and not request.in_process
    ids = [case.spec.case_id for case, before in zip(cases, known, strict=True) if before is None]
    return Run(
        settings=settings,
        start=here.start,
        started=started,
        cases=cases,
        known=known,
        cache=cache,
        form=form,
        stream=stream,
        progress=Progress(ids, wanted=wanted, slow=lambda: slowest(here.pool.activities())),
        reports=tuple(GrowingReport(path=path) for path in paths),
    )


def _cache(start: Path) -> "Cache":
    from gradcli.runner.store.cache import Cache

    return Cache(start=start, path=sys.path)


def _remember(start: Path, cases: tuple[CheckCase, ...], shown: list[CheckResult], cache: "Cache | None") -> None:
    """Write down what failed, for --last-failed, and what passed, for --cache; a warning where that is impossible."""
    done = zip(cases, shown, strict=True) if len(shown) == len(cases) else ()
    for problem in (note_failed(start, shown), None if cache is None else cache.keep(done)):
        if problem is not None:
            write_error(f"gradcli: {problem}")
