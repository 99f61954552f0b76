"""The report as workflow commands of GitHub Actions: annotations beside the lines of backward."""

import hashlib

from gradcli.reporters.escaping import printable
from gradcli.reporters.plain import plain_case, plain_summary
from gradcli.results import CheckResult, Finding, Report
from gradcli.verdict import Verdict

SHOWN = 10
"""GitHub shows ten annotations of each level for a step (its documentation, "Limits for annotations")."""


def github_report(report: Report) -> str:
    """The cases in plain text, in which no workflow command is obeyed, then one command for each finding.

    Findings come first, then errors of the user's code, then inconclusive cases: GitHub shows only the first ten
    annotations of each level. Where there are more errors, a last command says how many.
    """
    return "".join([*(github_case(case) for case in report.cases), github_end(report)])


def github_end(report: Report) -> str:
    """What follows the cases: the commands, and the counts of the run."""
    commands = annotations(report)
    errors = sum(command.startswith("::error") for command in commands)
    if errors > SHOWN:
        commands.append(f"::notice title=gradcli::{errors - SHOWN} more errors are in the log of this step")
    return "\n".join([*commands, plain_summary(report)]) + "\n"


def github_case(case: CheckResult) -> str:
    """The plain text of a case; while it is printed, GitHub executes no commands."""
    text = github_text(case)
    opening, closing = window(hashlib.sha256(text.removesuffix("\n").encode()).hexdigest())
    return f"{opening}{text}{closing}"


def github_text(case: CheckResult) -> str:
    """The plain text of a case, to be printed where GitHub executes no commands."""
    return printable(plain_case(case)) + "\n"


def window(token: str) -> tuple[str, str]:
    """The commands between which GitHub executes none: those who write there must not know the token."""
    return f"::stop-commands::{token}\n", f"::{token}::\n"


def annotations(report: Report) -> list[str]:
    """The commands, the most severe first: a finding of the first derivative before one of a higher one."""
    found = [(finding.order, case, finding) for case in report.cases for finding in _findings(case)]
    failures = [_failure(case, finding) for _, case, finding in sorted(found, key=lambda each: each[0])]
    unnamed = [c for c in report.cases if c.verdict is Verdict.FAILED and not c.findings]
    errors = [c for c in report.cases if c.verdict is Verdict.ERROR]
    doubts = [c for c in report.cases if c.verdict is Verdict.INCONCLUSIVE]
    doubt = "notice" if report.allow_inconclusive else "warning"
    return [
        *failures,
        *(_command("error", f"failed: {case.case_id}", plain_case(case)) for case in unnamed),
        *(_command("error", f"error: {case.case_id}", case.error or plain_case(case)) for case in errors),
        *(_command(doubt, f"inconclusive: {case.case_id}", plain_case(case)) for case in doubts),
    ]


def _findings(case: CheckResult) -> tuple[Finding, ...]:
    return case.findings if case.verdict is Verdict.FAILED else ()


def _failure(case: CheckResult, finding: Finding) -> str:
    place = finding.location
    where = {} if place is None else {"file": place.file, "line": str(place.line)}
    return _command("error", f"{finding.kind.value}: {case.case_id}", finding.message, where)


def _command(level: str, title: str, message: str, where: dict[str, str] | None = None) -> str:
    properties = ",".join(f"{key}={_property(value)}" for key, value in {**(where or {}), "title": title}.items())
    return f"::{level} {properties}::{_data(message)}"


def _data(text: str) -> str:
    """A command's message, escaped as GitHub's own toolkit does."""
    return printable(text).replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    """A property of a command, in which colons and commas end it."""
    return _data(text).replace(":", "%3A").replace(",", "%2C")
