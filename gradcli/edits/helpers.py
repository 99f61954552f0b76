"""The user's functions that a backward and its forward run, directly or through one another."""

import inspect
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from types import FunctionType, ModuleType

from gradcli.backends.attribution import is_users_file
from gradcli.backends.frameworks_used import Names, is_pythons, references

_MOST_VALUES = 2_000
"""Visited from one Function; the helpers of a backward lie within a few dozen."""


def functions_reached(functions: Sequence[Callable[..., object] | None]) -> Iterator[FunctionType]:
    """These functions, and the user's that they run or may call, the nearest first."""
    level: list[tuple[object, Names]] = [(each, frozenset()) for each in functions]
    seen: set[tuple[int, Names]] = set()
    while level and len(seen) < _MOST_VALUES:
        fresh = [each for each in level if (id(each[0]), each[1]) not in seen]
        yield from (value for value, _ in fresh if isinstance(value, FunctionType) and is_followed(value))
        seen |= {(id(value), names) for value, names in fresh}
        level = [each for value, names in fresh for each in _references(value, names)]


@lru_cache(maxsize=8)
def helpers_of(functions: tuple[FunctionType, ...]) -> tuple[FunctionType, ...]:
    """The user's functions that these run, without themselves."""
    return tuple(each for each in dict.fromkeys(functions_reached(functions)) if each not in functions)


def _references(value: object, names: Names) -> Iterator[tuple[object, Names]]:
    """What a value refers to; of an object of a framework's, such as a jitted function, the function that it wraps."""
    if is_followed(value):
        yield from references(value, names)
    elif (wrapped := inspect.getattr_static(value, "__wrapped__", None)) is not None:
        yield wrapped, names


def is_followed(value: object) -> bool:
    """Whether a value may lead to a function of the user's."""
    if isinstance(value, FunctionType):
        return is_users_file(value.__code__.co_filename)
    if isinstance(value, ModuleType):
        return is_users_module(value)
    if isinstance(value, type):
        home = sys.modules.get(value.__module__)
        return home is None or is_users_module(home)
    return not is_pythons(value) and type(value).__module__ in ("builtins", "functools")


def is_users_module(module: ModuleType) -> bool:
    """Whether the file of a module is the user's."""
    file = getattr(module, "__file__", None)
    return isinstance(file, str) and is_users_file(file)
