"""The path of a check from what was asked to its exit code."""

import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING

from gradcli.cli.exits import write_error
from gradcli.cli.growing import GrowingReport
from gradcli.cli.options import (
    choice_from,
    format_from,
    inputs_from,
    reports_from,
    shard_from,
)
from gradcli.cli.progress import Progress
from gradcli.cli.request import CheckRequest
from gradcli.cli.show import Format, conclude, format_named, show, write_report
from gradcli.cli.slow_cases import slow_cases_told, slowest
from gradcli.cli.staffing import Site, site, starting_folder
from gradcli.cli.streams import ReportStream, report_stream
from gradcli.errors import UsageError
from gradcli.results import CheckResult, Fault, Report
from gradcli.runner.choose import chosen
from gradcli.runner.configuration import Configuration, configuration, default_targets, settings_from
from gradcli.runner.execute import execute
from gradcli.runner.gather import gather_all
from gradcli.runner.interrupts import Interrupted
from gradcli.runner.last import note_failed
from gradcli.runner.plan import CheckCase, plan
from gradcli.runner.saved import FOLDER
from gradcli.settings import Settings

if TYPE_CHECKING:
    from gradcli.runner.cache import Cache

_REFUSED = (Fault.USAGE, Fault.NOTHING)
"""Where nothing else came of any case nothing has been run, and no report is written."""


def check(request: CheckRequest) -> int:
    """Run the request and return the exit code."""
    stream = report_stream()
    configured = configuration(starting_folder())
    settings = settings_from(request.options, configured)
    if request.in_process and (settings.jobs > 1 or settings.timeout is not None):
        raise UsageError("--in-process runs cases one after the other and cannot stop one: leave out -j and --timeout")
    with (
        site(
            in_process=request.in_process, size=settings.jobs, timeout=settings.timeout, executor=request.executor
        ) as here,
        slow_cases_told(here.staff, wanted=not request.quiet),
    ):
        return _checked(request, settings, configured, here, stream)


def _checked(
    request: CheckRequest, settings: Settings, configured: Configuration, here: Site, stream: ReportStream
) -> int:
    started = perf_counter()
    inputs = inputs_from(request.inputs, request.arguments)
    paths = reports_from(request.reports or configured.reports)
    figures = any(path.suffix == ".html" for path in paths)
    settings = replace(settings, figures=figures, tables=request.verbose and not request.quiet)
    shard = shard_from(request.shard)
    name = format_from(request.form, terminal=stream.isatty())
    form = format_named(name, verbose=request.verbose, quiet=request.quiet, terminal=stream.isatty())
    choice = choice_from(request, here.start)
    targets = request.targets or default_targets(here.start, configured)

    specs = gather_all(targets, inputs, request.grad, request.saved, staff=here.staff)
    cases = plan(chosen(specs, choice), settings, shard)
    cache = _cache(here.start) if request.cache else None
    growing = [GrowingReport(path=path) for path in paths]
    shown, end = _run(cases, settings, here, form, stream, request, cache, growing)
    report = Report(
        cases=tuple(shown),
        seed=settings.seed,
        seconds=perf_counter() - started,
        allow_inconclusive=settings.allow_inconclusive,
        interrupted=end is not None,
    )
    conclude(report, form, stream)
    for path in paths if any(case.fault not in _REFUSED for case in shown) else ():
        write_report(report, path)
    if any(case.fault not in _REFUSED for case in shown):
        _remember(here.start, cases, shown, cache)
    if end is not None:
        raise end
    return report.exit_code


def _cache(start: Path) -> "Cache":
    from gradcli.runner.cache import Cache

    return Cache(start=start, path=sys.path)


def _run(
    cases: tuple[CheckCase, ...],
    settings: Settings,
    here: Site,
    form: Format,
    stream: ReportStream,
    request: CheckRequest,
    cache: "Cache | None",
    growing: Sequence[GrowingReport],
) -> tuple[list[CheckResult], Interrupted | None]:
    """The results, shown as they come; and the signal that ended the run before its end, if one did."""
    shown: list[CheckResult] = []
    known = [None if cache is None else cache.known(case) for case in cases]
    left = tuple(case for case, result in zip(cases, known, strict=True) if result is None)
    # A line that is drawn again and again would write over a debugger's prompt.
    wanted = not request.quiet and not request.in_process
    ids = [case.spec.case_id for case in left]
    progress = Progress(ids, wanted=wanted, slow=lambda: slowest(here.staff.at_work()))
    results = execute(left, here.staff, here.start, fail_fast=settings.fail_fast, failures=FOLDER)
    try:
        for result in show(_in_order(known, results), form, stream, progress):
            shown.append(result)
            for report in growing if result.fault not in _REFUSED else ():
                report.add(result)
    except Interrupted as end:
        return shown, end
    return shown, None


def _in_order(known: Sequence[CheckResult | None], results: Iterator[CheckResult]) -> Iterator[CheckResult]:
    """The results of all cases: those that are known already, and those of the others as they come."""
    for result in known:
        if result is not None:
            yield result
        elif (fresh := next(results, None)) is not None:
            yield fresh
    yield from results


def _remember(start: Path, cases: tuple[CheckCase, ...], shown: list[CheckResult], cache: "Cache | None") -> None:
    """Write down what failed, for --last-failed, and what passed, for --cache; a warning where that is impossible."""
    done = zip(cases, shown, strict=True) if len(shown) == len(cases) else ()
    for problem in (note_failed(start, shown), None if cache is None else cache.keep(done)):
        if problem is not None:
            write_error(f"gradcli: {problem}")
