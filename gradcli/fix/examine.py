"""A target examined as by a check, with what the check only sums up: the failing subjects and their evidence."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from gradcli.backends.base import Subject
from gradcli.checks.battery import Part, only_higher_orders, run_battery
from gradcli.diagnosis.naming import name_findings
from gradcli.frozen import dataclass
from gradcli.results import Evidence, Finding, judge
from gradcli.runner.arguments.buffers import as_supplied, with_buffers
from gradcli.runner.arguments.prepare import Prepared
from gradcli.runner.outcome.allow import excused
from gradcli.verdict import Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class Examination:
    """The verdict, and where it failed: the subject with the evidence and the findings."""

    verdict: Verdict
    subject: Subject | None
    evidence: tuple[Evidence, ...] = ()
    findings: tuple[Finding, ...] = ()

    @property
    def subjects(self) -> tuple[Subject, ...]:
        """Where gradients were seen to be wrong, then the subject itself."""
        if self.subject is None:
            return ()
        found = [there for e in self.evidence if (there := _subject_of(e, self.subject)) is not None]
        return (*found[:2], self.subject)


def examined(ready: Prepared) -> Examination:
    """Run the battery on one sample after the other until one fails, at order 1 if any does."""
    last: tuple[Evidence, ...] = ()
    higher: tuple[Subject, tuple[Evidence, ...]] | None = None
    for subject, evidence in _runs(ready):
        last = (*last, *evidence)
        if judge(evidence) is not Verdict.FAILED:
            continue
        if not only_higher_orders(evidence):
            return _failed(subject, evidence)
        higher = higher or (subject, evidence)
    if higher is not None:
        return _failed(*higher)
    return Examination(verdict=judge(last, first_order=ready.case.settings.first_order), subject=None)


def _failed(subject: Subject, evidence: Sequence[Evidence]) -> Examination:
    failed = tuple(e for e in evidence if e.verdict is Verdict.FAILED)
    findings = name_findings(evidence, subject, corrections=True)
    return Examination(verdict=Verdict.FAILED, subject=subject, evidence=failed, findings=findings)


def _runs(ready: Prepared) -> Iterator[tuple[Subject, tuple[Evidence, ...]]]:
    """The required part of the battery at every sample, then the optional one at the first."""
    excuse = partial(excused, allow=dict(ready.case.settings.allow), told=set())
    first: Subject | None = None
    for number, sample in enumerate(ready.supply.samples):
        arguments = sample()
        with ready.backend.session():
            subject = ready.backend.bind(ready.target, as_supplied(arguments, ready.supply), info=ready.info)
            if number == 0:
                supply = with_buffers(ready.supply.with_shapes_of(arguments), subject, ready.case)
                subject = ready.backend.bind(ready.target, as_supplied(arguments, supply), info=ready.info)
                first = subject
            seed, sweep = ready.case.seed + number, number == 0
            found = run_battery(subject, ready.case.settings, seed=seed, sweep=sweep, excuse=excuse, part=Part.REQUIRED)
        yield subject, found
    if first is not None:
        with ready.backend.session():
            found = run_battery(
                first, ready.case.settings, seed=ready.case.seed, sweep=True, excuse=excuse, part=Part.OPTIONAL
            )
        yield first, found


def _subject_of(evidence: Evidence, subject: Subject) -> Subject | None:
    """The subject at which evidence was found, moved to the point where it was measured."""
    if evidence.order > 1:
        return None
    there = evidence.measured_at if isinstance(evidence.measured_at, Subject) else subject
    mismatch = evidence.mismatch
    if mismatch is None or mismatch.order > 1 or mismatch.point.shape != there.point.shape:
        return there if there is not subject else None
    if np.array_equal(mismatch.point, there.point):
        return there if there is not subject else None
    arguments = list(there.arguments)
    for position, value in zip(there.active, there.domain.unflatten(mismatch.point), strict=True):
        arguments[position] = replace(arguments[position], value=value)
    return there.rebind(arguments)


def sentences(findings: Sequence[Finding]) -> tuple[str, ...]:
    """What is wrong, a sentence for each finding with its name."""
    return tuple(f"{finding.message}   [{finding.kind.value}]" for finding in findings)
