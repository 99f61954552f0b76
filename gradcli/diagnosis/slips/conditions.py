"""Conditions of backward: an edit that makes one always true or always false only removes a branch."""

import ast
import itertools
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import CodeType, FunctionType
from typing import Any, final

import numpy as np

from gradcli.diagnosis.slips.hooks import Hooks, array_of, hooked, places_in, running
from gradcli.edits.draft import Draft
from gradcli.edits.expressions import expressions_of
from gradcli.edits.render import Change

Truth = frozenset[bool]
_PLAIN = (ast.Name, ast.Attribute, ast.Constant)


@final
class Conditions:
    """The truth values that the conditions of a draft's backward take while it runs at known inputs."""

    def __init__(self, draft: Draft, run: Callable[[], object], framework: Any) -> None:
        """`run` runs backward at all inputs; it is called when the first edit is judged, and again for each edit."""
        self._draft, self._run, self._framework = draft, run, framework
        self._before: dict[ast.AST, Truth] | None = None

    def are_settled_by(self, changes: Sequence[Change]) -> bool:
        """Whether the changes make a condition always true or always false that was not so before.

        Only edits that introduce names or functions are judged: another number or comparison may well put all of a few
        entries on one side of a threshold, and so may another flag that is a condition by itself.
        """
        new = [change for change in changes if _brings_names(change)]
        if not new:
            return False
        if self._before is None:
            self._before = self._seen({})
        conditions = [node for node, truth in self._before.items() if truth]
        flags = [c for c in new if c.old in conditions and isinstance(c.old, _PLAIN) and isinstance(c.new, _PLAIN)]
        if len(flags) == len(new) or not conditions:
            return False
        with self._draft.tree.having(changes):
            after = self._seen(dict(itertools.chain.from_iterable(map(_counterparts, changes))))
        return any(len(truth) == 1 and truth != self._before.get(node, truth) for node, truth in after.items())

    def _seen(self, made_of: Mapping[ast.AST, ast.AST]) -> dict[ast.AST, Truth]:
        """The truth values of each condition; a new condition under the one that it replaces."""
        part = self._draft.edited
        node = part.node
        body: list[ast.stmt] = [ast.Return(value=node.body)] if isinstance(node, ast.Lambda) else node.body
        places = places_in(node, set(expressions_of(body, self._draft.tree)))
        hooks = Hooks()
        code = hooked(node, part.function, places, hooks)
        if code is None:
            return {}
        codes: dict[FunctionType, CodeType] = {**self._draft.codes, part.function: code}
        with running(codes), hooks.recording() as seen, np.errstate(all="ignore"):
            self._run()
        found = {places[number]: frozenset(self._truths(value for value, _ in seen[number])) for number in seen}
        return {made_of.get(place, place): truth for place, truth in found.items() if truth}

    def _truths(self, values: Iterator[Any]) -> Iterator[bool]:
        for value in values:
            if isinstance(value, bool):
                yield value
            elif self._framework.is_tensor(value):
                array = array_of(value, self._framework)
                yield from set(array.reshape(-1).tolist()) if array is not None and array.dtype.kind == "b" else ()


def _counterparts(change: Change) -> Iterator[tuple[ast.AST, ast.AST]]:
    """The new syntax with what it replaces, and so for each of their parts where only names differ."""
    if isinstance(change.new, ast.expr):
        new, old = list(ast.walk(change.new)), list(ast.walk(change.old))
        alike = list(map(type, new)) == list(map(type, old))
        yield from zip(new, old, strict=True) if alike else [(change.new, change.old)]


def _brings_names(change: Change) -> bool:
    """Whether new syntax has names or attributes that the replaced syntax has not, or not as often."""
    new = change.new if isinstance(change.new, tuple) else (change.new,)
    return bool(Counter(itertools.chain.from_iterable(map(_words, new))) - Counter(_words(change.old)))


def _words(node: ast.AST) -> list[str]:
    names = [n.id for n in ast.walk(node) if isinstance(n, ast.Name)]
    return names + [n.attr for n in ast.walk(node) if isinstance(n, ast.Attribute)]
