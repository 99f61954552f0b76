"""Nested containers of values: their leaves, their structure, and copies with other leaves."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any


class _Leaf:
    """What stands for a leaf in a structure."""

    def __repr__(self) -> str:
        return "*"


_LEAF = _Leaf()


def is_container(value: object) -> bool:
    """Tell whether a value is a tuple, a list or a dict, and not a leaf; None is a leaf."""
    return isinstance(value, (tuple, list, dict))


def _entries(value: Any) -> Iterator[Any]:
    return iter(value.values() if isinstance(value, dict) else value)


def mapped(function: Callable[[Any], Any], value: Any) -> Any:
    """Return the same containers, with what the function makes of each leaf."""
    if isinstance(value, dict):
        copy = value.copy()
        copy.update((key, mapped(function, entry)) for key, entry in value.items())
        return copy
    if not is_container(value):
        return function(value)
    entries = [mapped(function, entry) for entry in value]
    return type(value)(*entries) if hasattr(value, "_fields") else type(value)(entries)


def leaves(value: Any) -> list[Any]:
    """Return the leaves in order."""
    found: list[Any] = []
    mapped(found.append, value)
    return found


def structure(value: Any) -> Any:
    """Return the containers with the same sign in the place of every leaf, to be compared and printed."""
    return mapped(lambda _: _LEAF, value)


def rebuilt(like: Any, values: Any) -> Any:
    """Return the containers of `like` with these leaves in order."""
    ahead = iter(values)
    return mapped(lambda _: next(ahead), like)


def spread(prefix: Any, value: Any) -> list[Any] | None:
    """Return one entry for each leaf of a value; an entry of `prefix` holds for all that is below its place.

    Args:
        prefix: containers like the outer ones of the value.
        value: the containers.

    Returns:
        None where the containers differ.
    """
    if not is_container(prefix):
        return [prefix] * len(leaves(value))
    if type(prefix) is not type(value) or len(prefix) != len(value):
        return None
    if isinstance(prefix, dict) and prefix.keys() != value.keys():
        return None
    order = [prefix[key] for key in value] if isinstance(prefix, dict) else prefix
    parts = [spread(above, entry) for above, entry in zip(order, _entries(value), strict=True)]
    return None if any(part is None for part in parts) else [entry for part in parts for entry in part or ()]
