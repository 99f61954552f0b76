"""Numbers that a user's functions take from a closure, their module or a class: an edit may mean the name or its value.

`* scale` and `* 3` are the same while `scale` is 3. Only at another value of `scale` can a check tell which is right.
"""

import ast
import math
from collections.abc import Iterator
from contextlib import contextmanager
from types import CellType, CodeType, FunctionType
from typing import Any

from gradcli.edits.draft import Draft, Part
from gradcli.frozen import dataclass

_OTHER = 1.25
"""By which a number is multiplied: near enough that forward still takes it, far enough that any check sees it."""
_MOST = 8
"""Numbers of a module that an edit may use: each is tried wherever a number may stand."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Captured:
    """A number with what holds it under a name: the cell of a closure, the globals of a module, or a class."""

    name: str
    value: float
    home: CellType | dict[str, Any] | type

    def __hash__(self) -> int:
        return hash((self.name, id(self.home)))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Captured) and self.name == other.name and self.home is other.home

    @contextmanager
    def varied(self) -> Iterator[None]:
        """A context in which it has another value: a whole number is larger by one, and so is zero."""
        self._put(self.value + 1 if isinstance(self.value, int) or self.value == 0 else self.value * _OTHER)
        try:
            yield
        finally:
            self._put(self.value)

    def _put(self, value: float) -> None:
        if isinstance(self.home, CellType):
            self.home.cell_contents = value
        elif isinstance(self.home, type):
            setattr(self.home, self.name.rpartition(".")[2], value)
        else:
            self.home[self.name] = value


def captured_by(part: Part, code: CodeType | None = None) -> dict[str, Captured]:
    """The numbers, by name, that a function, or other code for it, takes from around it."""
    function = part.function
    code = code or function.__code__
    cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
    known = {name: _captured(name, _content(cell), cell) for name, cell in cells.items()}
    known |= {name: _captured(name, function.__globals__.get(name), function.__globals__) for name in code.co_names}
    return {name: each for name, each in known.items() if each is not None} | _of_classes(part)


def _of_classes(part: Part) -> dict[str, Captured]:
    """The numbers, as `Owner.name`, that a function reads from classes of its module."""
    found = {}
    for node in ast.walk(part.node):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            owner = part.function.__globals__.get(node.value.id)
            held = vars(owner).get(node.attr) if isinstance(owner, type) else None
            each = _captured(f"{node.value.id}.{node.attr}", held, owner) if isinstance(owner, type) else None
            if each is not None:
                found[each.name] = each
    return found


def module_numbers(function: FunctionType) -> dict[str, Captured]:
    """The numbers, by name, that the module of a function defines; none where they are too many to try them all."""
    known = {name: _captured(name, value, function.__globals__) for name, value in tuple(function.__globals__.items())}
    found = {name: each for name, each in known.items() if each is not None and not name.startswith("__")}
    return found if len(found) <= _MOST else {}


def _captured(name: str, value: object, home: CellType | dict[str, Any] | type) -> Captured | None:
    if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value):
        return Captured(name=name, value=value, home=home)
    return None


def captured_in(draft: Draft) -> tuple[Captured, ...]:
    """The numbers that the functions of a draft take from around them, and those of their module."""
    known = module_numbers(draft.backward.function)
    for part in draft.parts:
        known |= captured_by(part, draft.codes.get(part.function))
    return tuple(known.values())


def usable(draft: Draft, code: CodeType) -> dict[str, Captured]:
    """The numbers, by name, that backward, now with this code, can use, also those that only forward does."""
    known = module_numbers(draft.backward.function)
    for part in draft.parts:
        known |= _of_classes(part)
    return known | captured_by(draft.backward, code)


def _content(cell: CellType) -> object:
    try:
        return cell.cell_contents
    except ValueError:  # not assigned yet
        return None
