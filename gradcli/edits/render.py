"""New syntax written as text; the user's expressions in it keep their spelling and comments."""

import ast
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import Any, final

from gradcli.edits.source import SourceFile, TextEdit, are_alike, edited, indent_of, segment, span
from gradcli.frozen import dataclass


@dataclass(frozen=True, slots=True)
class Change:
    """A node of the user's tree and what takes its place, for a statement also several or none.

    The new syntax may contain nodes of the tree itself.
    """

    old: ast.AST
    new: ast.AST | tuple[ast.stmt, ...]


@final
class Tree:
    """The tree of a file with the parent of every node, in which nodes can be exchanged for a while."""

    def __init__(self, file: SourceFile) -> None:
        self.file = file

    @cached_property
    def _fields(self) -> dict[ast.AST, tuple[ast.AST, str]]:
        """For every node but the root the node above, and the field of that which holds it."""
        found: dict[ast.AST, tuple[ast.AST, str]] = {}
        for parent in ast.walk(self.file.tree):
            for name, value in ast.iter_fields(parent):
                items = value if isinstance(value, list) else [value]
                found.update((item, (parent, name)) for item in items if isinstance(item, ast.AST))
        return found

    def parent(self, node: ast.AST) -> ast.AST | None:
        """The node above; None for the root."""
        return self._fields[node][0] if node in self._fields else None

    def is_inside(self, node: ast.AST, outer: ast.AST) -> bool:
        """Whether a node stands somewhere in another one."""
        above: ast.AST | None = node
        while above is not None and above is not outer:
            above = self.parent(above)
        return above is outer

    @contextmanager
    def having(self, changes: Sequence[Change]) -> Iterator[None]:
        """The tree with the changes made."""
        places = {self._fields[change.old] for change in changes}
        taken = {change.old: change.new for change in changes}
        before = {place: getattr(*place) for place in places}
        try:
            for (parent, name), value in before.items():
                setattr(parent, name, _exchanged(value, taken))
            yield
        finally:
            for (parent, name), value in before.items():
                setattr(parent, name, value)

    def text(self, changes: Sequence[Change]) -> str | None:
        """The file's text with the changes made; None if no text says this and leaves the rest as it is."""
        plans = [self._plan(change) for change in changes]
        with self.having(changes):
            if not self._means(plans):
                return None
            for plan in plans:
                for number in range(len(plan.wrapped)):
                    plan.wrapped[number] = False
                    plan.wrapped[number] = not self._means(plans)
        return self._written(plans)

    def _plan(self, change: Change) -> "_Plan":
        start, stop = span(self.file, change.old)
        kept: list[str] = []
        if isinstance(change.new, ast.expr):
            pattern = ast.unparse(self._with_holes(change.new, kept))
            if isinstance(change.new, ast.Tuple) and change.new.elts:
                pattern = pattern[1:-1]
            if isinstance(change.new, ast.Slice):
                return _Plan(start, stop, pattern, kept, [True] * len(kept))
            if isinstance(change.new, _BINDING) and self._stands_in_parentheses(start, stop):
                start, stop = start - 1, stop + 1
            return _Plan(start, stop, pattern, kept, [True] * (len(kept) + 1))
        several = change.new if isinstance(change.new, tuple) else (change.new,)
        if not several:
            start, stop = self._whole_lines(start, stop)
        indent = indent_of(self.file, change.old)
        lines = "\n".join(ast.unparse(self._with_holes(each, kept)) for each in several)
        return _Plan(start, stop, lines.replace("\n", f"\n{indent}"), kept, [True] * len(kept))

    def _stands_in_parentheses(self, start: int, stop: int) -> bool:
        whole = self.file.text.encode()
        return whole[start - 1 : start] == b"(" and whole[stop : stop + 1] == b")"

    def _whole_lines(self, start: int, stop: int) -> tuple[int, int]:
        """Where lines begin and end that hold nothing but a statement; the statement itself where more stands there."""
        whole = self.file.text.encode()
        first, last = whole.rfind(b"\n", 0, start) + 1, whole.find(b"\n", stop) + 1
        alone = last and not whole[first:start].strip() and not whole[stop:last].strip()
        return (first, last) if alone else (start, stop)

    def _with_holes(self, node: Any, kept: list[str]) -> Any:
        """A copy of new syntax in which a name stands for each expression of the user's own.

        None stands for a range of an index, or for several, which may not stand in parentheses.
        """
        if (
            isinstance(node, ast.expr)
            and node in self._fields
            and isinstance(getattr(node, "ctx", ast.Load()), ast.Load)
            and not any(isinstance(part, ast.Slice) for part in (node, *getattr(node, "elts", ())))
        ):
            kept.append(segment(self.file, node))
            return ast.Name(id=_hole(len(kept) - 1), ctx=ast.Load())
        if isinstance(node, ast.AST):
            fields = {name: self._with_holes(value, kept) for name, value in ast.iter_fields(node)}
            return ast.fix_missing_locations(type(node)(**fields))
        return [self._with_holes(item, kept) for item in node] if isinstance(node, list) else node

    def _written(self, plans: Sequence["_Plan"]) -> str:
        return edited(self.file, [plan.edit() for plan in plans])

    def _means(self, plans: Sequence["_Plan"]) -> bool:
        """Whether the text of the plans has the syntax that the tree has now."""
        try:
            return are_alike(ast.parse(self._written(plans)), self.file.tree)
        except (SyntaxError, ValueError):
            return False


_BINDING = ast.UnaryOp | ast.Call | ast.Attribute | ast.Name
"""Expressions that seldom need the parentheses that what they replace stands in."""


@dataclass(slots=True)
class _Plan:
    """The text of a change: a pattern with names for the parts that stay, and which of these stand in parentheses.

    For an expression the last flag says whether the whole stands in parentheses.
    """

    start: int
    stop: int
    pattern: str
    kept: list[str]
    wrapped: list[bool]

    def edit(self) -> TextEdit:
        text = self.pattern
        for number, part in enumerate(self.kept):
            text = text.replace(_hole(number), f"({part})" if self.wrapped[number] else part)
        whole = len(self.wrapped) > len(self.kept) and self.wrapped[-1]
        return TextEdit(start=self.start, stop=self.stop, text=f"({text})" if whole else text)


def _hole(number: int) -> str:
    return f"kept_{number}_of_the_users"


def _exchanged(value: Any, taken: dict[ast.AST, ast.AST | tuple[ast.stmt, ...]]) -> Any:
    if not isinstance(value, list):
        return taken[value]
    made: list[Any] = []
    for item in value:
        new = taken.get(item, item) if isinstance(item, ast.AST) else item
        made += new if isinstance(new, tuple) else [new]
    return made
