"""The smallest input that still shows a finding."""

from collections.abc import Sequence
from dataclasses import replace

from gradcli.backends.base import Subject
from gradcli.cases import Argument
from gradcli.checks.battery import run_battery
from gradcli.diagnosis.naming import name_findings
from gradcli.errors import GradcliError
from gradcli.inputs.shrinking import shrink
from gradcli.results import Evidence, Finding
from gradcli.settings import Settings
from gradcli.verdict import Verdict

BUDGET_SECONDS = 2.0


def smallest_failing(
    subject: Subject, finding: Finding, evidence: Sequence[Evidence], settings: Settings, *, seed: int
) -> tuple[Argument, ...]:
    """The smallest arguments found within the budget that show the same finding for the same input.

    Only the checks that failed are run again. The arguments of `subject` where nothing smaller shows it.
    """
    checks = _checks_behind(finding, evidence)
    narrow = replace(settings, only=checks, skip=(), order=max(finding.order, 1))

    def still_fails(arguments: Sequence[Argument]) -> bool:
        try:
            smaller = subject.rebind(tuple(arguments))
            found = name_findings(run_battery(smaller, narrow, seed=seed), smaller)
        except GradcliError:  # forward or backward refuses these arguments: they do not show the finding
            return False
        return any(other.kind is finding.kind and other.input == finding.input for other in found)

    return tuple(shrink(subject.arguments, still_fails, budget_seconds=BUDGET_SECONDS))


def _checks_behind(finding: Finding, evidence: Sequence[Evidence]) -> tuple[str, ...]:
    failed = [e for e in evidence if e.verdict is Verdict.FAILED]
    close = [e for e in failed if e.order == finding.order and e.input == finding.input]
    return tuple(dict.fromkeys(e.check for e in close or failed))
