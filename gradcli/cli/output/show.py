"""Results of a command shown: one by one as they come, and summed up at the end."""

import io
import os
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from gradcli.cli.exits import say_fault
from gradcli.cli.output.progress import Progress
from gradcli.cli.output.streams import ReportStream
from gradcli.errors import UsageError
from gradcli.frozen import dataclass
from gradcli.reporters.ci.github import github_end, github_text, window
from gradcli.reporters.formats import SUFFIXES, WHOLE, renderer
from gradcli.reporters.ndjson import ndjson_case, ndjson_summary
from gradcli.reporters.plain import plain_case, plain_summary
from gradcli.results import CheckResult, Report
from gradcli.verdict import Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class Format:
    """How a run is shown: the text of each case as it comes, and of the whole at the end.

    `opening` and `closing` stand before and after everything that is printed while the user's code may run.
    """

    case: Callable[[CheckResult], str]
    end: Callable[[Report], str]
    opening: str = ""
    closing: str = ""


@contextmanager
def opened(form: Format, stream: ReportStream) -> Iterator[None]:
    """A context for what is printed before the end of a run."""
    stream.write(form.opening)
    stream.flush()
    try:
        yield
    finally:
        stream.write(form.closing)
        stream.flush()


def show(result: CheckResult, form: Format, stream: ReportStream, progress: Progress) -> None:
    """Show a result that has just come."""
    progress.clear()
    if result.fault is not None:
        say_fault(result)
    stream.write(form.case(result))
    stream.flush()
    progress.advance(result.case_id)


def show_all(report: Report, form: Format, stream: ReportStream) -> None:
    """Show the cases of a report that is known already."""
    for result in report.cases:
        stream.write(form.case(result))


def conclude(report: Report, form: Format, stream: ReportStream) -> None:
    """Show what is left to be said at the end."""
    stream.write(form.end(report))
    stream.flush()


def format_named(name: str, *, verbose: bool, quiet: bool, terminal: bool) -> Format:
    """The format called `name`; `quiet` leaves the cases out of those for people."""
    if name == "ndjson":
        return Format(case=ndjson_case, end=ndjson_summary)
    if name == "github":
        opening, closing = window(secrets.token_hex())
        case = _nothing if quiet else github_text
        return Format(case=case, end=_github_end, opening=opening, closing=closing)
    if name in WHOLE:
        return Format(case=_nothing, end=renderer(name))
    if name == "table":
        return _table(verbose=verbose, quiet=quiet, terminal=terminal)
    return _for_people(
        lambda result: plain_case(result, verbose=verbose) + "\n", lambda report: plain_summary(report) + "\n", quiet
    )


def write_report(report: Report, path: Path) -> None:
    """Write the report in the format of the suffix of `path`."""
    text = renderer(SUFFIXES[path.suffix])(report)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8", errors="backslashreplace")
    except OSError as error:
        raise UsageError(f"--report {path}: cannot be written: {error.strerror or error}") from error


def _github_end(report: Report) -> str:
    """The end of the `github` format; the table goes into the summary of the step where GitHub names a file for it."""
    summary = os.environ.get("GITHUB_STEP_SUMMARY")
    if summary:
        try:
            with open(summary, "a", encoding="utf-8") as file:
                file.write(renderer("markdown")(report))
        except OSError as error:
            raise UsageError(f"GITHUB_STEP_SUMMARY={summary}: cannot be written: {error.strerror or error}") from error
    return github_end(report)


def _table(*, verbose: bool, quiet: bool, terminal: bool) -> Format:
    from rich.console import Console
    from rich.text import Text

    from gradcli.reporters.console import WIDTH, console_case, console_summary

    width = min(Console().width or WIDTH, WIDTH) if terminal else None
    colour = terminal and not os.environ.get("NO_COLOR") and os.environ.get("TERM") not in ("dumb", "unknown")

    def rendered(text: Text) -> str:
        sink = io.StringIO()
        console = Console(
            file=sink,
            width=WIDTH,
            force_terminal=colour,
            color_system="standard" if colour else None,
            highlight=False,
            markup=False,
            emoji=False,
        )
        console.print(text, soft_wrap=True)
        return sink.getvalue()

    def case(result: CheckResult) -> str:
        shown = rendered(console_case(result, verbose=verbose, width=width))
        return shown if result.verdict is Verdict.PASSED else shown + "\n"

    return _for_people(case, lambda report: rendered(console_summary(report)), quiet)


def _for_people(case: Callable[[CheckResult], str], end: Callable[[Report], str], quiet: bool) -> Format:
    """The format without the cases that could not be checked: standard error tells of those."""
    return Format(
        case=_nothing if quiet else lambda result: "" if result.fault is not None else case(result),
        end=lambda report: end(report) if any(case.fault is None for case in report.cases) else "",
    )


def _nothing(result: CheckResult) -> str:  # noqa: ARG001 - the signature of a format that shows cases at the end
    return ""
