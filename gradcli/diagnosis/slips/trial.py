"""The candidates for expressions of backward, tried at benches in stages: edits of an expression, then forms."""

import ast
import itertools
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from types import CodeType, FunctionType
from typing import Any, final

import numpy as np

from gradcli.backends.base import FloatArray
from gradcli.diagnosis.slips.affine import Influence, affine_at, influence_of
from gradcli.diagnosis.slips.bench import Bench, growths, is_wider
from gradcli.diagnosis.slips.forms import Speller
from gradcli.diagnosis.slips.hooks import Hooks, array_of, compiled_expression, marks_of, running
from gradcli.diagnosis.slips.library import Place, fitted
from gradcli.diagnosis.slips.names import Names, expressions_known, names_at
from gradcli.diagnosis.slips.slip import Slip
from gradcli.diagnosis.slips.standing import is_scaled_above, steers
from gradcli.diagnosis.slips.stock import Stock
from gradcli.edits.deciding import decides
from gradcli.edits.draft import Draft
from gradcli.edits.expressions import (
    Candidate,
    of_function,
    reversed_runs,
    scaled,
    shifted,
    simple_factors,
    swaps,
    wraps,
)
from gradcli.edits.flow import carrying, names_in, saved_alone
from gradcli.edits.forward_values import as_in_forward
from gradcli.edits.idiom import Idiom, idiom_of
from gradcli.edits.products import symmetrised, turned
from gradcli.edits.regrouping import (
    as_elsewhere,
    deconvolved,
    exclusive,
    interleaved,
    inverted,
    reordered,
    solved,
    with_opposite_signs,
    with_signs,
)
from gradcli.edits.renaming import renamed
from gradcli.edits.scope import Scope, scope_of
from gradcli.edits.statements import of_statements, rearranged, sliced, summed_up, unpacked
from gradcli.errors import OverrunError

PROOFS = 12
"""At most so many slips of a stage are put to the proof, those with the lowest cost first."""
MOST_RUNS = 1500
"""Runs of backward after which no further place is tried, the same on every machine: searches of `benchmarks/fix` that
found something made 520 at most."""
_OVERRUNS = 1
"""At most so many edits may exceed the time limit of a call; one more ends the search."""
_FEW_TIMES, _MOST_ENTRIES = 4, 10_000_000
"""A number that grows more often than this may be a length, of tensors with at most so many entries."""

Stage = Callable[[int], Iterator[Slip]]


def _code_of(node: object) -> CodeType | None:
    """The code of a node that is an expression and can be evaluated alone."""
    if not isinstance(node, ast.expr):
        return None
    try:
        return compiled_expression(node)
    except (SyntaxError, ValueError, TypeError):
        return None


