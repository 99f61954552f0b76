"""Edits that read another variable wherever an expression reads one: `dy * s * (1 - s)` for `dy * x * (1 - x)`."""

import ast
import copy
from collections import Counter
from collections.abc import Iterator

from gradcli.edits.expressions import Candidate
from gradcli.edits.render import Change
from gradcli.edits.scope import Scope
from gradcli.edits.source import are_alike

_TWICE = 0.3
"""What such an edit costs beside the new name: more than an exchange at one place."""


def renamed(node: ast.expr, scope: Scope) -> Iterator[Candidate]:
    """The expression with a name that it reads more than once exchanged for another one everywhere."""
    counts = Counter(each.id for each in ast.walk(node) if isinstance(each, ast.Name))
    known = {atom.text for atom in scope.atoms}
    for name in (name for name, count in counts.items() if count > 1 and name in known):
        for atom in scope.atoms:
            if atom.text != name and isinstance(atom.node, ast.Name):
                changed = _Renamed(name, atom.text).visit(copy.deepcopy(node))
                if not any(_compares_with_itself(each) for each in ast.walk(changed)):
                    yield Candidate(atom.length + _TWICE, (Change(node, changed),))


def _compares_with_itself(node: ast.AST) -> bool:
    return isinstance(node, ast.Compare) and any(are_alike(node.left, each) for each in node.comparators)


class _Renamed(ast.NodeTransformer):
    def __init__(self, old: str, new: str) -> None:
        self._old, self._new = old, new

    def visit_Name(self, node: ast.Name) -> ast.Name:
        return ast.Name(id=self._new, ctx=node.ctx) if node.id == self._old else node
