"""The search for the one wrong expression of backward: edits of it, replacements, and the proof.

Each candidate is compared with slopes of forward along a few directions. If it agrees, it is put into backward's source
and compared with slopes at other inputs, which the search has not used; it is named only if it is right there too.
"""

import ast
import itertools
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import CodeType, FunctionType
from typing import Any, final

import numpy as np

from gradcli.diagnosis.facts import Facts
from gradcli.diagnosis.slips.bench import (
    Bench,
    are_equal,
    are_finite,
    fit,
    holds_again,
    is_no_longer_finite,
    judged,
    keeps_outputs,
    putting,
    shapes_of,
    untracked,
)
from gradcli.diagnosis.slips.conditions import Conditions
from gradcli.diagnosis.slips.elsewhere import (
    at_constants,
    at_other_numbers,
    at_other_ranks,
    at_other_sizes,
    at_other_values,
    at_reordered_sizes,
    far_away,
    with_zero_numbers,
    with_zeros,
)
from gradcli.diagnosis.slips.hooks import Hooks, hooked_codes, places_in, running
from gradcli.diagnosis.slips.short_axes import is_ambiguous, shortest_axis
from gradcli.diagnosis.slips.slip import Slip
from gradcli.diagnosis.slips.standing import left_over, steers
from gradcli.diagnosis.slips.trial import PROOFS, Trial
from gradcli.diagnosis.table import Gradient
from gradcli.edits.constants import numbers_in
from gradcli.edits.draft import Draft, draft_for
from gradcli.edits.expressions import expressions_of
from gradcli.edits.flow import relevant, saved_alone
from gradcli.errors import OverrunError
from gradcli.frozen import dataclass
from gradcli.watchdog.case import watched

_PLACES = 90
"""Expressions that are looked at, the last ones in the text: whole statements of a loop and not only their parts."""
_SHARED = 1.2
"""Taken off a slip's cost for each wrong gradient that it corrects: more than an exchanged name costs."""
_SECONDS = 7.5
"""Half of the time for naming, so that the rules after the search have the other half if backward is slow."""
_ENOUGH = 3
"""Equations that a form with one free coefficient needs; an input with fewer entries is tried at several points."""
_SPOILT = 1e-3
"""Relative errors above this are not rounding, even where terms cancel, as in a softmax of large numbers."""
_Codes = Mapping[FunctionType, CodeType]