@final
class Trial:
    """The candidates for the places of one backward; what was tried for one input is not tried again for another."""

    def __init__(
        self,
        draft: Draft,
        places: Sequence[ast.expr],
        benches: Sequence[Bench],
        hooks: Hooks,
        codes: Mapping[FunctionType, CodeType],
        framework: Any,
    ) -> None:
        """`codes` contain the hooks, and replace the functions' own code while something is tried."""
        self._draft, self._places, self._benches = draft, places, tuple(benches)
        self._hooks, self._codes, self._framework = hooks, codes, framework
        self._idiom: Idiom = idiom_of(draft, framework.name)
        self._speller = Speller(self._idiom)
        self._scopes: dict[tuple[tuple[str, int], ...], Scope] = {}
        self._linear: dict[int, Place | None] = {}
        self._influences: dict[int, Influence | None] = {}
        self._stocks: dict[tuple[Any, ...], Stock] = {}
        self._known: dict[tuple[int, int], list[Slip]] = {}
        self._growths: dict[int, list[tuple[int, float]]] = {}
        self._overruns = 0
        found = [b.projected() for b in benches]
        known = [p for p in found if p is not None]
        self.present: tuple[FloatArray, ...] | None = tuple(known) if len(known) == len(found) else None
        rights = [b.right(p) for b, p in zip(benches, known, strict=False)]
        self.wrong = frozenset(int(n) for n in np.flatnonzero(~np.all(rights, axis=0))) if rights else frozenset()
        self.cotangents = {a.text.split("[")[0] for a in self._scope(next(iter(benches[0].seen))).cotangents}
        """What backward calls the gradients of the outputs."""
        self._carried = carrying(draft.edited.node, self.cotangents) | self.cotangents

    def stages(self, numbers: Sequence[int]) -> Iterator[list[Slip]]:
        """The slips at the places of these numbers, stage by stage, the likelier first."""
        with running(self._codes):
            first = self._of_stage(0, self._edits, numbers)
            first += self._of_stage(1, self._statements, [-1])
        yield first
        for stage, tried in enumerate((self._short_forms, self._further, self._deep_forms), 2):
            with running(self._codes):
                found = self._of_stage(stage, tried, numbers)
            yield found

    def _of_stage(self, stage: int, tried: Stage, numbers: Sequence[int]) -> list[Slip]:
        missing = [number for number in numbers if (stage, number) not in self._known]
        found = {(stage, number): self._slips(tried, number) for number in missing}
        changed = [b for b, p in zip(self._benches, self.present or (), strict=False) if missing and b.is_changed(p)]
        if changed:  # an edit wrote into what forward saved, and the runs after it saw that
            with ExitStack() as stack:
                for bench in changed:
                    stack.enter_context(bench.calling_forward())
                found = {(stage, number): self._slips(tried, number) for number in missing}
        self._known |= found
        return [slip for number in numbers for slip in self._known[stage, number]]

    def _slips(self, tried: Stage, number: int) -> list[Slip]:
        """The slips that a stage finds at a place, unless backward has been run too often."""
        return list(tried(number)) if sum(bench.runs for bench in self._benches) < MOST_RUNS else []

    def _statements(self, _number: int) -> Iterator[Slip]:
        """Statements changed: what is unpacked, a range of an index, an addition; of forward those that only save."""
        node = self._draft.edited.node
        scope = self._scope(next(iter(self._benches[0].seen)))
        parameters = len(self._benches[0].facts.subject.arguments)
        if self._draft.role == "backward":
            edits = (unpacked(node), sliced(node), summed_up(node), of_statements(node, scope, self._idiom))
            candidates = [*rearranged(node, parameters, scope), *itertools.chain(*edits)]
        else:
            own = saved_alone(node)
            candidates = [c for c in (*sliced(node), *summed_up(node)) if c.changes[0].old in own]
        for candidate in candidates:
            change, *more = candidate.changes
            old, new = change.old, change.new or ast.Pass()
            if steers(old, self._draft) or isinstance(new, tuple):
                continue
            edited = self._draft.codes_with(candidate.changes)
            if edited is None:
                continue
            with running({**self._codes, **edited}):
                fixed = self._better()
            if fixed:
                yield Slip(cost=candidate.cost, number=None, old=old, new=new, fixes=fixed, more=tuple(more))

    def _scope(self, place: int) -> Scope:
        names = self._benches[0].seen[place][0][1]
        key = tuple((name, id(value)) for name, value in names.items())
        if key not in self._scopes:
            node = self._draft.edited.node
            own, role = self._framework, self._draft.role
            self._scopes[key] = scope_of(names, node, own.is_tensor, framework=own.name, role=role)
        return self._scopes[key]

    def _edits(self, number: int) -> Iterator[Slip]:
        """An operator, a name, a number, a function or a sign replaced; operands exchanged."""
        if number in self._benches[0].seen:
            node = self._places[number]
            candidates = [c for c in swaps(node, self._scope(number), self._idiom) if not self._has_two_signs(node, c)]
            value = self._benches[0].seen[number][0][0]
            is_tensor = self._framework.is_tensor(value)
            rank = len(value.shape) if is_tensor else 0
            saves = self._draft.role != "backward"
            by_one = not names_in(node) & self._carried and self._may_be_off_by_one(node, value, is_tensor)
            others = (
                turned(node, self._idiom),
                symmetrised(node, self._idiom, rank),
                reversed_runs(node, self._idiom),
                reordered(node),
                with_signs(node),
                with_opposite_signs(node),
                inverted(node) if is_tensor else (),
                interleaved(node),
                deconvolved(node),
                exclusive(node),
                self._as_in_forward(node),
                () if saves else renamed(node, self._scope(number)),
                shifted(node, [(0.9, ast.Constant(value=1))] if by_one else []),
                as_elsewhere(node, self._draft.tree.parent(node), self._draft.edited.node) if saves else (),
            )
            yield from self._tried(number, (*candidates, *itertools.chain(*others)))

    def _as_in_forward(self, node: ast.expr) -> Iterator[Candidate]:
        if self._draft.role != "backward" or not self._draft.has("forward"):
            return iter(())
        forward = self._draft.part("forward").node
        return as_in_forward(node, self._draft.tree.parent(node), forward, self._draft.edited.node)

    def _has_two_signs(self, node: ast.expr, candidate: Candidate) -> bool:
        """Whether a number after a minus becomes 0 or a negative one: `-1` as a whole has these in its place."""
        above, new = self._draft.tree.parent(node), candidate.changes[0].new
        is_negated = isinstance(above, ast.UnaryOp) and isinstance(above.op, ast.USub)
        return is_negated and (isinstance(new, ast.UnaryOp) or (isinstance(new, ast.Constant) and not new.value))

    def _may_be_off_by_one(self, node: ast.expr, value: Any, is_tensor: bool) -> bool:
        """Whether an expression is a divisor or a sum, as a number of entries plus 1 is, or an index, as of a step."""
        above = self._draft.tree.parent(node)
        if not is_tensor:
            return type(value) is int and isinstance(above, ast.Subscript) and above.slice is node
        divides = isinstance(above, ast.BinOp) and isinstance(above.op, ast.Div) and above.right is node
        return divides or (isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub))

    def _further(self, number: int) -> Iterator[Slip]:
        """A transposition, a sum, a shift, a function or a known factor applied to an expression that is a tensor.

        Factors, and terms that are tensors of its shape, are tried here where the gradients do not depend on the value
        linearly, or a loop computes it again.
        """
        node = self._places[number]
        value = self._benches[0].seen.get(number, [(None, {})])[0][0]
        if self._framework.is_tensor(value):
            found: list[Candidate] = []
            if not decides(node, self._draft.edited.node, self._draft.tree):
                found += wraps(node, self._idiom, len(value.shape), is_complex="complex" in str(value.dtype))
                found += [*of_function(node, self._idiom), *solved(node, self._idiom)]
            if not is_scaled_above(self._draft, node):
                found += scaled(node, simple_factors(self._scope(number)))
            if self._influences.get(number) is None:
                alike = (a for a in self._scope(number).tensors if a.shape == tuple(value.shape))
                found += shifted(node, [(a.length, a.node) for a in alike])
            yield from self._tried(number, found)

    def _tried(self, number: int, candidates: Sequence[Candidate]) -> Iterator[Slip]:
        """The candidates that correct a gradient; of those with equal values one is run, and none that raises."""
        node = self._places[number]
        made = [(c.cost, new, _code_of(new)) for c in candidates if isinstance(new := c.changes[0].new, ast.expr)]
        codes = [(cost, new, code) for cost, new, code in made if code is not None]
        own = _code_of(node)
        values = [] if own is None else self._values(number, [own, *(code for _, _, code in codes)])
        marks = [marks_of(each, self._framework) for each in values]
        known: dict[Hashable, frozenset[int]] = {None: frozenset(), **dict.fromkeys(marks[:1], frozenset())}
        for (cost, new, code), given, mark in zip(codes, values[1:], marks[1:], strict=False):
            if mark not in known and self._is_far_longer(number, values[0], given):
                known[mark] = frozenset()
            if mark not in known:
                predicted = self._predicted(number, given)
                known[mark] = self._run(number, code) if predicted is None else predicted
            if known[mark]:
                yield Slip(cost=cost, number=number, old=node, new=new, fixes=known[mark])

    def _is_far_longer(self, number: int, own: Sequence[Sequence[Any]], given: Sequence[Sequence[Any]]) -> bool:
        """Whether a whole number in place of another one would give tensors of backward too many entries."""
        old, new = own[0][0], given[0][0]
        if type(old) is not int or type(new) is not int or new <= _FEW_TIMES * max(old, 1):
            return False
        if number not in self._growths:
            self._growths[number] = growths(self._benches[0], number, 2 * max(old, 1), self._framework)
        power = float(np.log2(new / max(old, 1)))
        return any(before * times**power > _MOST_ENTRIES for before, times in self._growths[number])

    def _values(self, number: int, codes: Sequence[CodeType]) -> list[list[list[Any]]]:
        """For each code, at each bench, its values at a place; empty if backward fails."""
        found: list[list[list[Any]]] = [[] for _ in codes]
        for bench in self._benches:
            with self._hooks.comparing(number, codes) as values:
                if not self._runs(bench):
                    return []
            for each, here in zip(found, values, strict=True):
                each.append(here)
        return found

    def _predicted(self, number: int, values: Sequence[Sequence[Any]]) -> frozenset[int] | None:
        """The gradients that values at a place correct, computed from its influence; None if that is not possible."""
        influence = self._influences.get(number)
        if influence is None or any(len(here) != 1 or not self._framework.is_tensor(here[0]) for here in values):
            return None
        found = (array_of(here[0], self._framework) for here in values)
        arrays = [array for array in found if array is not None]
        if tuple(a.shape for a in arrays) != influence.shapes or any(a.dtype.kind != "f" for a in arrays):
            return None
        return influence.fixed_by(np.concatenate([a.reshape(-1) for a in arrays]), self.wrong)

    def _run(self, number: int, code: CodeType) -> frozenset[int]:
        with self._hooks.computing(number, code, {}):
            return self._better()

    def _runs(self, bench: Bench) -> bool:
        try:
            return bench.projected() is not None
        except OverrunError:
            self._overruns += 1
            if self._overruns > _OVERRUNS:
                raise
            return False

    def _better(self) -> frozenset[int]:
        """The inputs whose gradients have become right, if no right one has become wrong."""
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

    def _short_forms(self, number: int) -> Iterator[Slip]:
        """A factor, a term or another expression, where the gradients depend on the value linearly."""
        return self._forms(number, deep=False)

    def _deep_forms(self, number: int) -> Iterator[Slip]:
        """The same, made of more parts."""
        return self._forms(number, deep=True)

    def _forms(self, number: int, *, deep: bool) -> Iterator[Slip]:
        place = self._place(number)
        if place is not None:
            yield from fitted(place, self._stock(place.names), PROOFS, deep=deep)
            if not deep and not place.inner:
                yield from self._tried(number, self._widening(number))

    def _widening(self, number: int) -> list[Candidate]:
        """Factors that broadcast the value to more entries; forms fitted to a place never do: they have its shape."""
        shape = tuple(self._benches[0].seen[number][0][0].shape)
        wider = [a.text for a in self._scope(number).tensors if is_wider(a.shape, shape)]
        factors = [(cost, node) for cost, node in simple_factors(self._scope(number)) if ast.unparse(node) in wider]
        return list(scaled(self._places[number], factors))

    def _stock(self, names: Names) -> Stock:
        known = (*names.plain, *names.carriers, *names.computed)
        key = tuple((f.text, *(v.tobytes() for v in f.values)) for f in known)
        if key not in self._stocks:
            self._stocks[key] = Stock(names, self._speller)
        return self._stocks[key]

    def _place(self, number: int) -> Place | None:
        """The place, if the gradients are affine in its value and some value makes all that it reaches right."""
        if number not in self._linear:
            self._linear[number] = self._measured(number)
        return self._linear[number]

    def _measured(self, number: int) -> Place | None:
        influence = self._influences[number] = self._influence(number)
        if influence is None or influence.inputs - self.wrong or not influence.can_fix:
            return None
        part, beside = self._draft.edited, self._borrowable(number)
        known = self._computed(number)
        return Place(
            number=number,
            node=self._places[number],
            influence=influence,
            names=names_at(
                number, self._benches, part.node, self._framework, self._idiom, beside, known, self._draft.role
            ),
            carries=bool(names_in(self._places[number]) & self._carried),
            inner=is_scaled_above(self._draft, self._places[number]),
        )

    def _borrowable(self, number: int) -> list[str]:
        """Forward's names that a place may use: one that backward binds, only as the whole value that it is bound to.

        `x` in backward's `x = y / 2` stands for what is computed from the output; forward's may be the right one.
        """
        node, definition = self._places[number], self._draft.edited.node
        above = self._draft.tree.parent(node)
        bound = {n.id for n in ast.walk(definition) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
        if isinstance(above, ast.Assign) and len(above.targets) == 1 and isinstance(above.targets[0], ast.Name):
            bound.discard(above.targets[0].id)
        return [name for name in self._benches[0].beside if name not in bound]

    def _computed(self, number: int) -> list[tuple[ast.expr, list[Any]]]:
        """Expressions of forward and backward that give one tensor at a place, with the value at each bench."""
        nodes = expressions_known(self._draft, self._carried, self._places[number])
        codes = [(node, code) for node in nodes if (code := _code_of(node)) is not None]
        values = self._values(number, [code for _, code in codes])
        single = [all(len(v) == 1 and self._framework.is_tensor(v[0]) for v in each) for each in values]
        found = zip(codes, values, single, strict=False)
        return [(node, [here[0] for here in each]) for (node, _), each, is_one in found if is_one]

    def _influence(self, number: int) -> Influence | None:
        maps = []
        for bench, now in zip(self._benches, self.present or (), strict=True):
            made = affine_at(number, bench, self._framework, now)
            if made is None:
                return None
            maps.append(made)
        return influence_of(maps, self._benches, self.present or ())
