"""Plain text: one line a case that can be searched for, never cut off, with failures expanded below it."""

import shlex

from gradcli.reporters.escaping import one_line
from gradcli.reporters.narrative import story
from gradcli.reporters.wording import flags, magnitude, summary
from gradcli.results import CheckResult, Report
from gradcli.verdict import Verdict

WORDS = {
    Verdict.PASSED: "PASS",
    Verdict.FAILED: "FAIL",
    Verdict.INCONCLUSIVE: "INCONCLUSIVE",
    Verdict.ERROR: "ERROR",
    Verdict.SKIPPED: "SKIP",
}


def plain_case(result: CheckResult, *, verbose: bool = False) -> str:
    """The case's line, and what is to be said below it."""
    return "\n".join([headline(result), *(line.text for line in story(result, verbose=verbose))])


def plain_summary(report: Report) -> str:
    """The counts of the run on one line."""
    return summary(report)


def plain_report(report: Report) -> str:
    """The whole report; what `str(report)` gives."""
    return "\n".join([*(plain_case(case) for case in report.cases), plain_summary(report)])


def headline(result: CheckResult) -> str:
    """The verdict, the case, and what is known of it as key=value."""
    pairs = _failed(result) if result.verdict is Verdict.FAILED else _other(result)
    known = [f"{key}={value}" for key, value in pairs.items() if value]
    return one_line(" ".join([WORDS[result.verdict], result.case_id, *known]))


def _failed(result: CheckResult) -> dict[str, str | None]:
    finding = result.findings[0] if result.findings else None
    if finding is None:
        return _counts(result)
    return {
        "finding": finding.kind.value,
        "input": finding.input,
        "order": str(finding.order) if finding.order > 1 else None,
        "factor": finding.factor,
        "at": None if finding.location is None else shlex.quote(str(finding.location)),
        "replay": None if result.replay is None else shlex.quote(result.replay),
    }


def _other(result: CheckResult) -> dict[str, str | None]:
    if result.verdict is Verdict.ERROR:
        return {"seconds": f"{result.seconds:.3f}"}
    if result.verdict is Verdict.SKIPPED:
        return {}
    reason = {"reason": None if result.reason is None else result.reason.value}
    return (reason if result.verdict is Verdict.INCONCLUSIVE else {}) | _counts(result)


def _counts(result: CheckResult) -> dict[str, str | None]:
    return {
        "orders": ",".join(str(order) for order in result.orders),
        "expected": None if result.expected is None else f"'{result.expected}'",
        "resolution": None if result.resolution is None else magnitude(result.resolution),
        "forwards": str(result.forwards),
        "backwards": str(result.backwards),
        "seconds": f"{result.seconds:.3f}",
        "inferred": shlex.quote(flags(result.inputs)) if result.inputs_from == "inferred" and result.inputs else None,
    }
