"""Expectations of a spec: a case that must fail passes if it fails as stated; a surrogate gradient may differ."""

from dataclasses import replace

from gradcli.cases import Expectation
from gradcli.findings import SURROGATE_ADVICE, FindingKind
from gradcli.results import CheckResult
from gradcli.verdict import Verdict

VALUE_FINDINGS = frozenset(
    {
        FindingKind.WRONG_FACTOR,
        FindingKind.WRONG_SIGN,
        FindingKind.TRANSPOSED,
        FindingKind.SWAPPED_GRADIENTS,
        FindingKind.MISSING_GRADIENT,
        FindingKind.MISSING_REDUCTION,
        FindingKind.WRONG_REDUCTION,
        FindingKind.MISSING_TERM,
        FindingKind.WRONG_SHIFT,
        FindingKind.WRONG_ENTRIES,
        FindingKind.WRONG_GRADIENT,
        FindingKind.NOT_TWICE_DIFFERENTIABLE,
        FindingKind.WRONG_SECOND_ORDER,
        FindingKind.JVP_MISMATCH,
        FindingKind.SPECIAL_POINT,
    }
)
"""What a surrogate gradient may show: values that are not forward's derivative. Broken rules of backward it may not."""


def against_expectation(result: CheckResult, expectation: Expectation) -> CheckResult:
    """`result` with the verdict that follows from its expectation; an ERROR stays an ERROR."""
    if expectation.verdict == "failed":
        return _expected_failure(result, expectation)
    if expectation.verdict == "surrogate":
        return _surrogate(result)
    return result


def _expected_failure(result: CheckResult, expectation: Expectation) -> CheckResult:
    wanted = ", ".join(expectation.findings)
    expected = f"failed with {wanted}" if wanted else "failed"
    result = replace(result, expected=expected)
    if result.verdict is Verdict.ERROR:
        return result
    came = ", ".join(dict.fromkeys(finding.kind.value for finding in result.findings))
    if result.verdict is Verdict.FAILED and (not wanted or _any_named(result, expectation)):
        return replace(result, verdict=Verdict.PASSED, expected=f"failed with {came}" if came else expected)
    outcome = f"failed with {came}" if result.verdict is Verdict.FAILED else result.verdict.value
    note = f"expected: {expected}; got: {outcome}"
    return replace(result, verdict=Verdict.FAILED, notes=(note, *result.notes))


def _any_named(result: CheckResult, expectation: Expectation) -> bool:
    return any(finding.kind.value in expectation.findings for finding in result.findings)


def _surrogate(result: CheckResult) -> CheckResult:
    result = replace(result, expected="surrogate")
    if result.verdict is not Verdict.FAILED or not result.findings:
        return result
    # What the checks found may be named otherwise: a gradient of the wrong shape as that of another input.
    proven = [e.finding for e in result.evidence if e.verdict is Verdict.FAILED and e.finding is not None]
    if any(finding.kind not in VALUE_FINDINGS for finding in (*result.findings, *proven)):
        return result
    findings = tuple(replace(f, message=f.message.replace(f"; {SURROGATE_ADVICE}", "")) for f in result.findings)
    notes = tuple(f"accepted as a surrogate gradient, which the spec declares: {f.message}" for f in findings)
    return replace(result, verdict=Verdict.PASSED, findings=findings, notes=(*notes, *result.notes))
