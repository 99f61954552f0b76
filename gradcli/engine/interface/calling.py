"""How the library's functions are called by programs: with `out=`, and with mistakes that deserve a sentence."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

from gradcli.engine.grad_mode import STATE
from gradcli.engine.in_place import bump, require_castable, write
from gradcli.engine.interface.integers import parameters_of, whole
from gradcli.engine.tensor import Tensor

_OPERATIONS = "gradcli.engine.ops."


def called(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function of tensors that takes `out=`, and says which argument is not a tensor.

    Args:
        function: the function.

    Raises:
        TypeError: an argument that must be a tensor is something else.
        RuntimeError: `out` is given, and what is computed would be recorded.
    """
    name = function.__name__
    function = whole(function, 1)

    @functools.wraps(function)
    def call(*args: Any, out: Any = None, **kwargs: Any) -> Any:
        try:
            if out is None:
                return function(*args, **kwargs)
            return _into(name, out, function, args, kwargs)
        except AttributeError as error:
            _name_the_argument(function, error, args, kwargs)
            raise

    return call


def called_as_method(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function as a method that says which argument is not a tensor, or not an integer."""
    checked = whole(function, 0)
    annotations, positional, by_name = parameters_of(function)
    if not any("Tensor" in str(annotations.get(name)) for name in (*positional[1:], *by_name)):
        return checked

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return checked(*args, **kwargs)
        except AttributeError as error:
            _name_the_argument(function, error, args, kwargs, 0)
            raise

    return call


def _parameter(function: Callable[..., Any], number: int) -> str:
    """Return the name of a positional argument, counted from 1, in front of its place; nothing if it has none."""
    names = [
        name
        for name, entry in inspect.signature(function).parameters.items()
        if entry.kind <= entry.POSITIONAL_OR_KEYWORD
    ]
    return f"{names[number - 1]!r} " if number <= len(names) else ""


def _name_the_argument(
    function: Callable[..., Any], error: AttributeError, args: tuple[Any, ...], kwargs: dict[str, Any], first: int = 1
) -> None:
    """Raise TypeError where an argument lacks what every tensor has; positions are counted from `first`."""
    name = function.__name__
    given = [
        (f"{_parameter(function, number)}(position {number + first - 1})", value)
        for number, value in enumerate(args, 1)
    ]
    for where, value in (*given, *((f"{key!r}", value) for key, value in kwargs.items())):
        if value is error.obj and not isinstance(value, Tensor):
            raise TypeError(f"{name}(): argument {where} must be Tensor, not {type(value).__name__}") from None
    if error.name == "_data":
        raise TypeError(f"{name}(): expected Tensor as element of an argument, but got {type(error.obj).__name__}")


def _into(name: str, out: Any, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    targets = out if isinstance(out, (tuple, list)) else (out,)
    for target in targets:
        if not isinstance(target, Tensor):
            raise TypeError(f"{name}(): argument 'out' must be Tensor, not {type(target).__name__}")
    if STATE.enabled and any(isinstance(value, Tensor) and value.requires_grad for value in (*args, *targets)):
        raise RuntimeError(
            f"{name}(): functions with out=... arguments don't support automatic differentiation, but one of the "
            "arguments requires grad."
        )
    enabled, STATE.enabled = STATE.enabled, False
    try:
        result = function(*args, **kwargs)
        for target, part in zip(targets, result if isinstance(result, tuple) else (result,), strict=True):
            if target._data.shape == part._data.shape:
                write(target, part._data)
            else:
                require_castable(part._data, target._data)
                target._data = part._data.astype(target._data.dtype)
                bump(target)
    finally:
        STATE.enabled = enabled
    return out


def operations_of(names: dict[str, Any]) -> dict[str, Callable[..., Any]]:
    """Return the operations among the names of a module, each as programs call it."""
    return {
        name: called(value)
        for name, value in names.items()
        if callable(value) and not isinstance(value, type) and str(value.__module__).startswith(_OPERATIONS)
    }
