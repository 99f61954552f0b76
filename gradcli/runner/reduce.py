"""The smallest input that still shows a finding."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from gradcli.backends.base import Subject
from gradcli.cases import Argument
from gradcli.checks.battery import run_battery
from gradcli.diagnosis.naming import name_findings
from gradcli.errors import GradcliError
from gradcli.inputs.shrinking import shrink
from gradcli.numerics.probe import entry_scales
from gradcli.results import Evidence, Finding, FloatArray
from gradcli.settings import Settings
from gradcli.verdict import Verdict

BUDGET_SECONDS = 2.0
CLOSE_BY = 2.0**-8
"""A point that lies this part of the inputs' size away counts as the same: beside a kink the verdict comes from one."""


def smallest_failing(
    subject: Subject, finding: Finding, evidence: Sequence[Evidence], settings: Settings, *, seed: int
) -> tuple[Argument, ...]:
    """The smallest arguments found within the budget that show the same finding for the same input.

    Only the checks that failed are run again. A verdict that came from another point, because nothing shows at the
    arguments themselves, does not count; the search starts at that point then. The arguments of `subject` where nothing
    smaller shows it.
    """
    checks = _checks_behind(finding, evidence)
    narrow = replace(settings, only=checks, skip=(), order=max(finding.order, 1))

    def still_fails(arguments: Sequence[Argument]) -> bool:
        try:
            smaller = subject.rebind(tuple(arguments))
            seen = run_battery(smaller, narrow, seed=seed)
            found = name_findings(seen, smaller)
        except GradcliError:  # forward or backward refuses these arguments: they do not show the finding
            return False
        again = any(other.kind is finding.kind and other.input == finding.input for other in found)
        return again and _point_elsewhere(smaller, finding, seen) is None

    start, elsewhere = subject.arguments, _point_elsewhere(subject, finding, evidence)
    if elsewhere is not None:
        there = _arguments_at(subject, elsewhere)
        start = there if still_fails(there) else start
    return tuple(shrink(start, still_fails, budget_seconds=BUDGET_SECONDS))


def _point_elsewhere(subject: Subject, finding: Finding, evidence: Sequence[Evidence]) -> FloatArray | None:
    """The inputs that show a finding, where those are others than the subject's own; None where its own do."""
    behind = [
        e for e in evidence if e.verdict is Verdict.FAILED and (e.order, e.input) == (finding.order, finding.input)
    ]
    here = subject.point
    points = [e.mismatch.point[: here.size] for e in behind if e.mismatch is not None and e.witness is None]
    if not points:
        return None
    reach = CLOSE_BY * entry_scales(subject.domain, here)
    if any(bool((np.abs(point - here) <= reach).all()) for point in points):
        return None
    return points[0]


def _arguments_at(subject: Subject, point: FloatArray) -> tuple[Argument, ...]:
    """The arguments with other values of the inputs that are differentiated."""
    given = list(subject.arguments)
    values = subject.domain.unflatten(point)
    for place, value in zip(subject.active, values, strict=True):
        own = given[place].value
        given[place] = replace(given[place], value=np.asarray(value).astype(own.dtype).reshape(own.shape))
    return tuple(given)


def _checks_behind(finding: Finding, evidence: Sequence[Evidence]) -> tuple[str, ...]:
    failed = [e for e in evidence if e.verdict is Verdict.FAILED]
    close = [e for e in failed if e.order == finding.order and e.input == finding.input]
    return tuple(dict.fromkeys(e.check for e in close or failed))
