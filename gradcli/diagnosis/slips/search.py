"""The search for the one expression of backward that is wrong: edits of it, forms in its place, and the proof.

What is tried is held against slopes of forward along a few directions. What agrees there is put into backward's source
and held against slopes at other inputs, which have not been looked at before; only what is right there too is named.
"""

import ast
import copy
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import CodeType, FunctionType
from typing import Any, final

import numpy as np

from gradcli.backends.base import FloatArray
from gradcli.diagnosis.facts import DIRECTIONS, Facts
from gradcli.diagnosis.slips.affine import affine_at
from gradcli.diagnosis.slips.bench import Bench, summed_down
from gradcli.diagnosis.slips.forms import Speller
from gradcli.diagnosis.slips.hooks import Hooks, hooked, places_in, running
from gradcli.diagnosis.slips.library import Place, base_forms, fitted
from gradcli.diagnosis.slips.names import names_at
from gradcli.diagnosis.slips.slip import Slip
from gradcli.diagnosis.slips.standing import is_scaled_above, steers
from gradcli.edits.draft import Draft, draft_for
from gradcli.edits.expressions import (
    expressions_of,
    of_function,
    reversed_runs,
    scaled,
    simple_factors,
    swaps,
    turned,
    wraps,
)
from gradcli.edits.flow import carrying, names_in, relevant
from gradcli.edits.idiom import Idiom, idiom_of
from gradcli.edits.render import Change
from gradcli.edits.scope import Scope, scope_of
from gradcli.edits.statements import rearranged, sliced, summed_up, unpacked
from gradcli.errors import OverrunError
from gradcli.watchdog.case import watched

_PLACES = 60
"""Expressions that are looked at, those nearest to the return statement first."""
_PROOFS = 12
"""Slips that are put to the proof, the shortest first."""
_SHARED = 1.2
"""What it is worth that one slip explains another input's wrong gradient as well: more than an exchanged name."""
_OVERRUNS = 1
"""Edits that may not end: with one more the search does."""
_SECONDS = 7.5
"""Half of what naming may take, so that the rules after the search have the rest of it where backward is slow."""
_ENOUGH = 3
"""Equations for a form that has one number free; fewer are found at several inputs."""


