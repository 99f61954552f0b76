"""Arguments that must be integers, as the annotations of an operation say: `x.tril(0.5)` is a TypeError."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

_KINDS = frozenset(("int", "int | None"))
_WHOLE = frozenset((int, np.int64, np.int32))


def parameters_of(function: Callable[..., Any]) -> tuple[dict[str, Any], tuple[str, ...], tuple[str, ...]]:
    """Return the annotations of a function, and the names of its positional parameters and of those by name only.

    `inspect.signature` tells the same in ten times as long, which is felt when the engine is imported.
    """
    while hasattr(function, "__wrapped__"):
        function = function.__wrapped__
    code = function.__code__
    first, names = code.co_argcount, code.co_varnames
    return function.__annotations__, names[:first], names[first : first + code.co_kwonlyargcount]


def whole(function: Callable[..., Any], first: int) -> Callable[..., Any]:
    """Return a function that raises PyTorch's TypeError for other numbers where it is annotated with `int`.

    Args:
        function: an operation; it is returned as it is if none of its parameters is an integer.
        first: the number of its first argument in messages: 1 for a function, 0 for a method.
    """
    annotations, positional, by_name = parameters_of(function)
    if _KINDS.isdisjoint(annotations.values()):
        return function
    names = {
        name: annotations[name] == "int | None" for name in (*positional, *by_name) if annotations.get(name) in _KINDS
    }
    if not names:
        return function
    places = tuple((place, name) for place, name in enumerate(positional) if name in names)

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        count = len(args)
        for place, name in places:
            if place < count and args[place].__class__ is not int:
                _require(function, name, f" (position {place + first})", args[place], names[name])
        for name, value in kwargs.items():
            if name in names:
                _require(function, name, "", value, names[name])
        return function(*args, **kwargs)

    return call


def _require(function: Callable[..., Any], name: str, where: str, value: Any, optional: bool) -> None:
    if value.__class__ in _WHOLE or (value is None and optional):
        return
    array = getattr(value, "_data", value)
    of_numpy = isinstance(array, (np.ndarray, np.generic))
    if isinstance(value, bool) or not hasattr(value, "__index__") or (of_numpy and array.dtype.kind not in "iu"):
        kind = type(value)
        shown = kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__name__}"
        if hasattr(value, "_data"):
            shown = kind.__name__
        raise TypeError(f"{function.__name__}(): argument {name!r}{where} must be int, not {shown}")
