"""The report in GitHub's Markdown: a table of all cases, and each that did not pass unfolded below it."""

from collections.abc import Iterator

from gradcli.reporters.escaping import code_block, code_span, markdown, markup, one_line
from gradcli.reporters.plain import WORDS, plain_case
from gradcli.reporters.wording import magnitude, seconds, summary
from gradcli.results import CheckResult, Report
from gradcli.verdict import Verdict

_ORDER = (Verdict.FAILED, Verdict.ERROR, Verdict.INCONCLUSIVE, Verdict.PASSED, Verdict.SKIPPED)
_MARKS = {
    Verdict.PASSED: "✅",
    Verdict.FAILED: "❌",
    Verdict.INCONCLUSIVE: "❓",
    Verdict.ERROR: "⚠️",
    Verdict.SKIPPED: "⏭️",
}
_UNFOLDED = 50
"""How many cases are unfolded: GitHub refuses a step summary above 1 MiB."""


def markdown_report(report: Report) -> str:
    """The counts, a table with the cases that need attention first, and the text of each of those."""
    cases = sorted(report.cases, key=lambda case: _ORDER.index(case.verdict))
    loud = [case for case in cases if case.verdict in _ORDER[:3]]
    lines = [f"# gradcli: {markdown(report.verdict.value)}", "", markdown(summary(report)), ""]
    if cases:
        lines += ["| | case | finding | where | smallest detectable error | time |", "|---|---|---|---|---|---|"]
        lines += [_row(case) for case in cases]
    lines += [line for case in loud[:_UNFOLDED] for line in _details(case)]
    if len(loud) > _UNFOLDED:
        lines += ["", f"{len(loud) - _UNFOLDED} more cases that did not pass are in the table only."]
    return "\n".join(lines) + "\n"


def _row(case: CheckResult) -> str:
    cells = (
        f"{_MARKS[case.verdict]} {WORDS[case.verdict]}",
        code_span(case.case_id),
        _finding(case),
        _location(case),
        magnitude(case.resolution) if case.verdict is Verdict.PASSED and case.resolution is not None else "",
        seconds(case.seconds),
    )
    return f"| {' | '.join(cells)} |"


def _finding(case: CheckResult) -> str:
    if case.verdict is Verdict.FAILED and case.findings:
        first = case.findings[0]
        more = "" if len(case.findings) == 1 else f" and {len(case.findings) - 1} more"
        return code_span(first.kind.value) + more
    if case.verdict is Verdict.INCONCLUSIVE and case.reason is not None:
        return code_span(case.reason.value)
    return ""


def _location(case: CheckResult) -> str:
    place = case.findings[0].location if case.findings else None
    return "" if place is None else code_span(str(place))


def _details(case: CheckResult) -> Iterator[str]:
    yield ""
    yield f"<details><summary>{WORDS[case.verdict]} <code>{markup(one_line(case.case_id))}</code></summary>"
    yield ""
    yield code_block(plain_case(case), "text")
    yield ""
    yield "</details>"
