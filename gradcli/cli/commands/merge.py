"""`gradcli merge`: several reports of one run, such as those of its shards, into one."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gradcli.cli.arguments.parameters import FormatName, Reports
from gradcli.cli.output.streams import report_stream
from gradcli.errors import UsageError

if TYPE_CHECKING:
    from gradcli.results import Report


def merge_command(
    files: Annotated[list[str], typer.Argument(metavar="FILE...", help="Reports of one run, in JSON or NDJSON.")],
    form: FormatName = None,
    report: Reports = None,
) -> int:
    """Merge JSON or NDJSON reports, complete or interrupted, into one; the exit code is that of the whole run."""
    from gradcli.cli.arguments.options import format_from, reports_from
    from gradcli.cli.output.show import conclude, format_named, opened, show_all, write_report
    from gradcli.documents import read_report

    stream = report_stream()
    paths = reports_from(report or ())
    name = format_from(form, terminal=stream.isatty())
    shown = format_named(name, verbose=False, quiet=False, terminal=stream.isatty())
    merged = merged_report([(file, read_report(Path(file))) for file in files])
    with opened(shown, stream):
        show_all(merged, shown, stream)
    conclude(merged, shown, stream)
    for path in paths:
        write_report(merged, path)
    return merged.exit_code


def merged_report(parts: Sequence[tuple[str, "Report"]]) -> "Report":
    """One report with the cases of all; `parts` are file names and reports.

    An inconclusive case counts unless it was allowed in every part that has one. The time is the sum of the parts'.

    Raises:
        UsageError: two parts have the same case, or were run with different seeds.
    """
    from gradcli.results import Report

    _refuse_repeated(parts)
    seeds = {report.seed: file for file, report in parts if not report.interrupted}
    if len(seeds) > 1:
        listed = ", ".join(f"{seed} in {file}" for seed, file in seeds.items())
        raise UsageError(
            f"the seeds of these reports differ ({listed}), so they come from several runs: give the reports of one run"
        )
    reports = [report for _, report in parts]
    doubtful = [report for report in reports if any(case.reason is not None for case in report.cases)]
    return Report(
        cases=tuple(case for report in reports for case in report.cases),
        seed=next(iter(seeds), reports[0].seed),
        seconds=sum(report.seconds for report in reports),
        allow_inconclusive=bool(doubtful) and all(report.allow_inconclusive for report in doubtful),
        interrupted=any(report.interrupted for report in reports),
    )


def _refuse_repeated(parts: Sequence[tuple[str, "Report"]]) -> None:
    first: dict[str, str] = {}
    for file, report in parts:
        for case in report.cases:
            if case.case_id in first:
                raise UsageError(
                    f"{file}: the case {case.case_id} is also in {first[case.case_id]}; give each case only once"
                )
            first[case.case_id] = file
