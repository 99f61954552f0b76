"""Garbage collection, less often or not at all where going over every object would take long or hide something."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager

_SELDOM = 10_000
"""New objects between two collections while a trace records: Python's 700 take a fifth of the time of a trace of 6,000
nodes, which makes 200,000 objects without a cycle; from 5,000 on, next to none. A program's cycles are freed."""


@contextmanager
def not_collecting() -> Iterator[None]:
    """Garbage collection switched off: it would free a cycle that is looked for, or traverse a long message."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


@contextmanager
def seldom_collecting() -> Iterator[None]:
    """Garbage collection less often, while records are made that are all kept."""
    before = gc.get_threshold()
    if 0 < before[0] < _SELDOM:
        gc.set_threshold(_SELDOM, *before[1:])
    try:
        yield
    finally:
        if gc.get_threshold() == (_SELDOM, *before[1:]):
            gc.set_threshold(*before)
