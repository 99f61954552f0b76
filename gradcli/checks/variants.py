"""The same Function called in other ways: with other inputs requiring a gradient, or other arguments."""

from collections.abc import Iterator
from dataclasses import replace
from typing import final

from gradcli.backends.base import Subject
from gradcli.checks.base import Check, Situation
from gradcli.checks.gradient import comparable, evidence_of
from gradcli.checks.subsets import tracking
from gradcli.errors import UserCodeError
from gradcli.numerics.maps.vector_map import MOST_EVALUATIONS
from gradcli.numerics.verify import verify
from gradcli.results import Evidence
from gradcli.verdict import Verdict
from gradcli.watchdog.case import entries_allowed


@final
class UntrackedCheck(Check):
    """Gradients must stay right if inputs that were not tracked require a gradient too."""

    name = "untracked"
    sentence = "the gradients stay right when float inputs given with requires_grad=False require a gradient too"

    def run(self, situation: Situation) -> Iterator[Evidence]:
        """Verify the tracked inputs once more with every float input tracked."""
        subject = situation.subject
        floats = [i for i, a in enumerate(subject.arguments) if a.is_tensor and a.value.dtype.kind in "fc"]
        idle = [i for i in floats if i not in subject.active and not subject.arguments[i].requires_grad]
        extra = [situation.input_name(i) for i in idle]
        if not extra or not comparable(situation):
            return
        try:
            other = subject.rebind(tracking(subject, floats))
        except UserCodeError:
            return
        names = " and ".join(extra)
        verb, whose = ("does", "its gradient was") if len(extra) == 1 else ("do", "their gradients were")
        inputs = [place for place, position in enumerate(other.active) if position in subject.active]
        note = f"{names} {verb} not require a gradient here, so {whose} not checked"
        yield from variant(self, situation, other, f"with {names} requiring a gradient too", note, inputs=inputs)


def variant(
    check: Check,
    situation: Situation,
    other: Subject,
    label: str,
    note: str | None,
    *,
    inputs: list[int] | None = None,
    refusals: bool = False,
    budget: int = MOST_EVALUATIONS,
) -> Iterator[Evidence]:
    """Verify another subject; a failure is reported with the label, and an exception as a note if `refusals`.

    A gradient that `budget` evaluations of forward do not decide does not fail.
    """
    map_ = situation.map_of(other, 1)
    try:
        found = verify(
            map_,
            other.point,
            seed=situation.seed + 1,
            significance=situation.significance,
            inputs=inputs,
            budget=budget,
            entries=entries_allowed(),
        )
    except UserCodeError as error:
        # The same call is made, and reported, by the check on that input itself.
        if refusals:
            note = f"{label}, forward runs but {str(error).splitlines()[0]}; no gradient was checked there"
        yield Evidence(check=check.name, verdict=Verdict.PASSED, note=note)
        return
    wrong = [
        replace(e, measured_at=other, note=label if e.note is None else f"{label}; {e.note}")
        for e in evidence_of(check.name, 1, map_, found, other.output_numbers)
        if e.verdict is Verdict.FAILED
    ]
    yield from wrong
    if not wrong:
        yield Evidence(check=check.name, verdict=Verdict.PASSED, note=note, reference="finite-difference")
