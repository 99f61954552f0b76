"""`gradcli replay`: a saved failure, run again."""

from dataclasses import replace
from pathlib import Path
from time import perf_counter
from typing import Annotated

import typer

from gradcli.cli.arguments.completion import leave_to_shell
from gradcli.cli.arguments.parameters import FormatName, InProcess, Verbose


def replay_command(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE", help=("A saved failure, a file in .gradcli/failures."), autocompletion=leave_to_shell
        ),
    ],
    form: FormatName = None,
    in_process: InProcess = False,
    verbose: Verbose = False,
) -> int:
    """Run a saved failure again, with exactly the arguments that failed."""
    from gradcli.cli.arguments.options import format_from
    from gradcli.cli.output.show import conclude, format_named, opened
    from gradcli.cli.output.streams import report_stream
    from gradcli.cli.pools import site
    from gradcli.results import Report
    from gradcli.runner.jobs import ReplayJob
    from gradcli.runner.store.failures import load

    started = perf_counter()
    stream = report_stream()
    name = format_from(form, terminal=stream.isatty())
    shown_as = format_named(name, verbose=verbose, quiet=False, terminal=stream.isatty())
    failure = load(file)
    with opened(shown_as, stream):
        with site(in_process=in_process) as here:
            result = here.do(ReplayJob(target=failure.target, failure=failure, tables=verbose))
        result = replace(result, replay=str(file))
        report = Report(cases=(result,), seed=failure.seed, seconds=perf_counter() - started)
        stream.write(shown_as.case(result))
    conclude(report, shown_as, stream)
    return report.exit_code
