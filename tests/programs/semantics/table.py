"""The table of the programs, and what they share: each takes a framework and returns plain data to be compared."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

CASES: dict[str, Callable[[Any], Any]] = {}


def case(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Add a program to the table."""
    CASES[function.__name__] = function
    return function


def plain(value: Any) -> Any:
    """Return tensors as lists, and containers of them likewise."""
    if isinstance(value, (tuple, list)):
        return [plain(entry) for entry in value]
    if isinstance(value, dict):
        return {key: plain(entry) for key, entry in value.items()}
    if isinstance(value, (bool, int, float, complex, str)) or value is None:
        return value
    return value.detach().tolist()


def caught(function: Callable[[], Any], words: bool = True) -> Any:
    """Return what a call returns, or the class and first line of what it raises."""
    try:
        return ["returned", plain(function())]
    except Exception as error:
        line = str(error).split("\n")[0].strip()
        return [type(error).__name__, line] if words else [type(error).__name__]


def name(tensor: Any) -> str | None:
    """Return the class of a tensor's node."""
    return None if tensor.grad_fn is None else type(tensor.grad_fn).__name__


def chain(node: Any) -> Any:
    """Return the graph below a node."""
    if node is None:
        return None
    return [type(node).__name__, [[chain(child), index] for child, index in node.next_functions]]


def leaf(t: Any, *values: float) -> Any:
    """Return a tracked float64 vector."""
    return t.tensor(list(values), dtype=t.float64, requires_grad=True)
