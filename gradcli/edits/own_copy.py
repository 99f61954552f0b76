"""An edit of code that other Functions run as well, made in a copy that belongs to one Function alone."""

import ast
import inspect
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import CodeType
from typing import Any

from gradcli.edits.draft import Draft, Part
from gradcli.edits.source import are_alike, codes_in, indent_of, parsed
from gradcli.frozen import dataclass

_METHODS = ("backward", "vjp", "forward", "setup_context", "jvp")


@dataclass(frozen=True, slots=True)
class _Lines:
    """The lines from `first` up to `last` of a text, counted from 0, and those that take their place."""

    first: int
    last: int
    new: tuple[bytes, ...]


def with_own_copies(draft: Draft, made: Draft, owner: object) -> Draft | None:
    """The edit `made` of a draft with each edited function that is not in the class `owner` copied into it.

    The function itself stays as it is in the draft. None where that cannot be written: the class is defined in another
    file or inside a function, or a function has a closure.
    """
    body = _class_of(owner, made) if isinstance(owner, type) else None
    shared = [] if body is None else [p for p in made.parts if not made.tree.is_inside(p.node, body)]
    shared = [part for part in shared if is_edited(part, draft)]
    named = {name: part for part in shared if (name := _attribute(part, owner)) is not None}
    if body is None or not named or len(named) < len(shared) or not all(_is_movable(p, draft) for p in shared):
        return None
    changes = [each for name, part in named.items() for each in _moved(part, name, body, made, draft)]
    text = _with_lines(made.file.text, changes)
    try:
        codes, file = codes_in(text, made.file.path), parsed(made.file.path, text)
    except (SyntaxError, ValueError):
        return None
    before = codes_in(draft.file.text, draft.file.path)
    holds = all(
        _same(codes.get((f"{body.name}.{name}", 0)), made.codes[part.function])
        and _same(codes.get(part.key), before[part.key])
        for name, part in named.items()
    )
    return replace(made, file=file) if holds else None


def _is_movable(part: Part, draft: Draft) -> bool:
    """Whether a function may stand elsewhere in its file: not one with a closure."""
    return draft.has(part.role) and isinstance(part.node, ast.FunctionDef) and not part.function.__code__.co_freevars


def _class_of(owner: type, draft: Draft) -> ast.ClassDef | None:
    """The definition of a class at the top of the draft's file, with its body on lines of their own."""
    home = getattr(sys.modules.get(owner.__module__), "__file__", None) or _file_of(owner)
    if home is None or Path(home).resolve() != Path(draft.file.path).resolve():
        return None
    found = [n for n in draft.file.tree.body if isinstance(n, ast.ClassDef) and n.name == owner.__qualname__]
    return found[0] if len(found) == 1 and found[0].body[0].lineno > found[0].lineno else None


def _file_of(owner: type) -> str | None:
    """The file of the functions of a class whose module is not known by its name."""
    functions = [getattr(value, "__func__", value) for value in vars(owner).values()]
    codes = [code for each in functions if isinstance(code := getattr(each, "__code__", None), CodeType)]
    return codes[0].co_filename if codes else None


def is_edited(part: Part, draft: Draft) -> bool:
    """Whether a function of an edit is another one than in the draft, which may not have it as a part."""
    return not draft.has(part.role) or not are_alike(part.node, draft.part(part.role).node)


def _attribute(part: Part, owner: object) -> str | None:
    """The name under which a class has a function, whether its own or inherited."""
    for name in _METHODS:
        held = inspect.getattr_static(owner, name, None)
        function = getattr(held, "__func__", held)
        if callable(function) and inspect.unwrap(function) is part.function:
            return name
    return None


def _moved(part: Part, name: str, body: ast.ClassDef, made: Draft, draft: Draft) -> Iterator[_Lines]:
    """The function as it was before, and a copy of it as it is now in the body of a class."""
    before = draft.part(part.role)
    first, last = _extent(part.node)
    yield _Lines(first, last, tuple(_lines(draft.file.text)[slice(*_extent(before.node))]))
    lines = _lines(made.file.text)
    end = b"\r\n" if lines[body.lineno - 1].endswith(b"\r\n") else b"\n"
    new = _as_method(lines[first:last], part, name, made, indent_of(made.file, body.body[0]).encode(), end)
    held = [n for n in body.body if isinstance(n, ast.Assign) and [ast.unparse(t) for t in n.targets] == [name]]
    if held:
        yield _Lines(*_extent(held[0]), tuple(new))
    else:
        _, stop = _extent(body.body[-1])
        yield _Lines(stop, stop, (end, *new))


def _as_method(lines: list[bytes], part: Part, name: str, made: Draft, indent: bytes, end: bytes) -> list[bytes]:
    """The lines of a function as those of a static method with a name, at the indent of a class."""
    node: Any = part.node
    place, own = node.lineno - 1 - _extent(node)[0], indent_of(made.file, node).encode()
    lines = [line if line.endswith(b"\n") else line + end for line in lines]
    lines[place] = lines[place].replace(f"def {node.name}".encode(), f"def {name}".encode(), 1)
    if not isinstance(made.tree.parent(node), ast.ClassDef):
        lines.insert(0, own + b"@staticmethod" + end)
    blank = {b"\n", b"\r\n"}
    return [indent + line[len(own) :] if line not in blank and line.startswith(own) else line for line in lines]


def _extent(node: Any) -> tuple[int, int]:
    """The first line of a statement with its decorators, counted from 0, and the one after its last."""
    first = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", ()))])
    return first - 1, node.end_lineno


def _lines(text: str) -> list[bytes]:
    return text.encode().splitlines(keepends=True)


def _with_lines(text: str, changes: list[_Lines]) -> str:
    lines = _lines(text)
    for each in sorted(changes, key=lambda c: (c.first, c.last), reverse=True):
        if each.first == len(lines) and lines and not lines[-1].endswith(b"\n"):
            lines[-1] += b"\n"
        lines[each.first : each.last] = each.new
    return b"".join(lines).decode()


def _same(one: CodeType | None, other: CodeType) -> bool:
    """Whether two code objects do the same, wherever they stand."""
    if one is None or _names(one) != _names(other) or len(one.co_consts) != len(other.co_consts):
        return False
    return all(
        _same(a, b) if isinstance(a, CodeType) and isinstance(b, CodeType) else repr(a) == repr(b)
        for a, b in zip(one.co_consts, other.co_consts, strict=True)
    )


def _names(code: CodeType) -> tuple[object, ...]:
    return code.co_code, code.co_names, code.co_varnames
