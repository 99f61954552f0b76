"""Results of a run whose names and texts were written to break the formats that reports are written in."""

from dataclasses import replace

from gradcli.findings import FindingKind
from gradcli.results import CheckResult, Report
from tests.reporters.results import ALL, ERROR, FAILED, FINDING, INCONCLUSIVE, PASSED

NASTY = (
    "<script>alert(1)</script>",
    "\"quoted\" and 'quoted'",
    "two\nlines\n::error file=a.py::injected",
    "  ::stop-commands::x",
    "##[error]old style",
    "emoji 🎉 and é and \u202eright to left",
    "\x1b[31mred\x1b[0m \x07\x00",
    "a | b ` c `` d \\ [link](http://example.org) ![i](x) <!-- -->",
    "]]> &amp; <b>",
    "lone surrogate \ud800 and \ufffe",
    "100%, a:b, c\r\nd",
    "{{7*7}} ${x} </title></textarea>",
)


def hostile_cases() -> tuple[CheckResult, ...]:
    """A case of each verdict for each nasty text, which stands in every place that a user can fill."""
    return tuple(made for text in NASTY for made in _with(text))


def _with(text: str) -> tuple[CheckResult, ...]:
    finding = replace(FINDING, message=f"{text}: 2 times", predicate=text, input=text)
    excerpt = replace(FAILED.excerpt, lines=(text, text, text)) if FAILED.excerpt else None
    changes = {"case_id": f"a.py:F[{text}]", "target": "a.py:F", "name": text}
    return (
        replace(PASSED, **changes, notes=(text,)),
        replace(FAILED, **changes, findings=(finding,), excerpt=excerpt, smallest=(text,), notes=(text,)),
        replace(ERROR, **changes, error=text, error_traceback=text, notes=(text,)),
        replace(INCONCLUSIVE, **changes, evidence=tuple(replace(e, note=text) for e in INCONCLUSIVE.evidence)),
    )


def many_kinds() -> Report:
    """Every kind of finding, every verdict, and the hostile texts."""
    kinds = tuple(
        replace(FAILED, case_id=f"mymodule:F{kind.code}", findings=(replace(FINDING, kind=kind),))
        for kind in FindingKind
    )
    return Report(cases=(*ALL, *kinds, *hostile_cases()), seed=3, seconds=12.5)
