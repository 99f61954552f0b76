"""Arguments that must be integers, as the annotations of an operation say: `x.tril(0.5)` is a TypeError."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

_WHOLE = frozenset((int, np.int64, np.int32))
_NO_NAME = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


def whole(function: Callable[..., Any], first: int) -> Callable[..., Any]:
    """Return a function that raises PyTorch's TypeError for other numbers where it is annotated with `int`.

    Args:
        function: an operation; it is returned as it is if none of its parameters is an integer.
        first: the number of its first argument in messages: 1 for a function, 0 for a method.
    """
    parameters = list(inspect.signature(function).parameters.values())
    names = {
        entry.name: entry.annotation == "int | None"
        for entry in parameters
        if entry.annotation in ("int", "int | None") and entry.kind not in _NO_NAME
    }
    places = tuple(
        (place, entry.name)
        for place, entry in enumerate(parameters)
        if entry.name in names and entry.kind is not entry.KEYWORD_ONLY
    )
    if not names:
        return function

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
