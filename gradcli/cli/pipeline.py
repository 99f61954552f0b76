"""The path of a check from what was asked to its exit code."""

from dataclasses import replace
from time import perf_counter

from gradcli.cli.options import format_from, inputs_from, reports_from, require_executor, shard_from
from gradcli.cli.progress import Progress
from gradcli.cli.request import CheckRequest
from gradcli.cli.show import Format, conclude, format_named, show, write_report
from gradcli.cli.staffing import Site, site
from gradcli.cli.streams import ReportStream, report_stream
from gradcli.errors import UsageError
from gradcli.results import CheckResult, Fault, Report
from gradcli.runner.configuration import default_targets
from gradcli.runner.execute import execute
from gradcli.runner.failures import FOLDER
from gradcli.runner.gather import gather_all
from gradcli.runner.interrupts import Interrupted
from gradcli.runner.limits import as_option, require_settings
from gradcli.runner.plan import CheckCase, plan
from gradcli.settings import Settings

_REFUSED = (Fault.USAGE, Fault.NOTHING)
"""Where nothing else came of any case nothing has been run, and no report is written."""


def check(request: CheckRequest) -> int:
    """Run the request and return the exit code."""
    stream = report_stream()
    settings = require_settings(request.settings, as_option)
    if request.in_process and (settings.jobs > 1 or settings.timeout is not None):
        raise UsageError("--in-process runs cases one after the other and cannot stop one: leave out -j and --timeout")
    require_executor(request.executor)
    with site(in_process=request.in_process, size=settings.jobs, timeout=settings.timeout) as here:
        return _checked(request, settings, here, stream)


def _checked(request: CheckRequest, settings: Settings, here: Site, stream: ReportStream) -> int:
    started = perf_counter()
    inputs = inputs_from(request.inputs, request.arguments)
    paths = reports_from(request.reports)
    settings = replace(settings, figures=any(path.suffix == ".html" for path in paths))
    shard = shard_from(request.shard)
    name = format_from(request.form, terminal=stream.isatty())
    form = format_named(name, verbose=request.verbose, quiet=request.quiet, terminal=stream.isatty())

    specs = gather_all(request.targets or default_targets(here.start), inputs, request.grad, staff=here.staff)
    cases = plan(specs, settings, shard)
    shown, end = _run(cases, settings, here, form, stream, Progress(len(cases), wanted=not request.quiet))
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
    if end is not None:
        raise end
    return report.exit_code


def _run(
    cases: tuple[CheckCase, ...],
    settings: Settings,
    here: Site,
    form: Format,
    stream: ReportStream,
    progress: Progress,
) -> tuple[list[CheckResult], Interrupted | None]:
    """The results, shown as they come; and the signal that ended the run before its end, if one did."""
    shown: list[CheckResult] = []
    results = execute(cases, here.staff, here.start, fail_fast=settings.fail_fast, failures=FOLDER)
    try:
        shown.extend(show(results, form, stream, progress))
    except Interrupted as end:
        return shown, end
    return shown, None
