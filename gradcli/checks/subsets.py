"""The gradient of an input must not depend on which other inputs require one."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from gradcli.backends.base import Subject
from gradcli.checks.base import Check, Situation, differs
from gradcli.checks.reached import reads_what_is_tracked
from gradcli.errors import OverrunError, UserCodeError
from gradcli.findings import FindingKind
from gradcli.results import Evidence
from gradcli.verdict import Verdict

_NAMED = 3
"""So many parameters are named in a note."""
PLAIN, _FEW, _RANDOM = 3, 6, 24
"""Up to PLAIN inputs, one input and all but one are every subset. Up to _FEW inputs, all pairs are tried; of more,
_RANDOM subsets."""
_TOLERANCE = 1e-9
"""Relative; the same code on the same numbers differs by a reordering of sums at most."""


@final
class SubsetsCheck(Check):
    """Each input's gradient is the same whether it alone or all inputs require one."""

    name = "subsets"
    sentence = "the gradient of an input does not depend on which other inputs require a gradient"

    def run(self, situation: Situation) -> Iterator[Evidence]:
        """Compare the gradients over the subsets of one input, of all but one, and of others where code reads them."""
        subject = situation.subject
        if len(subject.active) < 2:
            return
        reference = dict(zip(subject.active, situation.reference(), strict=True))
        note = None
        for kept in _all_subsets(situation):
            problem = self._compare(situation, reference, kept)
            if problem is None:
                continue
            if problem.verdict is not Verdict.PASSED:
                yield self._with_others(situation, reference, problem) if len(kept) == 1 else problem
                return
            note = note or problem.note
        yield self.passed(note)

    def _with_others(
        self, situation: Situation, reference: dict[int, NDArray[Any] | None], problem: Evidence
    ) -> Evidence:
        """The evidence of one input whose gradient changes where it alone requires one, with the other such inputs."""
        if problem.finding is None or problem.input is None:
            return problem
        each = (self._compare(situation, reference, (position,)) for position in situation.subject.active)
        names = [e.input for e in each if e is not None and e.verdict is Verdict.FAILED and e.input is not None]
        others = [name for name in names if name != problem.input]
        if not others:
            return problem
        listed = others[0] if len(others) == 1 else f"{', '.join(others[:-1])} and {others[-1]}"
        does = "so does that of {}, if it alone does" if len(others) == 1 else "so do those of {}, if each alone does"
        message = f"{problem.finding.message}; {does.format(listed)}"
        return replace(problem, finding=replace(problem.finding, message=message))

    def _compare(
        self, situation: Situation, reference: dict[int, NDArray[Any] | None], kept: Sequence[int]
    ) -> Evidence | None:
        """What is wrong with one subset, None if nothing; a note where a module's own parameters are left out."""
        subject = situation.subject
        names = " and ".join(situation.input_name(i) for i in kept)
        verb = "requires" if len(kept) == 1 else "require"
        try:
            found = subject.backward_tracking(kept, situation.cotangents())
        except UserCodeError as error:
            held = {name for name, _ in subject.info.held}
            frozen = [name for i in subject.active if i not in kept and (name := situation.input_name(i)) in held]
            if frozen and not isinstance(error, OverrunError):
                own = ", ".join(frozen[:_NAMED]) + (", …" if len(frozen) > _NAMED else "")
                return self.passed(
                    f"backward fails when parameters of the module ({own}) require no gradient, as frozen ones do "
                    f"not: {error}; this is reported only as a note, because it cannot go unnoticed"
                )
            return self.failed(
                FindingKind.NEEDS_INPUT_GRAD,
                f"backward fails when only {names} {verb} a gradient: {error}",
                raised=error,
            )
        gradients = {} if found is None else dict(zip(kept, found, strict=True))
        for position in gradients:
            place = subject.active.index(position)
            if differs(situation, place, reference[position], gradients[position], _TOLERANCE):
                name = situation.input_name(position)
                return self.failed(
                    FindingKind.NEEDS_INPUT_GRAD,
                    f"{name}: its gradient changes when only {names} {verb} a gradient",
                    input=name,
                )
        return None


def _all_subsets(situation: Situation) -> Iterator[tuple[int, ...]]:
    active = situation.subject.active
    yield from subsets(active)
    if len(active) > PLAIN and reads_what_is_tracked(situation.subject.info):
        yield from further_subsets(active)


def further_subsets(active: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """Two inputs and all but two; for many inputs random subsets, in which most patterns of three inputs occur."""
    if len(active) <= _FEW:
        pairs = [*combinations(active, 2)]
        yield from dict.fromkeys((*pairs, *(tuple(p for p in active if p not in pair) for pair in pairs)))
        return
    for chosen in np.random.default_rng(len(active)).integers(0, 2, (_RANDOM, len(active))).astype(bool):
        if chosen.any():
            yield tuple(p for p, is_chosen in zip(active, chosen, strict=True) if is_chosen)


def subsets(active: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """Each input, or output, alone, then all but one where there are more than two."""
    yield from ((position,) for position in active)
    if len(active) > 2:
        yield from (tuple(p for p in active if p != left_out) for left_out in active)


def tracking(subject: Subject, positions: Sequence[int]) -> list[Any]:
    """The subject's arguments, with exactly those at `positions` requiring a gradient."""
    return [replace(a, requires_grad=i in positions) if a.is_tensor else a for i, a in enumerate(subject.arguments)]
