"""The smallest input at which the check that failed still fails."""

from collections.abc import Sequence
from dataclasses import replace
from time import thread_time

import numpy as np

from gradcli.backends.base import FloatArray, Subject
from gradcli.cases import Argument
from gradcli.checks.base import Situation
from gradcli.checks.batch.fixed import is_allowed
from gradcli.inputs.shrinking import shrink
from gradcli.results import Evidence, Finding
from gradcli.runner.outcome.recheck import FailureProof, Recheck, is_same, point_elsewhere
from gradcli.settings import Settings

BUDGET_SECONDS, MOST_SECONDS = 2.0, 8.0
CANDIDATES = 8
"""The search may take `BUDGET_SECONDS` of processor time; where a candidate takes long, what so many of them take,
since the steps that make axes short come first; and never more than `MOST_SECONDS` by the clock. Where the failing
check alone takes longer than that, the arguments are left as they are."""
_ELSEWHERE = ("other-inputs", "sizes", "constants")
"""The checks whose failures are wrong gradients at the arguments of the subject that they were measured at."""


def smallest_failing(
    subject: Subject, finding: Finding, evidence: Sequence[Evidence], settings: Settings, *, seed: int
) -> tuple[Argument, ...]:
    """The smallest arguments found within the budget at which what proved `finding` fails again, for the same input.

    Nothing is named again: a name was proven at the arguments of `subject`, and a single entry may not tell a transpose
    from a factor. Where a claim of backward is wrong, one direction refutes it at a candidate as a rule, and the check
    itself is run for the last one alone; if it does not fail there, or one direction does not show the mistake, it is
    run for every candidate. Sizes keep the order that documentation gives. The arguments of `subject` where nothing
    smaller fails.
    """
    subject, evidence = _where_it_shows(subject, finding, evidence)
    proof = FailureProof.of(finding, evidence)
    stages = subject.counters.stages
    if sum(stages[check].seconds for check in proof.checks if check in stages) > MOST_SECONDS:
        return tuple(subject.arguments)
    search = Recheck(subject, proof, settings, seed)
    start, elsewhere = tuple(subject.arguments), point_elsewhere(subject, finding, evidence)
    if elsewhere is not None:
        there = _arguments_at(subject, elsewhere)
        start = there if search.fails(there) else start
    situation = Situation(subject=subject, settings=settings, seed=seed)

    def fails(arguments: Sequence[Argument]) -> bool:
        return is_allowed(situation, arguments) and search.fails(arguments)

    def is_refuted(arguments: Sequence[Argument]) -> bool:
        return is_allowed(situation, arguments) and search.is_refuted(arguments)

    def smallest() -> tuple[Argument, ...]:
        began = thread_time()
        if search.is_refuted(start):
            needed = CANDIDATES * (thread_time() - began)
            budget = min(max(BUDGET_SECONDS, needed), MOST_SECONDS)
            found = shrink(start, is_refuted, budget_seconds=budget, most_seconds=MOST_SECONDS)
            if found is start or search.fails(found):
                return found
        return shrink(start, fails, budget_seconds=BUDGET_SECONDS, most_seconds=MOST_SECONDS)

    with subject.session(lazy=True) as session:
        return session.run_alike(smallest)


def _where_it_shows(
    subject: Subject, finding: Finding, evidence: Sequence[Evidence]
) -> tuple[Subject, Sequence[Evidence]]:
    """The subject that shows a finding, and the evidence as of the check `gradient` there, if it shows elsewhere."""
    for e in evidence:
        own = e.finding is None or is_same(e.finding, finding)
        if e.check in _ELSEWHERE and e.input == finding.input and own and isinstance(e.measured_at, Subject):
            return e.measured_at, [
                replace(each, check="gradient", measured_at=None)
                for each in evidence
                if each.measured_at is e.measured_at
            ]
    return subject, evidence


def _arguments_at(subject: Subject, point: FloatArray) -> tuple[Argument, ...]:
    """The arguments with other values of the inputs that are differentiated."""
    given = list(subject.arguments)
    values = subject.domain.unflatten(point)
    for place, value in zip(subject.active, values, strict=True):
        own = given[place].value
        given[place] = replace(given[place], value=np.asarray(value).astype(own.dtype).reshape(own.shape))
    return tuple(given)