@final
class SlipSearch:
    """The slips of one backward at the inputs of some facts."""

    def __init__(
        self, facts: Facts, seconds: float | None = None, *, whole: Facts | None = None, role: str = "backward"
    ) -> None:
        """Search for at most `seconds`; a slip must be right at the `whole` as well, if `facts` are of a part.

        `role` is that of the function to edit: backward, or one that saves values for it (`forward`, `setup_context`).
        Edits of the latter must leave forward's outputs as they are.
        """
        self._facts, self._whole = facts, whole
        self._seconds = _SECONDS if seconds is None else seconds
        self._anew: Facts | None = None
        self._framework: Any = getattr(facts.subject, "framework", None)
        self._draft = None if self._framework is None else draft_for(facts.subject.info)
        if self._draft is not None and role != "backward":
            self._draft = replace(self._draft, role=role) if self.saves_in(role) else None
        self._proven: dict[int, Slip | None] = {}
        self._refuted: set[int] = set()
        self._others: list[Facts] | None = None
        self._cotangents: set[str] = set()
        self._tried: _Prepared | None = None
        self._far: list[tuple[Facts, bool]] | None = None
        self._with_zeros: list[Facts] | None = None
        self._at_constants: list[Facts] | None = None
        self._returned: dict[int, Sequence[Sequence[Gradient]]] = {}

    @property
    def draft(self) -> Draft | None:
        """The file that contains backward."""
        return self._draft

    def saves_in(self, role: str) -> bool:
        """Whether a function in the file of backward computes values that it only saves for this backward."""
        draft = self._draft
        if draft is None or not draft.has(role) or draft.is_of_another(role):
            return False
        return bool(saved_alone(draft.part(role).node))

    @property
    def cotangents(self) -> set[str]:
        """The names of the output gradients in backward."""
        return self._cotangents

    def shows(self, place: int) -> bool:
        """Whether the search has seen that the gradient of the active input number `place` is wrong at its inputs."""
        return self._tried is not None and place in self._tried.trial.wrong

    def slip_for(self, place: int, *, short: bool = False) -> Slip | None:
        """The shortest slip that is proven to make the gradient of the active input number `place` right.

        With `short`, only the likeliest edits are tried, such as another operator, name or function.
        None if forward's derivative is zero: many edits make a gradient vanish, and a surrogate gradient is no mistake.
        """
        if self._draft is None or not self._facts.is_felt(place):
            return None
        if place not in self._proven:
            with watched() as watchdog, np.errstate(all="ignore"), warnings.catch_warnings(action="ignore"):
                try:
                    with watchdog.during("naming", optional=True, searching=True, share=self._seconds):
                        self._search(self._draft, place, 1 if short else None)
                except OverrunError:
                    self._proven[place] = None  # another search would start anew, and end as this one
                    raise
        return self._proven.get(place) if short else self._proven.setdefault(place, None)

    def proves(self, slip: Slip) -> bool:
        """Whether a slip found otherwise is the mistake: it corrects what it fixes, and what is right stays so."""
        if self._draft is None or self._tried is None:
            return False
        right = frozenset(range(len(self._facts.subject.active))) - self._tried.trial.wrong
        with np.errstate(all="ignore"):
            return self._holds(replace(slip, fixes=slip.fixes | right), self._draft, self._tried)

    def _search(self, draft: Draft, place: int, stages: int | None) -> None:
        tried = self._tried = self._tried or self._prepared(draft)
        if tried is None or place not in tried.trial.wrong:
            return
        expressions = _expressions(draft, self._facts, self._facts.subject.active[place])
        last = set(sorted(expressions, key=_position)[-_PLACES:])
        numbers = [n for n, p in enumerate(tried.places) if p in last]
        for stage in itertools.islice(tried.trial.stages(numbers), stages):
            found = [s for s in stage if place in s.fixes and id(s) not in self._refuted]
            found.sort(key=lambda s: s.cost - _SHARED * len(s.fixes & tried.trial.wrong))
            proven = self._first_proven(found[:PROOFS], draft, tried)
            if proven is not None:
                for fixed in proven.fixes & tried.trial.wrong:
                    self._proven.setdefault(fixed, proven)
                return

    def _first_proven(self, found: Sequence[Slip], draft: Draft, tried: "_Prepared") -> Slip | None:
        """The first slip that is proven; one that holds for other numbers of axes and the next order, if any does."""
        partly: Slip | None = None
        for slip in found:
            settled = tried.conditions.are_settled_by
            if self._holds(slip, draft, tried) and not self._is_vague(slip, tried) and not settled(slip.changes):
                here = not self._holds_at_other_ranks(slip, draft, tried)
                first = not holds_again(slip, draft, self._here)
                if not here and not first:
                    return slip
                partly = partly or replace(slip, at_these_ranks=here, first_alone=first)
            self._refuted.add(id(slip))
        return partly

    def _holds_at_other_ranks(self, slip: Slip, draft: Draft, tried: "_Prepared") -> bool:
        """Whether a proven slip holds where inputs have an axis more, as far as backward is meant for that."""
        edited = None if slip.borrowed else draft.codes_with(slip.changes)
        right = frozenset(range(len(self._facts.subject.active))) - tried.trial.wrong
        with running(tried.codes if edited is None else edited):
            for facts in at_other_ranks(self._facts):
                before = self._before(facts, tried)
                meant = all(fit(facts, p, before) for p in slip.fixes)  # or backward is not written to broadcast
                kept = [judged(facts, p, before) for p in right if facts.is_felt(p)]
                if meant and False not in kept and self._is_disproved(slip, edited, tried, facts, is_meant=True):
                    return False
        return True

    def _prepared(self, draft: Draft) -> "_Prepared | None":
        """Backward with hooks, run once; None if the run shows nothing."""
        wanted = [_expressions(draft, self._facts, position) for position in self._facts.subject.active]
        places = places_in(draft.edited.node, set().union(*wanted))
        hooks, ahead = Hooks([left_over(place, draft) for place in places]), Hooks()
        codes = hooked_codes(draft, places, hooks, ahead)
        if codes is None:
            return None
        with running(codes):
            benches = self._benches(hooks, ahead, draft)
            if not all(bench.seen for bench in benches):
                return None  # nothing of backward's own ran: it is called in a way that its source does not show
            trial = Trial(draft, places, benches, hooks, codes, self._framework)
        self._cotangents = trial.cotangents
        if trial.present is None:
            return None
        conditions = Conditions(draft, lambda: self._run_everywhere(benches), self._framework)
        return _Prepared(trial, places, codes, hooks, ahead, conditions, edits_forward=draft.role != "backward")

    def _run_everywhere(self, benches: Sequence[Bench]) -> None:
        """Run backward at the benches and at the other inputs."""
        for facts in {id(f): f for f in (*(bench.facts for bench in benches), *self._elsewhere())}.values():
            facts.returned_for(facts.cotangents[1])

    def _benches(self, hooks: Hooks, ahead: Hooks, draft: Draft) -> tuple[Bench, ...]:
        """One bench, or several points if the smallest input has too few entries for enough equations."""
        subject = self._facts.subject
        forward = ahead if draft.role == "backward" and draft.has("forward") else None
        found = [Bench(self._here, hooks, 1)]
        fewest = min((subject.domain.blocks[p].entries for p in range(len(subject.active))), default=0)
        for other in self._elsewhere() if fewest < _ENOUGH else ():
            if len(found) * fewest < _ENOUGH + 1:
                found.append(Bench(other, hooks, 1))
        for bench in found:
            bench.record(forward, calls_forward=draft.role != "backward")
        return tuple(found)

    @property
    def _here(self) -> Facts:
        """The facts, with calls limited in time: an edited backward may not end."""
        if self._anew is None:
            for place in range(len(self._facts.subject.active)):
                self._facts.slopes(place)
            self._anew = self._facts.bound_anew()
        return self._anew

    def _elsewhere(self) -> list[Facts]:
        if self._others is None:
            self._others = at_other_values(self._facts)
            if self._whole is not None:
                self._others.append(self._whole.bound_anew())
        return self._others

    def _holds(self, slip: Slip, draft: Draft, tried: "_Prepared") -> bool:
        """Whether the gradients are right with the slip corrected, here for other cotangents and at other inputs."""
        edited = None if slip.borrowed else draft.codes_with(slip.changes)
        if edited is None and not slip.borrowed:
            return False
        whole = [(self._here, True), *((facts, False) for facts in self._elsewhere())]
        known = self._with_values([facts for facts, _ in whole], draft)
        with running(tried.codes if edited is None else edited):
            kept = keeps_outputs(self._here, draft.role) and all(facts.keeps_value() for facts in known)
            if not kept or not self._is_right(slip, edited, tried, whole):
                return False
            further = (self._is_disproved(slip, edited, tried, *each) for each in self._further())
            if any(further) or any(self._is_lost(slip, edited, tried, f) for f in self._zeros()):
                return False
            rows = ((f, _corrected_rows(slip, edited, tried, f)) for f in self._constants(draft))
            return not any(is_no_longer_finite(f, slip.fixes, self._before(f, tried), each) for f, each in rows)

    def _is_right(
        self, slip: Slip, edited: _Codes | None, tried: "_Prepared", whole: Sequence[tuple[Facts, bool]]
    ) -> bool:
        """Whether the corrected gradients are right here, and at one other set of inputs at least."""
        confirmed = 0
        for facts, here in whole:
            rows = _corrected_rows(slip, edited, tried, facts)
            if untracked(rows[0], facts) != untracked(self._before(facts, tried)[0], facts):
                return False
            if self._is_reshaped(slip, facts, rows, tried):
                return False
            judgements = [judged(facts, place, rows) for place in slip.fixes]
            if False in judgements or (here and (True not in judgements or self._spoils_others(slip, rows, tried))):
                return False
            confirmed += True in judgements
        return confirmed >= 2 or len(whole) == 1

    def _spoils_others(self, slip: Slip, rows: Sequence[Sequence[Gradient]], tried: "_Prepared") -> bool:
        """Whether another wrong gradient changes and is not right with the slip corrected, unless most become right."""
        before, left = self._before(self._here, tried), tried.trial.wrong - slip.fixes
        positions = [self._facts.subject.active[place] for place in left if len(slip.fixes) <= 2 * len(left)]
        return any(not are_equal(old, new, p) for old, new in zip(before, rows, strict=True) for p in positions)

    def _with_values(self, facts: Sequence[Facts], draft: Draft) -> list[Facts]:
        """All inputs at which an edit is tried, with forward's values there; none if it cannot change forward."""
        if draft.role == "backward":
            return []
        return [f for f in (*facts, *(far for far, _ in self._further()), *self._zeros()) if f.value.size]

    def _is_reshaped(self, slip: Slip, facts: Facts, rows: Sequence[Sequence[Gradient]], tried: "_Prepared") -> bool:
        """Whether a corrected gradient no longer has its input's shape: some frameworks sum it down, JAX does not."""
        before = self._before(facts, tried)
        for place in slip.fixes:
            position, shape = facts.subject.active[place], facts.subject.domain.blocks[place].shape
            shapes, old = shapes_of(rows, position), shapes_of(before, position)
            if shapes != old and shapes - {shape}:
                return True
        return False

    def _is_lost(self, slip: Slip, edited: _Codes | None, tried: "_Prepared", facts: Facts) -> bool:
        """Whether a corrected gradient is wrong or not finite where the present one and forward's slopes are finite."""
        rows, before = _corrected_rows(slip, edited, tried, facts), self._before(facts, tried)
        for place in slip.fixes:
            if not are_finite(before, facts.subject.active[place]):
                continue
            known = all(np.isfinite(s.values).all() and np.isfinite(s.bounds).all() for s in facts.compared(place))
            if known and not are_finite(rows, facts.subject.active[place]):
                return True
            if known and facts.is_felt(place) and judged(facts, place, rows, _SPOILT) is False:
                return True
        return False

    def _is_vague(self, slip: Slip, tried: "_Prepared") -> bool:
        """Whether a slip sums, shifts or reverses along an axis that has two entries here and at other sizes."""
        there = at_other_sizes(self._facts)
        with running(tried.codes):
            if not is_ambiguous(shortest_axis(slip, tried.hooks, self._here, self._framework)):
                return False
            length = None if there is None else shortest_axis(slip, tried.hooks, there, self._framework)
        return length is None or is_ambiguous(length)

    def _zeros(self) -> list[Facts]:
        if self._with_zeros is None:
            self._with_zeros = [*with_zeros(self._facts), *with_zero_numbers(self._facts)]
        return self._with_zeros

    def _constants(self, draft: Draft) -> list[Facts]:
        if self._at_constants is None:
            nodes = [draft.part(role).node for role in ("backward", "forward") if draft.has(role)]
            self._at_constants = list(at_constants(self._facts, numbers_in(nodes)))
        return self._at_constants

    def _is_disproved(
        self, slip: Slip, edited: _Codes | None, tried: "_Prepared", facts: Facts, is_meant: bool
    ) -> bool:
        """Whether a corrected gradient is wrong at further inputs: such as backward is meant for, or was right at.

        One that fails at sizes that backward takes as it is, is wrong. Where the output does not depend on an input, as
        where all of it is clamped, that says nothing.
        """
        rows, before = _corrected_rows(slip, edited, tried, facts), self._before(facts, tried)
        return any(
            facts.is_felt(place)
            and judged(facts, place, rows, _SPOILT) is False
            and (
                (is_meant and (fit(facts, place, rows) or fit(facts, place, before)))
                or judged(facts, place, before) is True
            )
            for place in slip.fixes
        )

    def _further(self) -> list[tuple[Facts, bool]]:
        """Further inputs, and whether a right backward is right there; else only what it was right before counts."""
        if self._far is None:
            origin = None if self._facts.origin is None else self._facts.origin.bound_anew()
            here = self._facts
            written = () if self._draft is None else numbers_in([self._draft.backward.node])
            meant = (origin, *at_other_numbers(here, written), at_other_sizes(here), *at_reordered_sizes(here))
            self._far = [*far_away(self._facts), *((facts, True) for facts in meant if facts is not None)]
        return self._far

    def _before(self, facts: Facts, tried: "_Prepared") -> Sequence[Sequence[Gradient]]:
        """What backward returns as it is, for each cotangent."""
        if id(facts) not in self._returned:
            with running(tried.codes):
                self._returned[id(facts)] = [facts.returned_for(cotangent) for cotangent in facts.cotangents]
        return self._returned[id(facts)]


