"""An edited version of the user's file: the definitions of its functions, and the code that they compile to."""

import ast
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from types import CodeType, FunctionType
from typing import Any, final

from gradcli.edits.render import Change, Tree
from gradcli.edits.source import (
    Definition,
    SourceFile,
    Written,
    codes_in,
    compiled,
    definition_of,
    key_of,
    parsed,
    written,
)
from gradcli.frozen import dataclass
from gradcli.targets import TargetInfo

Key = tuple[str, int]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A function that may be edited, by its role: backward, forward, setup_context."""

    role: str
    function: FunctionType
    key: Key
    node: Definition


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """A version of the file that contains backward: text, functions that may be edited, and their code objects.

    `role` is that of the part to which edits are made.
    """

    file: SourceFile
    tree: Tree
    parts: tuple[Part, ...]
    codes: Mapping[FunctionType, CodeType]
    role: str = "backward"

    @property
    def backward(self) -> Part:
        """The part in which gradients are computed."""
        return self.part("backward")

    @property
    def edited(self) -> Part:
        """The part to which edits are made."""
        return self.part(self.role)

    def part(self, role: str) -> Part:
        """The part of a role. Raises KeyError where the file has none."""
        for part in self.parts:
            if part.role == role:
                return part
        raise KeyError(role)

    def has(self, role: str) -> bool:
        """Whether there is such a part."""
        return any(part.role == role for part in self.parts)

    def is_of_another(self, role: str) -> bool:
        """Whether a part is a method of another class than backward, one with a backward of its own.

        That class runs it too: what is wrong for this backward may be right for that one.
        """
        owner = self.tree.parent(self.part(role).node)
        if not isinstance(owner, ast.ClassDef) or owner is self.tree.parent(self.backward.node):
            return False
        name = getattr(self.backward.node, "name", None)
        return any(isinstance(each, ast.FunctionDef) and each.name == name for each in owner.body)

    def holds(self, file: str, line: int) -> bool:
        """Whether a line of a file lies in one of the parts."""
        own = os.path.realpath(file) == os.path.realpath(self.file.path)
        return own and any(p.node.lineno <= line <= (p.node.end_lineno or line) for p in self.parts)

    def owners(self, changes: Sequence[Change]) -> list[Part]:
        """The parts in which the changes lie."""
        return [p for p in self.parts if any(self.tree.is_inside(change.old, p.node) for change in changes)]

    def codes_with(self, changes: Sequence[Change]) -> dict[FunctionType, CodeType] | None:
        """The code objects of the functions after the changes; None if they do not compile."""
        made = dict(self.codes)
        with self.tree.having(changes):
            for part in self.owners(changes):
                code = compiled(part.node, part.function)
                if code is None:
                    return None
                made[part.function] = code
        return made

    def with_changes(self, changes: Sequence[Change]) -> "Draft | None":
        """The draft after the changes; None if they cannot be written as text or do not compile."""
        text = self.tree.text(changes)
        return None if text is None else self.at(text)

    def at(self, text: str) -> "Draft | None":
        """The draft for another text of the file, in which the same functions are found by their names."""
        try:
            file = parsed(self.file.path, text)
            codes = codes_in(text, file.path)
        except (SyntaxError, ValueError):
            return None
        parts = []
        for part in self.parts:
            code = codes.get(part.key)
            node = None if code is None else definition_of(file.tree, code)
            if code is None or node is None or code.co_freevars != part.function.__code__.co_freevars:
                return None
            parts.append(replace(part, node=node))
        own = {part.function: codes[part.key] for part in parts}
        return Draft(file=file, tree=_tree(file), parts=tuple(parts), codes=own, role=self.role)


@lru_cache(maxsize=4)
def _tree(file: SourceFile) -> Tree:
    """The parents of a file's nodes, which are found once."""
    return Tree(file)


def draft_for(info: TargetInfo) -> Draft | None:
    """The user's file that contains the backward of a target; None if backward has no Python source."""
    if info.called:
        return drafts_for(info).get(info.called[0].name) if len(info.called) == 1 else None
    return _draft(info.backward, info.forward, info.setup_context)


def drafts_for(info: TargetInfo) -> dict[str, Draft]:
    """The files that contain the backward of a target, or those of the Functions that it calls.

    By the name of the Function.
    """
    parts = {each.name: (each.backward, each.forward, each.setup_context) for each in info.called}
    parts = parts or {info.name: (info.backward, info.forward, info.setup_context)}
    found = {name: _draft(*each) for name, each in parts.items()}
    return {name: draft for name, draft in found.items() if draft is not None}


def _draft(
    backward: Callable[..., Any] | None, forward: Callable[..., Any] | None, setup: Callable[..., Any] | None
) -> Draft | None:
    own = written(backward)
    if own is None:
        return None
    return draft_of(own, {"forward": written(forward, own.file), "setup_context": written(setup, own.file)})


def draft_of(backward: Written, others: Mapping[str, Written | None]) -> Draft | None:
    """The user's file as it is; `others` are further functions by role, of which those in the same file count."""
    file = backward.file
    parts = []
    for role, each in {"backward": backward, **others}.items():
        key = None if each is None or each.file is not file else key_of(each.function, file)
        if each is not None and key is not None:
            parts.append(Part(role=role, function=each.function, key=key, node=each.node))
    if not parts or parts[0].role != "backward":
        return None
    return Draft(file=file, tree=_tree(file), parts=tuple(parts), codes={})
