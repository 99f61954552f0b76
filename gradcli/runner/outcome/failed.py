"""The explanation of a failed case: findings, lines, the smallest failing input, and a file for replay."""

import logging
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from gradcli.backends.attribution import shown_path
from gradcli.backends.base import Subject
from gradcli.cases import Argument, InputsFrom
from gradcli.diagnosis.code.excerpt import excerpt_for
from gradcli.diagnosis.factor import as_fraction
from gradcli.diagnosis.naming import name_findings, without_names
from gradcli.errors import OverrunError
from gradcli.inputs.hints.reading import read_hints
from gradcli.results import CheckResult, Evidence, Finding
from gradcli.runner.outcome.clamped import CLAMPS, clamped_note, without_advice
from gradcli.runner.outcome.contained import contained
from gradcli.runner.outcome.convergence import unconverged_note
from gradcli.runner.outcome.domains import distinct_note, ordered_note, positive_note, summed_note
from gradcli.runner.outcome.notes import doubtful_shapes, not_in_findings, other_types, perhaps_without_gradient
from gradcli.runner.outcome.other_values import inputs_of, named_values
from gradcli.runner.outcome.pasted import pasted
from gradcli.runner.outcome.recheck import FailureProof, Recheck
from gradcli.runner.outcome.reduce import smallest_failing
from gradcli.runner.planning.plan import CheckCase
from gradcli.runner.store.failures import failure_of, save
from gradcli.verdict import Verdict
from gradcli.watchdog.case import Watchdog

SHRINKING_SECONDS = 15.0
"""What the smallest input that shows the mistake may take of the budget."""
_LOG = logging.getLogger("gradcli")


def explained(
    result: CheckResult,
    case: CheckCase,
    subject: Subject,
    evidence: Sequence[Evidence],
    failures: Path | None,
    watchdog: Watchdog,
) -> CheckResult:
    """The result of a case that failed, with its findings, the lines at fault and the smallest input that shows it.

    Args:
        result: what is known of the case.
        case: the case.
        subject: the target at the sample that failed.
        evidence: what the checks found there.
        failures: the folder in which the failure is saved for replay, if any.
        watchdog: says what shrinking may take.
    """
    wanted = case.settings.shrink and case.spec.expect.verdict == "passed"
    internal: list[str] = []
    budgeted = not case.spec.expect.findings
    named = _named(evidence, subject, internal, corrections=wanted, budgeted=budgeted)
    findings = tuple(f if f.factor is None else replace(f, factor=as_fraction(f.factor)) for f in named)
    first = replace(result, findings=findings)
    inputs = inputs_of(result, subject)
    result = replace(result, findings=findings, arguments=tuple(subject.arguments), inputs=inputs)
    if not findings:
        return replace(result, notes=(*result.notes, *internal))
    notes = _notes(result, subject, evidence)
    result = replace(result, excerpt=excerpt_for(findings[0]), notes=notes)
    if not wanted:
        return replace(result, notes=(*result.notes, *internal))
    arguments, excuse, named = tuple(subject.arguments), None, findings
    # Without time the failure stands, at the inputs that showed it.
    with suppress(OverrunError), watchdog.during("shrinking", optional=True, share=SHRINKING_SECONDS):
        arguments = contained(
            "looking for a smaller input",
            lambda: smallest_failing(subject, findings[0], evidence, case.settings, seed=case.seed),
            lambda: tuple(subject.arguments),
            internal,
        )
        excuse = contained(
            "looking for inputs at which the gradient is right",
            lambda: _excuse(result, case, subject, evidence, arguments, watchdog),
            lambda: None,
            internal,
        )
        named = contained(
            "comparing with the first sample",
            lambda: _with_values(first, case, subject, evidence, watchdog),
            lambda: findings,
            internal,
        )
    if excuse is not None:
        result = replace(result, notes=(excuse, *result.notes))
        named = tuple(without_advice(finding) for finding in named) if CLAMPS in excuse else named
    result = replace(result, notes=(*result.notes, *internal))
    result = replace(result, smallest=tuple(pasted(arguments)), findings=named)
    return result if failures is None else _saved(result, case, arguments, findings[0], failures)


def _named(
    evidence: Sequence[Evidence], subject: Subject, internal: list[str], *, corrections: bool, budgeted: bool
) -> tuple[Finding, ...]:
    """The findings; those that the checks reported, without lines, if gradcli fails in naming them."""
    named = contained(
        "naming the mistake",
        lambda: name_findings(evidence, subject, corrections=corrections, budgeted=budgeted),
        lambda: without_names([e for e in evidence if e.verdict is Verdict.FAILED], subject, located=False),
        internal,
    )
    return tuple(_relative(finding) for finding in named)


def _notes(result: CheckResult, subject: Subject, evidence: Sequence[Evidence]) -> tuple[str, ...]:
    """The notes of the case that its findings do not say, after what may be wrong with its inputs."""
    stopped = unconverged_note(subject, evidence)
    doubts: tuple[str, ...] = () if stopped is None else (stopped,)
    if result.inputs_from == InputsFrom.INFERRED.value:
        doubts += other_types(result.inputs, subject.arguments)
        names = [spec.name for spec in result.inputs]
        doubts += doubtful_shapes(result.inputs, result.findings, read_hints(subject.info, names).documented)
        doubts += perhaps_without_gradient(result.inputs, result.findings)
    return (*doubts, *not_in_findings(result.notes, result.findings))


def _with_values(
    first: CheckResult, case: CheckCase, subject: Subject, evidence: Sequence[Evidence], watchdog: Watchdog
) -> tuple[Finding, ...]:
    """The findings with the constants at which the error appears, if it does not with those of the first sample."""
    if watchdog.is_slow:
        return first.findings
    proof = FailureProof.of(first.findings[0], evidence)
    return named_values(first, subject, Recheck(subject, proof, case.settings, case.seed))


def _excuse(
    result: CheckResult,
    case: CheckCase,
    subject: Subject,
    evidence: Sequence[Evidence],
    smallest: Sequence[Argument],
    watchdog: Watchdog,
) -> str | None:
    """Inputs for which the gradient is right, if there are such that the user may have meant."""
    if watchdog.is_slow:
        return None
    finding = result.findings[0]
    found = ordered_note(result, case, subject, finding, evidence)
    if found is None and result.inputs_from == InputsFrom.INFERRED.value:
        found = (
            clamped_note(result, case, subject, finding, evidence)
            or summed_note(result, case, subject, finding, evidence)
            or distinct_note(result, case, subject, finding, evidence)
            or positive_note(result, case, subject, finding, evidence, smallest)
        )
    return found


def _relative(finding: Finding) -> Finding:
    """The finding with its place as seen from the working directory, where it lies below that."""
    if finding.location is None:
        return finding
    return replace(finding, location=replace(finding.location, file=shown_path(finding.location.file)))


def _saved(
    result: CheckResult, case: CheckCase, arguments: Sequence[Argument], finding: Finding, folder: Path
) -> CheckResult:
    settings = case.settings
    failure = failure_of(
        case.spec.target,
        case.spec.name,
        case.seed,
        settings.order,
        settings.dtype,
        arguments,
        finding,
        grad=case.spec.grad,
        saved=case.spec.saved,
        construct=case.spec.construct,
        nondeterminism=settings.nondeterminism,
        device=settings.device,
        order_asked=settings.order_asked,
        allow=settings.allow,
    )
    try:
        return result.with_replay(str(save(failure, folder)))
    except (OSError, ValueError) as error:
        _LOG.warning("gradcli: %s: the failure could not be saved for replay: %s", case.spec.case_id, error)
        return result
