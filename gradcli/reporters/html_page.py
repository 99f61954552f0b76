"""The report as one HTML page: no network, readable without its script, which only filters and unfolds."""

import base64
import hashlib
from collections.abc import Iterator
from importlib.resources import files

from gradcli._version import __version__
from gradcli.reporters.escaping import markup, one_line
from gradcli.reporters.html_case import VERDICTS, case_body
from gradcli.reporters.wording import seconds, summary
from gradcli.results import CheckResult, Report
from gradcli.verdict import Verdict

_OPEN = 20
"""Cases that did not pass are unfolded at first, unless there are more than these."""


def html_report(report: Report) -> str:
    """The page. Text of the user's is escaped, and the policy of the page allows its own style and script alone."""
    style, script = _asset("page.css"), _asset("page.js")
    policy = f"default-src 'none'; style-src '{_digest(style)}'; script-src '{_digest(script)}'"
    parts = (
        "<!doctype html>",
        '<html lang="en">',
        '<head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">',
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">',
        f"<title>gradcli: {markup(report.verdict.value)}</title>",
        f"<style>{style}</style></head>",
        "<body>",
        *_header(report),
        "<main>",
        *_tools(report),
        *_cases(report),
        "</main>",
        f"<footer>gradcli {__version__} · seed {report.seed}</footer>",
        f"<script>{script}</script>",
        "</body></html>",
    )
    return "\n".join(parts) + "\n"


def fragment(report: Report) -> str:
    """The summary and the cases without the page around them, for a notebook's cell."""
    style = _asset("page.css").replace(":root", ".gradcli").replace("body {", ".gradcli {")
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


def _asset(name: str) -> str:
    return files("gradcli.reporters").joinpath(name).read_text(encoding="utf-8")


def _digest(text: str) -> str:
    """The hash by which a content security policy allows an inline style or script."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