@final
class SlipSearch:
    """The slips of one backward at the inputs of some facts."""

    def __init__(self, facts: Facts) -> None:
        self._facts = facts
        self._anew: Facts | None = None
        self._framework: Any = getattr(facts.subject, "framework", None)
        self._draft = None if self._framework is None else draft_for(facts.subject.info)
        self._proven: dict[int, Slip | None] = {}
        self._others: list[Facts] | None = None
        self._cotangents: set[str] = set()

    @property
    def draft(self) -> Draft | None:
        """The file that backward is in."""
        return self._draft

    @property
    def cotangents(self) -> set[str]:
        """What backward calls the gradients of the outputs."""
        return self._cotangents

    def slip_for(self, place: int) -> Slip | None:
        """The shortest slip that is proven to make the gradient of the active input number `place` right.

        None where forward's derivative is zero: much makes a gradient vanish, and a surrogate is no mistake.
        """
        if self._draft is None or self._framework.name == "jax" or not self._facts.is_felt(place):
            return None
        if place not in self._proven:
            with watched() as watchdog, np.errstate(all="ignore"), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                with watchdog.during("naming", optional=True, searching=True, share=_SECONDS):
                    self._search(self._draft, place)
        return self._proven.setdefault(place, None)

    def _search(self, draft: Draft, place: int) -> None:
        part = draft.backward
        hooks, ahead = Hooks(), Hooks()
        position = self._facts.subject.active[place]
        expressions = _expressions(draft, position, len(self._facts.subject.arguments))
        places = places_in(part.node, expressions)[-_PLACES:]
        codes = _codes(draft, places, hooks, ahead)
        if codes is None:
            return
        with running(codes):
            benches = self._benches(hooks, ahead, draft)
            if not all(bench.seen for bench in benches):
                return  # nothing of backward's own ran: it is called in a way that its source does not show
            trial = _Trial(draft, places, benches, hooks, self._framework)
            if trial.present is None or place not in trial.wrong:
                return
            stages = trial.stages(codes)
            self._cotangents = trial.cotangents
        for stage in stages:
            with running(codes):
                found = [s for s in stage() if place in s.mends]
            found.sort(key=lambda s: s.cost - _SHARED * len(s.mends & trial.wrong))
            for slip in found[:_PROOFS]:
                if self._holds(slip, draft, codes, hooks, ahead):
                    for mended in slip.mends & trial.wrong:
                        self._proven.setdefault(mended, slip)
                    return

    def _benches(self, hooks: Hooks, ahead: Hooks, draft: Draft) -> tuple[Bench, ...]:
        """One bench, or as many as a few small inputs need for enough equations."""
        subject = self._facts.subject
        forward = ahead if draft.has("forward") else None
        found = [Bench(self._here, hooks, 1)]
        fewest = min((subject.domain.blocks[p].entries for p in range(len(subject.active))), default=0)
        for other in self._elsewhere() if fewest < _ENOUGH else ():
            if len(found) * fewest < _ENOUGH + 1:
                found.append(Bench(other, hooks, 1))
        for bench in found:
            bench.record(forward)
        return tuple(found)

    @property
    def _here(self) -> Facts:
        """The facts, where an edit that does not end is stopped."""
        if self._anew is None:
            for place in range(len(self._facts.subject.active)):
                self._facts.slopes(place)
            self._anew = self._facts.bound_anew()
        return self._anew

    def _elsewhere(self) -> list[Facts]:
        if self._others is None:
            facts, blocks = self._facts, self._facts.subject.domain.blocks
            made = [facts.elsewhere, facts.rearranged(0), facts.rearranged(2)]
            if all(block.entries == 1 for block in blocks):  # one number tells nothing of the rest of the domain
                values = [facts.subject.arguments[p].value for p in facts.subject.active]
                made.append(facts.at([0.3 * value for value in values]))
            self._others = [facts for facts in made if facts is not None]
        return self._others

    def _holds(
        self, slip: Slip, draft: Draft, codes: Mapping[FunctionType, CodeType], hooks: Hooks, ahead: Hooks
    ) -> bool:
        """Whether the gradients are right with the slip corrected, here for other cotangents and at other inputs."""
        edited = None if slip.borrowed else draft.codes_with(slip.changes)
        if edited is None and not slip.borrowed:
            return False
        whole = [(self._here, True), *((facts, False) for facts in self._elsewhere())]
        confirmed = 0
        with running(codes):
            returned = [_returned(facts) for facts, _ in whole]
        with running(codes if edited is None else edited):
            for (facts, here), before in zip(whole, returned, strict=True):
                with _putting(slip, hooks, ahead if edited is None else None, facts):
                    told = [_judged(facts, place) for place in slip.mends]
                    if _returned(facts) != before:
                        return False
                if False in told or (here and True not in told):
                    return False
                confirmed += True in told
        return confirmed > 1 or len(whole) == 1


class _putting:  # noqa: N801 - used as a function
    """A slip that borrows names of forward's, put in by a hook; nothing for one that is in the code."""

    def __init__(self, slip: Slip, hooks: Hooks, ahead: Hooks | None, facts: Facts) -> None:
        self._context: Any = None
        if ahead is not None:
            facts.returned_for(facts.cotangents[1])
            facts.returned_for(facts.cotangents[1])
            names = {} if ahead.frame is None else dict(ahead.frame.f_locals)
            self._context = hooks.computing(slip.place or 0, _compiled(slip.new), names)

    def __enter__(self) -> None:
        if self._context is not None:
            self._context.__enter__()

    def __exit__(self, *_: object) -> None:
        if self._context is not None:
            self._context.__exit__(None, None, None)


def _returned(facts: Facts) -> tuple[bool, ...]:
    """For each input that needs no gradient whether backward returns one: what is moved there is not corrected."""
    row = facts.returned_for(facts.cotangents[0])
    return tuple(value is not None for position, value in enumerate(row) if position not in facts.subject.active)


