"""Sizes of the arrays that a callable refers to besides its arguments: these stay when arguments are resized."""

from collections.abc import Callable
from typing import Any

from gradcli.backends.frameworks_used import Names, is_pythons, references
from gradcli.backends.owners import owner_of

_MOST_VALUES = 500
"""Visited for one callable."""


def captured_sizes(function: Callable[..., Any]) -> frozenset[int]:
    """The lengths of the axes of every array in its globals, closure and defaults, or in objects and helpers there.

    Compiled code may not look whether these fit its arguments: a batch normalisation that is called with a channel more
    than its running statistics have writes past their end, and the process dies.
    """
    level: list[tuple[object, Names]] = [(function, frozenset())]
    seen: set[tuple[int, Names]] = set()
    sizes: set[int] = set()
    while level and len(seen) < _MOST_VALUES:
        fresh = [each for each in level if (id(each[0]), each[1]) not in seen]
        seen |= {(id(value), names) for value, names in fresh}
        inside = []
        for value, names in fresh:
            if owner_of(value) is not None:
                shape = None if isinstance(value, type) else getattr(value, "shape", None)
                sizes |= {size for size in shape if isinstance(size, int)} if isinstance(shape, tuple) else set()
            elif not is_pythons(value):
                inside += list(references(value, names))
        level = inside
    return frozenset(sizes - {1})
