"""The verdict on a problem at its inputs, from the battery and its error bounds."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from gradcli.backends.base import Subject
from gradcli.checks.battery import run_battery
from gradcli.diagnosis.code.excerpt import excerpt_for
from gradcli.diagnosis.naming import name_findings
from gradcli.findings import FindingKind
from gradcli.frozen import dataclass
from gradcli.reporters.plain import plain_case
from gradcli.results import CheckResult, Evidence, Finding, judge
from gradcli.settings import Settings
from gradcli.tolerance.claim import Claim
from gradcli.tolerance.options import Options
from gradcli.verdict import Verdict

SEED = 0
_PACKAGE = Path(__file__).resolve().parent.parent
_HEADS = {
    FindingKind.NONDETERMINISTIC_BACKWARD: "Backward is not reentrant",
    FindingKind.IGNORES_GRAD_OUTPUT: "backward not multiplied by grad_output",
    FindingKind.WRONG_SHAPE: "grad is incorrect size",
}
"""First lines that programs search for in PyTorch's errors; every wrong value is a Jacobian mismatch."""


class GradcheckWarning(UserWarning):
    """A verdict of gradcheck that rests on the caller's tolerances, not on an error bound."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """What the battery came to: the verdict, the evidence for it, and where it did not pass the text for people."""

    verdict: Verdict
    evidence: tuple[Evidence, ...]
    text: str
    subject: Subject


def judgement_of(claim: Claim, options: Options, significance: float) -> Judgement:
    """Run the battery on a claim.

    Args:
        claim: the target and its arguments.
        options: what the caller asked for.
        significance: the relative error that matters, larger for low precisions.

    Raises:
        UserCodeError: the user's code raised.
    """
    settings = _settings(claim, options, significance)
    with claim.backend.session():
        subject = claim.bound()
        evidence = run_battery(subject, settings, seed=SEED)
    if options.allows_errors and _only_values(evidence) and all(_allowed(e, options) for e in _failed(evidence)):
        warnings.warn(_forgiven(claim, evidence, subject, options), GradcheckWarning, stacklevel=5)
        settings = replace(settings, skip=(*settings.skip, "gradient", "higher-order"))
        others = run_battery(subject, settings, seed=SEED)
        evidence = tuple(_accepted(e) for e in evidence if e.mismatch is not None) + others
    verdict = judge(evidence, first_order=options.order == 1)
    text = "" if verdict is Verdict.PASSED else _text(claim, evidence, subject, verdict)
    return Judgement(verdict=verdict, evidence=evidence, text=text, subject=subject)


def _settings(claim: Claim, options: Options, significance: float) -> Settings:
    """The checks of the battery that answer what was asked, at the arguments given.

    Layouts in memory are varied for Functions only: a callable that draws random numbers draws them in memory order.
    """
    of_function = claim.backend.function_class(claim.target) is not None
    unwanted = {
        "constants": True,
        "untracked": True,
        "memory": True,
        "aliasing": True,
        "sizes": True,
        "empty": True,
        "layout": not of_function and not options.non_contiguous,
        "unused-outputs": not options.check_undefined_grad,
        "forward-mode": not options.check_forward_ad,
        "batching": not options.check_batched_grad,
        "forward": options.nondet_tol > 0,
        "repeat": options.nondet_tol > 0,
    }
    skip = tuple(name for name, left_out in unwanted.items() if left_out)
    only = () if options.order == 1 else ("forward", "higher-order", *(["layout"] if options.non_contiguous else []))
    return Settings(order=options.order, order_asked=True, only=only, skip=skip, significance=significance)


def _failed(evidence: Sequence[Evidence]) -> list[Evidence]:
    return [e for e in evidence if e.verdict is Verdict.FAILED]


def _only_values(evidence: Sequence[Evidence]) -> bool:
    failed = _failed(evidence)
    return bool(failed) and all(e.mismatch is not None for e in failed)


def _allowed(evidence: Evidence, options: Options) -> bool:
    """Whether every entry that was compared is as close as the caller asked for, apart from its bound."""
    seen = evidence.mismatch
    if seen is None:
        return False
    with np.errstate(all="ignore"):
        room = options.allowed_atol + options.allowed_rtol * np.abs(seen.numeric) + seen.bound
        return bool(np.all(np.abs(seen.claimed - seen.numeric) <= room))


def _accepted(evidence: Evidence) -> Evidence:
    """The same comparison as one that passed: the caller's tolerance stands in the bound's place."""
    return replace(evidence, verdict=Verdict.PASSED, mismatch=None, bound=evidence.max_abs_error)


def _forgiven(claim: Claim, evidence: Sequence[Evidence], subject: Subject, options: Options) -> str:
    text = _text(claim, evidence, subject, Verdict.FAILED)
    return (
        f"accepted within atol={options.atol:g}, rtol={options.rtol:g} as you asked, but the gradient is wrong:\n{text}"
    )


def _text(claim: Claim, evidence: Sequence[Evidence], subject: Subject, verdict: Verdict) -> str:
    findings = _own(name_findings(evidence, subject)) if verdict is Verdict.FAILED else ()
    result = CheckResult(
        case_id=claim.name,
        target=claim.name,
        name=None,
        backend=claim.backend.name,
        verdict=verdict,
        seed=SEED,
        samples=1,
        inputs_from="given",
        evidence=tuple(evidence),
        findings=findings,
        excerpt=excerpt_for(findings[0]) if findings else None,
        forwards=subject.counters.forward,
        backwards=subject.counters.backward,
    )
    text = plain_case(result)
    return f"{_head(findings[0], subject)}\n{text}" if findings else text


def _own(findings: Sequence[Finding]) -> tuple[Finding, ...]:
    """The findings, without places in this package: those of the functions that stand in for the caller's."""
    inside = [f.location is not None and _PACKAGE in Path(f.location.file).resolve().parents for f in findings]
    return tuple(replace(f, location=None) if hidden else f for f, hidden in zip(findings, inside, strict=True))


def _head(finding: Finding, subject: Subject) -> str:
    """The first line, in the words that programs search for."""
    if finding.kind in _HEADS:
        return _HEADS[finding.kind]
    names = [subject.arguments[place].name for place in subject.active]
    if finding.input not in names or finding.kind in _REQUIREMENTS:
        return finding.kind.sentence
    return f"Jacobian mismatch for output {finding.output or 0} with respect to input {names.index(finding.input)},"


_REQUIREMENTS = frozenset(
    {
        FindingKind.MUTATES_INPUT,
        FindingKind.MUTATES_SAVED,
        FindingKind.MUTATES_GRAD_OUTPUT,
        FindingKind.NONDETERMINISTIC_FORWARD,
        FindingKind.STATEFUL,
        FindingKind.SECOND_BACKWARD_FAILS,
        FindingKind.NEEDS_INPUT_GRAD,
        FindingKind.UNDEFINED_GRAD,
        FindingKind.NON_CONTIGUOUS,
        FindingKind.UNNEEDED_GRADIENT,
    }
)
"""Broken rules, as against wrong values."""
