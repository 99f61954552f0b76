"""The last patch for a wrong second derivative: a backward that says it can be differentiated only once."""

import ast
import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from gradcli.edits.draft import Draft
from gradcli.edits.source import TextEdit, edited, indent_of, span

_NAME = "once_differentiable"
_HOMES = {"torch": "torch.autograd.function", "engine": "gradcli.engine.autograd.function"}


def once_differentiable(draft: Draft, framework: str, namespace: str | None) -> Draft | None:
    """The draft with backward marked; the mark is imported where the file has no name for it."""
    backward = draft.backward.node
    if not isinstance(backward, ast.FunctionDef) or _owner(draft) is None:
        return None
    is_known = _NAME in draft.backward.function.__globals__
    mark = _NAME if is_known or namespace is None else f"{namespace}.autograd.function.{_NAME}"
    first, _ = span(draft.file, backward)
    edits = [TextEdit(start=first, stop=first, text=f"@{mark}\n{indent_of(draft.file, backward)}")]
    if not is_known and namespace is None:
        imports = [n for n in draft.file.tree.body if isinstance(n, ast.Import | ast.ImportFrom)]
        if not imports:
            return None
        _, end = span(draft.file, imports[-1])
        edits.append(TextEdit(start=end, stop=end, text=f"\nfrom {_HOMES[framework]} import {_NAME}"))
    return draft.at(edited(draft.file, edits))


@contextmanager
def marked(draft: Draft, mark: Callable[[Any], Any]) -> Iterator[None]:
    """A context in which the Function whose backward the draft has is marked."""
    owner = _owner(draft)
    before = inspect.getattr_static(owner, "backward")
    owner.backward = staticmethod(mark(draft.backward.function))
    try:
        yield
    finally:
        owner.backward = before


def _owner(draft: Draft) -> Any:
    """The class that backward is a static method of, if its module has it under its name."""
    function = draft.backward.function
    owner = function.__globals__.get(function.__qualname__.rpartition(".")[0])
    held = inspect.getattr_static(owner, "backward", None)
    return owner if isinstance(held, staticmethod) and held.__func__ is function else None