def _judged(facts: Facts, place: int) -> bool | None:
    position = facts.subject.active[place]
    rows = [facts.returned_for(row) for row in facts.cotangents]
    shape = facts.subject.domain.blocks[place].shape
    gradients = [row[position] if position < len(row) else None for row in rows]
    return facts.judged(place, [None if g is None else summed_down(g, shape) for g in gradients])


def _expressions(draft: Draft, position: int, count: int) -> set[ast.expr]:
    node = draft.backward.node
    body: list[ast.stmt] = [ast.Return(value=node.body)] if isinstance(node, ast.Lambda) else node.body
    found = [n for n in expressions_of(body, draft.tree) if not steers(n, draft)]
    only = relevant(node, (position,), count)
    return {n for n in found if only is None or n in only}


def _codes(draft: Draft, places: Sequence[ast.expr], hooks: Hooks, ahead: Hooks) -> dict[FunctionType, CodeType] | None:
    backward = hooked(draft.backward.node, draft.backward.function, places, hooks)
    if backward is None:
        return None
    codes = {draft.backward.function: backward}
    if draft.has("forward"):
        forward = draft.part("forward")
        code = hooked(forward.node, forward.function, (), ahead)
        if code is not None:
            codes[forward.function] = code
    return codes


def _compiled(node: Any) -> CodeType:
    tree = ast.Expression(body=copy.deepcopy(node))
    return compile(ast.fix_missing_locations(tree), "<slip>", "eval")


