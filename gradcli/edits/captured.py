"""Numbers that a user's functions take from around them: an edit may mean the name or its value.

They are those of a closure, a module, a class or another object, which helpers may read as well.

`* scale` and `* 3` are the same while `scale` is 3. Only at another value of `scale` can a check tell which is right.
"""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from types import CellType, CodeType, FunctionType, ModuleType, SimpleNamespace
from typing import Any

from gradcli.edits.draft import Draft
from gradcli.edits.helpers import helpers_of, is_followed
from gradcli.edits.source import nested
from gradcli.frozen import dataclass

_OTHER = 1.25
"""By which a number is multiplied: near enough that forward still takes it, far enough that any check sees it."""
_MOST = 8
"""Numbers of a module that an edit may use: each is tried wherever a number may stand."""


_Home = CellType | dict[str, Any] | type


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Captured:
    """A number with what holds it under a name: a closure's cell, the names of a module or an object, or a class."""

    name: str
    value: float
    home: _Home

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
        own = self.name.rpartition(".")[2]
        if isinstance(self.home, CellType):
            self.home.cell_contents = value
        elif isinstance(self.home, type):
            setattr(self.home, own, value)
        else:
            self.home[own] = value


def captured_by(function: FunctionType, code: CodeType | None = None) -> dict[str, Captured]:
    """The numbers, by name, that a function, or other code for it, takes from around it.

    One of a class, a module or another object is called `Owner.name`.
    """
    code = code or function.__code__
    cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
    known = {name: _captured(name, _content(cell), cell) for name, cell in cells.items()}
    known |= {name: _captured(name, function.__globals__.get(name), function.__globals__) for name in code.co_names}
    names = {name for each in (code, *nested(code)) for name in each.co_names}
    outer = function.__qualname__.rpartition(".")[0]
    for owner in sorted({*names, outer} & function.__globals__.keys()):
        for name in sorted(names):
            home = _home_of(function.__globals__[owner], name)
            if home is not None:
                held = home if isinstance(home, dict) else vars(home)
                known[f"{owner}.{name}"] = _captured(f"{owner}.{name}", held[name], home)
    return {name: each for name, each in known.items() if each is not None}


def _home_of(owner: object, name: str) -> dict[str, Any] | type | None:
    """What holds an attribute of a user's class, module or object: the object's own names, or a class."""
    if isinstance(owner, type):
        return next((each for each in owner.__mro__ if name in vars(each) and is_followed(each)), None)
    kind = owner if isinstance(owner, ModuleType) else type(owner)
    if not isinstance(owner, SimpleNamespace) and not is_followed(kind):
        return None
    try:
        held = object.__getattribute__(owner, "__dict__")
    except AttributeError:  # a record with slots
        return None
    return held if isinstance(held, dict) and name in held else None


def module_numbers(function: FunctionType) -> dict[str, Captured]:
    """The numbers, by name, that the module of a function defines; none where they are too many to try them all."""
    known = {name: _captured(name, value, function.__globals__) for name, value in tuple(function.__globals__.items())}
    found = {name: each for name, each in known.items() if each is not None and not name.startswith("__")}
    return found if len(found) <= _MOST else {}


def _captured(name: str, value: object, home: _Home) -> Captured | None:
    if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value):
        return Captured(name=name, value=value, home=home)
    return None


def captured_in(draft: Draft) -> tuple[Captured, ...]:
    """The numbers that the functions of a draft, and those that they run, take from around them, and their module's."""
    known = {(id(each.home), each.name): each for each in module_numbers(draft.backward.function).values()}
    for function in _functions(draft):
        for each in captured_by(function, draft.codes.get(function)).values():
            known[id(each.home), each.name] = each
    return tuple(known.values())


def usable(draft: Draft, code: CodeType) -> dict[str, Captured]:
    """The numbers, by name, that backward, now with this code, can use, also those that only other functions do."""
    backward = draft.backward.function
    known = module_numbers(backward)
    for function in _functions(draft):
        if function.__globals__ is backward.__globals__:
            known |= {name: each for name, each in captured_by(function).items() if not isinstance(each.home, CellType)}
    return known | captured_by(backward, code)


def _functions(draft: Draft) -> tuple[FunctionType, ...]:
    own = tuple(part.function for part in draft.parts)
    return (*own, *helpers_of(own))


def _content(cell: CellType) -> object:
    try:
        return cell.cell_contents
    except ValueError:  # not assigned yet
        return None
