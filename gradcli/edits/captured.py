"""Numbers that a user's functions take from a closure or from their module: an edit may mean the name or its value.

`* scale` and `* 3` are the same while `scale` is 3. Only at another value of `scale` can a check tell which is right.
"""

import math
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from types import CellType, CodeType, FunctionType
from typing import Any

from gradcli.edits.draft import Draft
from gradcli.frozen import dataclass

_OTHER = 1.25
"""By which a number is multiplied: near enough that forward still takes it, far enough that any check sees it."""
_MOST = 8
"""Numbers of a module that an edit may use: each is tried wherever a number may stand."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Captured:
    """A number with the cell of a closure, or the globals of a module, that hold it under a name."""

    name: str
    value: float
    home: CellType | dict[str, Any]

    def __hash__(self) -> int:
        return hash((self.name, id(self.home)))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Captured) and self.name == other.name and self.home is other.home

    @contextmanager
    def varied(self) -> Iterator[None]:
        """A context in which it has another value: a whole number is larger by one."""
        self._put(self.value + 1 if isinstance(self.value, int) else self.value * _OTHER)
        try:
            yield
        finally:
            self._put(self.value)

    def _put(self, value: float) -> None:
        if isinstance(self.home, CellType):
            self.home.cell_contents = value
        else:
            self.home[self.name] = value


def captured_by(function: FunctionType, code: CodeType | None = None) -> dict[str, Captured]:
    """The numbers, by name, that a function, or other code for it, takes from around it."""
    code = code or function.__code__
    cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
    known = {name: _captured(name, _content(cell), cell) for name, cell in cells.items()}
    known |= {name: _captured(name, function.__globals__.get(name), function.__globals__) for name in code.co_names}
    return {name: each for name, each in known.items() if each is not None}


def module_numbers(function: FunctionType) -> dict[str, Captured]:
    """The numbers, by name, that the module of a function defines; none where they are too many to try them all."""
    known = {name: _captured(name, value, function.__globals__) for name, value in tuple(function.__globals__.items())}
    found = {name: each for name, each in known.items() if each is not None and not name.startswith("__")}
    return found if len(found) <= _MOST else {}


def _captured(name: str, value: object, home: CellType | dict[str, Any]) -> Captured | None:
    if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value):
        return Captured(name=name, value=value, home=home)
    return None


def captured_in(draft: Draft) -> dict[str, Captured]:
    """The numbers, by name, that the functions of a draft take from around them."""
    known: dict[str, Captured] = {}
    for part in draft.parts:
        known |= captured_by(part.function, draft.codes.get(part.function))
    return known


def in_doubt(draft: Draft, made: Draft) -> tuple[Captured, ...]:
    """The captured numbers for which an edit must hold at other values: all where it brings in a number or one of them.

    The number may stand for one of them, or for its reciprocal or square.
    """
    words = _words(made.file.text) - _words(draft.file.text)
    brought = {name: each for name, each in module_numbers(draft.backward.function).items() if name in words}
    known = captured_in(draft) | brought
    return tuple(known.values()) if any(word in known or word[0].isdigit() for word in words) else ()


def _words(text: str) -> Counter[str]:
    return Counter(re.findall(r"\w+(?:\.\d+)?", text))


def _content(cell: CellType) -> object:
    try:
        return cell.cell_contents
    except ValueError:  # not assigned yet
        return None
