"""The path of a check from what was asked to its exit code."""

from pathlib import Path
from time import perf_counter

from gradcli.cli.options import format_from, inputs_from, reports_from, require_executor, shard_from
from gradcli.cli.progress import Progress
from gradcli.cli.request import CheckRequest
from gradcli.cli.show import conclude, format_named, show, write_report
from gradcli.cli.streams import report_stream
from gradcli.results import Report
from gradcli.runner.configuration import default_targets
from gradcli.runner.execute import execute
from gradcli.runner.failures import FOLDER
from gradcli.runner.gather import gather
from gradcli.runner.limits import as_option, require_settings
from gradcli.runner.plan import plan


def check(request: CheckRequest) -> int:
    """Run the request and return the exit code."""
    started = perf_counter()
    stream = report_stream()
    settings = require_settings(request.settings, as_option)
    require_executor(request.executor)
    inputs = inputs_from(request.inputs, request.arguments)
    paths = reports_from(request.reports)
    shard = shard_from(request.shard)
    name = format_from(request.form, terminal=stream.isatty())
    form = format_named(name, verbose=request.verbose, quiet=request.quiet, terminal=stream.isatty())

    specs = gather(request.targets or default_targets(Path.cwd()), inputs, request.grad)
    cases = plan(specs, settings, shard)
    results = execute(cases, settings, failures=FOLDER)
    shown = tuple(show(results, form, stream, Progress(len(cases), wanted=not request.quiet)))
    report = Report(
        cases=shown,
        seed=settings.seed,
        seconds=perf_counter() - started,
        allow_inconclusive=settings.allow_inconclusive,
    )
    conclude(report, form, stream)
    for path in paths:
        write_report(report, path)
    return report.exit_code