class _Trial:
    """What is tried at some benches, in stages: edits of expressions, then forms in their place."""

    def __init__(
        self, draft: Draft, places: Sequence[ast.expr], benches: Sequence[Bench], hooks: Hooks, framework: Any
    ) -> None:
        self._draft, self._places, self._benches = draft, places, tuple(benches)
        self._hooks, self._framework = hooks, framework
        self._idiom: Idiom = idiom_of(draft.backward.function, framework.name)
        self._scopes: dict[int, Scope] = {}
        self._overruns = 0
        found = [b.projected() for b in benches]
        known = [p for p in found if p is not None]
        self.present: tuple[FloatArray, ...] | None = tuple(known) if len(known) == len(found) else None
        rights = [b.right(p) for b, p in zip(benches, known, strict=False)]
        self.wrong = frozenset(int(n) for n in np.flatnonzero(~np.all(rights, axis=0))) if rights else frozenset()

    def stages(self, codes: Mapping[FunctionType, CodeType]) -> list[Callable[[], Iterator[Slip]]]:
        """The stages, the likelier first; each gives slips in any order. `codes` have the hooks."""

        def first() -> Iterator[Slip]:
            yield from self._edits()
            yield from self._statements(codes)

        return [first, lambda: self._forms(deep=False), self._further, lambda: self._forms(deep=True)]

    def _statements(self, codes: Mapping[FunctionType, CodeType]) -> Iterator[Slip]:
        """Statements changed: what is unpacked, a range of an index, an addition."""
        node = self._draft.backward.node
        scope = self._scope(next(iter(self._benches[0].seen)))
        parameters = len(self._benches[0].facts.subject.arguments)
        returned = rearranged(node, parameters, scope)
        for candidate in (*returned, *unpacked(node), *sliced(node), *summed_up(node)):
            change, *more = candidate.changes
            if steers(change.old, self._draft):
                continue
            edited = self._draft.codes_with(candidate.changes)
            if edited is None or isinstance(change.new, tuple):
                continue
            with running({**codes, **edited}):
                mended = self._better()
            if mended:
                yield Slip(
                    cost=candidate.cost, place=None, old=change.old, new=change.new, mends=mended, more=tuple(more)
                )

    @property
    def cotangents(self) -> set[str]:
        """What backward calls the gradients of the outputs."""
        return _cotangents(self._scope(next(iter(self._benches[0].seen))))

    def _scope(self, place: int) -> Scope:
        if place not in self._scopes:
            names = self._benches[0].seen[place][0][1]
            node = self._draft.backward.node
            self._scopes[place] = scope_of(names, node, self._framework.is_tensor, framework=self._framework.name)
        return self._scopes[place]

    def _edits(self) -> Iterator[Slip]:
        """An operator, a name, a number, a function or a sign exchanged; operands turned."""
        for number, node in enumerate(self._places):
            if number not in self._benches[0].seen:
                continue
            for candidate in swaps(node, self._scope(number), self._idiom):
                yield from self._tried(number, node, candidate.cost, candidate.changes)
            for candidate in (*turned(node, self._idiom), *reversed_runs(node, self._idiom)):
                yield from self._tried(number, node, candidate.cost, candidate.changes)

    def _further(self) -> Iterator[Slip]:
        """A transposition, a sum, a shift, a function or a known factor put to an expression that is a tensor.

        Factors are tried here where the gradients do not depend on the value linearly, or a loop computes it again.
        """
        for number, node in enumerate(self._places):
            value = self._benches[0].seen.get(number, [(None, {})])[0][0]
            if not self._framework.is_tensor(value):
                continue
            found = [*wraps(node, self._idiom, len(value.shape), is_complex=False), *of_function(node, self._idiom)]
            if not is_scaled_above(self._draft, node):
                found += scaled(node, simple_factors(self._scope(number)))
            for candidate in found:
                yield from self._tried(number, node, candidate.cost, candidate.changes)

    def _tried(self, number: int, node: ast.expr, cost: float, changes: Sequence[Change]) -> Iterator[Slip]:
        (change,) = changes
        if not isinstance(change.new, ast.expr):
            return
        try:
            code = _compiled(change.new)
        except (SyntaxError, ValueError, TypeError):
            return
        mended = self._mended(number, code)
        if mended:
            yield Slip(cost=cost, place=number, old=node, new=change.new, mends=mended)

    def _mended(self, number: int, code: CodeType) -> frozenset[int]:
        """The inputs whose gradients become right, where no other becomes wrong."""
        with self._hooks.computing(number, code, {}):
            return self._better()

    def _better(self) -> frozenset[int]:
        """The inputs whose gradients are right now and were not, where no other is wrong that was not."""
        left: set[int] = set()
        for bench in self._benches:
            try:
                found = bench.projected()
            except OverrunError:
                self._overruns += 1
                if self._overruns > _OVERRUNS:
                    raise
                return frozenset()
            if found is None:
                return frozenset()
            left |= set(np.flatnonzero(~bench.right(found)))
            if not left < self.wrong:
                return frozenset()
        return self.wrong - left

    def _forms(self, *, deep: bool) -> Iterator[Slip]:
        """A factor, a term or another expression, where the gradients depend on the value linearly."""
        node = self._draft.backward.node
        speller = Speller(self._idiom, self._framework.name)
        parameters = self.cotangents
        carried = carrying(node, parameters) | parameters
        for place in self._linear(carried):
            yield from fitted(place, base_forms(place.names, speller), speller, deep=deep)

    def _linear(self, carried: set[str]) -> Iterator[Place]:
        present = self.present or ()
        for number, expression in enumerate(self._places):
            maps = []
            for bench, now in zip(self._benches, present, strict=True):
                made = affine_at(number, bench, self._framework, now)
                if made is None:
                    break
                maps.append(made)
            if len(maps) < len(self._benches) or not self._reaches_only_wrong(maps):
                continue
            names = names_at(
                number, self._benches, self._draft.backward.node, self._framework, list(self._benches[0].beside)
            )
            yield Place(
                number=number,
                node=expression,
                maps=tuple(maps),
                benches=self._benches,
                present=present,
                names=names,
                carries=bool(names_in(expression) & carried),
                inner=is_scaled_above(self._draft, expression),
            )

    def _reaches_only_wrong(self, maps: Sequence[Any]) -> bool:
        for each in maps:
            depends = np.abs(each.matrix).max(axis=1, initial=0.0).reshape(-1, DIRECTIONS).max(axis=1) > 0
            if set(np.flatnonzero(depends)) - self.wrong:
                return False
        return True


def _cotangents(scope: Scope) -> set[str]:
    return {a.text.split("[")[0] for a in scope.cotangents}
