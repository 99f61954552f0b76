"""What is written about a target outside its forward: docstrings of its class, and comments above both."""

import inspect
import re
from collections.abc import Callable, Iterator, Sequence
from itertools import takewhile
from typing import Any


def documentation_of(target: type | Callable[..., Any]) -> str:
    """The docstring of a class, the comments above it and in its body above forward; those above a function.

    A function's own docstring is in its source. A class that inherits forward is described by its base classes, too, up
    to the one that forward is written in: what is said there of forward's arguments holds for it.
    """
    if not isinstance(target, type):
        return "\n\n".join(_above(*_lines_of(target)))
    found: list[str] = []
    for owner in _up_to_forward(target):
        found += [vars(owner).get("__doc__") or "", *_in_class(*_lines_of(_forward_of(owner)))]
    return "\n\n".join(filter(None, found))


def _up_to_forward(target: type) -> Sequence[type]:
    """A class, then its base classes up to the one that defines forward; the class alone where none defines it."""
    owners = inspect.getmro(target)
    written = next((number for number, owner in enumerate(owners) if "forward" in vars(owner)), 0)
    return owners[: written + 1]


def _forward_of(owner: type) -> object:
    """The function that is a class's own forward; None where it has none."""
    own = vars(owner).get("forward")
    return inspect.unwrap(getattr(own, "__func__", own)) if own is not None else None


def _lines_of(function: object) -> tuple[Sequence[str], int]:
    """The lines of the file that a function is written in, and the number of its first one."""
    try:
        return inspect.findsource(function) if inspect.isfunction(function) else ((), 0)
    except (OSError, TypeError, SyntaxError, IndexError):
        return (), 0


def _in_class(lines: Sequence[str], number: int) -> Iterator[str]:
    """The comments above the class that a method is written in, and those in its body above the method."""
    if not lines or _indent(lines[number]) == 0:
        return
    own = _indent(lines[number])
    inside = [*takewhile(lambda line: not line.strip() or _indent(line) >= own, reversed(lines[:number]))][::-1]
    begin = next((n for n in range(number - len(inside) - 1, -1, -1) if lines[n].lstrip().startswith("class ")), None)
    if begin is not None:
        yield from _above(lines, begin)
    block: list[str] = []
    for line in (*inside, ""):
        if line.lstrip().startswith("#") and _indent(line) == own:
            block.append(line)
        elif block:
            yield _text(block)
            block = []


def _above(lines: Sequence[str], number: int) -> Iterator[str]:
    """The comment right above a definition and its decorators."""
    before = [line.strip() for line in reversed(lines[:number])]
    while before and before[0].startswith("@"):
        before = before[1:]
    block = [*takewhile(lambda line: line.startswith("#"), before)][::-1]
    if block:
        yield _text(block)


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _text(comments: Sequence[str]) -> str:
    """Comments without their marks; lines of dashes and the like are left out."""
    lines = [re.sub(r"^\s*#+:?\s?", "", line).rstrip() for line in comments]
    return "\n".join(line for line in lines if re.search(r"\w", line)).strip()
