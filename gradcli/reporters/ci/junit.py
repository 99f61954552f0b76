"""The report as JUnit XML, which CI systems read as test results."""

from collections.abc import Iterable, Iterator, Sequence

from gradcli.reporters.escaping import markup, one_line
from gradcli.reporters.plain import headline, plain_case
from gradcli.results import CheckResult, Report
from gradcli.verdict import Verdict


def junit_report(report: Report) -> str:
    """One `testsuite` for each module, one `testcase` for each case.

    A wrong gradient is a `failure`, and the type is the name of the finding. What could not be concluded is an `error`:
    the user's code raised, or the case is inconclusive and that counts. An inconclusive case that is allowed, and one
    that was not run, are `skipped`. The file and line of backward stand in the message: the schema has no place for
    them. Valid by the schema of the Jenkins xUnit plugin (junit-10.xsd).
    """
    suites: dict[str, list[CheckResult]] = {}
    for case in report.cases:
        suites.setdefault(_module(case), []).append(case)
    lines = ['<?xml version="1.0" encoding="UTF-8"?>']
    lines.append(f'<testsuites name="gradcli" {_counts(report.cases, report)} time="{report.seconds:.3f}">')
    for module, cases in suites.items():
        lines += _suite(module, cases, report)
    return "\n".join([*lines, "</testsuites>"]) + "\n"


def _module(case: CheckResult) -> str:
    """The module or file of the target: what stands before the last colon."""
    return case.target.rpartition(":")[0] or case.target


def _suite(module: str, cases: Sequence[CheckResult], report: Report) -> Iterator[str]:
    skipped = sum(_outcome(case, report) == "skipped" for case in cases)
    spent = sum(case.seconds for case in cases)
    yield (f' <testsuite name="{_attribute(module)}" {_counts(cases, report)} skipped="{skipped}" time="{spent:.3f}">')
    for case in cases:
        yield from _case(case, module, report)
    yield " </testsuite>"


def _counts(cases: Iterable[CheckResult], report: Report) -> str:
    outcomes = [_outcome(case, report) for case in cases]
    counted = {
        "tests": len(outcomes),
        "failures": outcomes.count("failure"),
        "errors": outcomes.count("error"),
    }
    return " ".join(f'{name}="{count}"' for name, count in counted.items())


def _outcome(case: CheckResult, report: Report) -> str:
    if case.verdict is Verdict.INCONCLUSIVE:
        return "skipped" if report.allow_inconclusive else "error"
    return {Verdict.FAILED: "failure", Verdict.ERROR: "error", Verdict.SKIPPED: "skipped"}.get(case.verdict, "passed")


def _case(case: CheckResult, module: str, report: Report) -> Iterator[str]:
    name = case.case_id.removeprefix(f"{module}:")
    opening = f'  <testcase name="{_attribute(name)}" classname="{_attribute(module)}" time="{case.seconds:.3f}"'
    outcome = _outcome(case, report)
    if outcome == "passed" and not case.notes:
        yield f"{opening}/>"
        return
    yield f"{opening}>"
    if outcome == "passed":
        yield f"   <system-out>{markup(plain_case(case))}</system-out>"
    else:
        kind, message = _reason(case)
        about = f'type="{_attribute(kind)}" message="{_attribute(message)}"'
        yield f"   <{outcome} {about}>{markup(plain_case(case))}</{outcome}>"
    yield "  </testcase>"


def _reason(case: CheckResult) -> tuple[str, str]:
    """The type and the message of what was wrong, with the file and line where they are known."""
    if case.findings:
        first = case.findings[0]
        place = "" if first.location is None else f"{first.location}: "
        return first.kind.value, f"{place}{first.message}"
    if case.verdict is Verdict.INCONCLUSIVE:
        kind = "inconclusive" if case.reason is None else case.reason.value
        notes = [evidence.note for evidence in case.evidence if evidence.verdict is Verdict.INCONCLUSIVE]
        return kind, next((note for note in notes if note), headline(case))
    if case.verdict is Verdict.ERROR:
        return "error", case.error or headline(case)
    return case.verdict.value, case.notes[0] if case.notes else headline(case)


def _attribute(text: str) -> str:
    return markup(one_line(text))