@dataclass(frozen=True, slots=True)
class _Prepared:
    """The trial, with the hooked code of backward and forward; forward's hooks, `ahead`, give its local names."""

    trial: Trial
    places: Sequence[ast.expr]
    codes: Mapping[FunctionType, CodeType]
    hooks: Hooks
    ahead: Hooks
    conditions: Conditions
    edits_forward: bool


def _corrected_rows(slip: Slip, edited: _Codes | None, tried: _Prepared, facts: Facts) -> Sequence[Sequence[Gradient]]:
    """What backward returns with a slip corrected, for each cotangent; `edited` code, if any, runs already."""
    if tried.edits_forward:
        facts.returned_for(facts.cotangents[1])  # the call of forward that may be left from before the edit
    with putting(slip, tried.hooks, tried.ahead if edited is None else None, facts):
        return [facts.returned_for(cotangent) for cotangent in facts.cotangents]


def _position(node: ast.expr) -> tuple[int, int, int, int]:
    """Where an expression begins; of two that begin at one place the longer one comes last."""
    return node.lineno, node.col_offset, node.end_lineno or 0, node.end_col_offset or 0


def _expressions(draft: Draft, facts: Facts, position: int) -> set[ast.expr]:
    node, subject = draft.edited.node, facts.subject
    number, count = (1, 2) if subject.info.is_pushed else (position, len(subject.arguments))
    body: list[ast.stmt] = [ast.Return(value=node.body)] if isinstance(node, ast.Lambda) else node.body
    found = [n for n in expressions_of(body, draft.tree) if not steers(n, draft)]
    only = relevant(node, (number,), count) if draft.role == "backward" else saved_alone(node)
    return {n for n in found if only is None or n in only}
