"""What functions of functions take and return: which arguments are differentiated, and results that are refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gradcli.engine.autograd.levels import point
from gradcli.engine.grad_mode import STATE
from gradcli.engine.tensor import Tensor
from gradcli.engine.utils.trees import leaves, mapped

Argnums = int | tuple[int, ...]


def called(func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any] | None = None) -> Any:
    """Call what a function of functions was given."""
    STATE.transforms += 1
    try:
        return func(*args, **(kwargs or {}))
    finally:
        STATE.transforms -= 1


def _place(number: Any, count: int) -> int:
    if not isinstance(number, int):
        raise RuntimeError(f"argnum must be int, got: {type(number)}")
    if not -count <= number < count:
        raise RuntimeError(f"Got argnum={number}, but only {count} positional inputs")
    return number % count


def places(argnums: Any, count: int) -> tuple[int, ...]:
    """Return the positions of the arguments to differentiate by.

    Raises:
        RuntimeError: a number is none of theirs, or they are none, or one is named twice.
    """
    if isinstance(argnums, int):
        return (_place(argnums, count),)
    if not isinstance(argnums, tuple):
        raise RuntimeError(f"argnums must be int or Tuple[int, ...], got: {type(argnums)}")
    found = tuple(_place(number, count) for number in argnums)
    if not found:
        raise RuntimeError("argnums must be non-empty")
    if len(set(found)) != len(found):
        raise RuntimeError(f"argnums elements must be unique, got {found}")
    return found


def with_points(args: tuple[Any, ...], argnums: Argnums) -> tuple[tuple[Any, ...], Any]:
    """Return the arguments with points in the chosen places, and the chosen ones."""
    numbers = places(argnums, len(args))
    full = tuple(mapped(point, value) if place in numbers else value for place, value in enumerate(args))
    picked = tuple(full[number] for number in numbers)
    return full, picked[0] if isinstance(argnums, int) else picked


def without_aux(result: Any, has_aux: bool, who: str) -> tuple[Any, Any]:
    """Return a function's output and what else it returns.

    Raises:
        RuntimeError: it is not a pair, where one is expected.
    """
    if not has_aux:
        return result, None
    if not (isinstance(result, tuple) and len(result) == 2):
        raise RuntimeError(f"{who}: output of function f should be a tuple: (output, aux) if has_aux is True")
    return result[0], result[1]


def output_tensors(output: Any, who: str) -> list[Tensor]:
    """Return the tensors in a function's output.

    Raises:
        RuntimeError: there are none, or there is something else.
    """
    found = leaves(output)
    if not found or (len(found) == 1 and found[0] is None):
        raise RuntimeError(f"{who}: Expected f to be a function that has non-empty output (got output = {found})")
    for entry in found:
        if not isinstance(entry, Tensor):
            raise RuntimeError(
                f"{who}: expected f(*primals) to return only tensors, got unsupported type {type(entry)}"
            )
    return found


def require_real(who: str, value: Any, what: str) -> None:
    """Raise RuntimeError for complex tensors among inputs or outputs, of which a Jacobian is not defined."""
    for place, entry in enumerate(leaves(value)):
        if isinstance(entry, Tensor) and entry._data.dtype.kind == "c":
            raise RuntimeError(
                f"{who}: Expected all {what} to be real but received complex tensor at flattened input idx: {place}"
            )
