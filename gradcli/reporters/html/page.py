"""The report as one HTML page: no network, readable without its script, which only filters and unfolds."""

from collections.abc import Iterator

from gradcli.reporters.escaping import markup, one_line
from gradcli.reporters.html.case import VERDICTS, case_body
from gradcli.reporters.html.frame import asset, page
from gradcli.reporters.wording import seconds, summary
from gradcli.results import CheckResult, Report
from gradcli.verdict import Verdict

_OPEN = 20
"""Cases that did not pass are unfolded at first, unless there are more than these."""


def html_report(report: Report) -> str:
    """The page. Text of the user's is escaped, and the policy of the page allows its own style and script alone."""
    body = (*_header(report), "<main>", *_tools(report), *_cases(report), "</main>")
    return page(
        f"gradcli: {report.verdict.value}",
        style=asset("page.css"),
        script=asset("page.js"),
        body=body,
        about=f" · seed {report.seed}",
    )


def fragment(report: Report) -> str:
    """The summary and the cases without the page around them, for a notebook's cell."""
    style = asset("page.css").replace(":root", ".gradcli").replace("body {", ".gradcli {")
    opening = f'<div class="gradcli"><style>{style}</style><p>{markup(summary(report))}</p>'
    return "\n".join([opening, *_cases(report), "</div>"])


def _header(report: Report) -> Iterator[str]:
    verdict = report.verdict.value
    yield "<header>"
    yield f'<h1>gradcli: <span class="{verdict}">{verdict}</span></h1>'
    yield f'<p class="soft">{markup(summary(report))}</p>'
    yield "</header>"


def _tools(report: Report) -> Iterator[str]:
    """The search and the filters; hidden until the script is there to serve them."""
    yield '<div class="tools" role="search" aria-label="Cases" hidden>'
    yield '<input type="search" id="search" aria-label="Search cases" placeholder="Search cases (press /)">'
    for verdict in VERDICTS:
        if number := report.count(verdict):
            box = f'<input type="checkbox" name="verdict" value="{verdict.value}" checked>'
            yield f'<label class="{verdict.value}">{box} {number} {verdict.value}</label>'
    yield '<button type="button" id="unfold">Unfold all</button><button type="button" id="fold">Fold all</button>'
    yield '<span id="count" class="soft" role="status" aria-live="polite"></span>'
    yield "</div>"


def _cases(report: Report) -> Iterator[str]:
    """The cases, those that need attention first."""
    ordered = sorted(enumerate(report.cases, 1), key=lambda each: VERDICTS.index(each[1].verdict))
    loud = sum(case.verdict in VERDICTS[:3] for case in report.cases)
    for number, case in ordered:
        unfolded = case.verdict in VERDICTS[:3] and loud <= _OPEN
        yield from _case(number, case, unfolded=unfolded)


def _case(number: int, case: CheckResult, *, unfolded: bool) -> Iterator[str]:
    verdict = case.verdict.value
    about = " ".join(finding.message for finding in case.findings)
    opening = f'<details class="case" id="case-{number}" data-verdict="{verdict}"'
    yield f'{opening} data-text="{markup(one_line(about).lower())}"{" open" * unfolded}>'
    yield (
        f'<summary><span class="verdict {verdict}">{verdict}</span>'
        f'<code class="name">{markup(one_line(case.case_id))}</code>'
        f'<span class="kind">{markup(_kind(case))}</span><span class="time">{seconds(case.seconds)}</span></summary>'
    )
    yield '<div class="body">'
    yield from case_body(case)
    yield "</div></details>"


def _kind(case: CheckResult) -> str:
    if case.verdict is Verdict.INCONCLUSIVE:
        return "" if case.reason is None else case.reason.value
    return case.findings[0].kind.value if case.findings else ""
