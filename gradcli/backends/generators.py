"""The global random generators of NumPy and Python: snapshots of their states, and whether numbers were drawn since."""

import ctypes
import random
import sys
from typing import Any, final

import numpy as np
from numpy.random.mtrand import get_bit_generator

_WORDS = 624


class _Twister(ctypes.Structure):
    """How NumPy lays out the state of its Mersenne twister."""

    _fields_ = (("key", ctypes.c_uint32 * _WORDS), ("position", ctypes.c_int))


@final
class SharedGenerator:
    """The generator behind `np.random`, read directly in memory: to ask NumPy for a copy takes 50 microseconds.

    A number drawn moves the twister, but for the second of a pair of normal ones, which NumPy keeps. Where one is kept,
    or the layout is another than known, NumPy is asked.
    """

    def __init__(self) -> None:
        self._known: tuple[Any, bytes, Any] | None = None

    def state(self) -> Any:
        """A snapshot for `np.random.set_state`; the same object again until a number is drawn."""
        if self._known is not None and self._is(self._known[0], self._known[1]):
            return self._known[2]
        full, source = np.random.get_state(), get_bit_generator()
        seen = _memory_of(source)
        self._known = None if seen is None or not _is_determined_by(seen, full) else (source, seen, full)
        return full

    def is_at(self, state: Any) -> bool:
        """Whether the generator is where a snapshot was taken."""
        if self._known is not None and self._known[2] is state:
            return self._is(self._known[0], self._known[1])
        now = np.random.get_state()
        return all(np.array_equal(one, other) for one, other in zip(now, state, strict=True))

    def _is(self, source: Any, seen: bytes) -> bool:
        return get_bit_generator() is source and _memory_of(source) == seen


def _memory_of(source: Any) -> bytes | None:
    """The memory of a Mersenne twister's state; None for any other generator."""
    if type(source) is not np.random.MT19937:
        return None
    return ctypes.string_at(source.ctypes.state_address, ctypes.sizeof(_Twister))


def _is_determined_by(seen: bytes, full: Any) -> bool:
    """Whether the memory holds the whole state, as NumPy's copy shows it: the same numbers, and none kept apart."""
    twister = _Twister.from_buffer_copy(seen)
    _, key, position, kept, _ = full
    return not kept and twister.position == position and bool((np.frombuffer(twister.key, np.uint32) == key).all())


class _PythonsTwister(ctypes.Structure):
    """How CPython lays out the state of its Mersenne twister, behind the head of the object."""

    _fields_ = (("position", ctypes.c_int), ("key", ctypes.c_uint32 * _WORDS))


@final
class PythonGenerator:
    """The generator behind `random`, looked at in the same way: a copy of its state is 625 numbers, each an object.

    Where the memory does not say what the copy says, Python is asked every time.
    """

    def __init__(self) -> None:
        self._known: tuple[bytes, Any] | None = None

    def state(self) -> Any:
        """A snapshot for `random.setstate`; the same object again until a number is drawn."""
        if self._known is not None and self._is(*self._known):
            return self._known[1]
        full, seen = random.getstate(), _memory_of_python()
        self._known = None if seen is None or not _is_determined_by_python(seen, full) else (seen, full)
        return full

    def is_at(self, state: Any) -> bool:
        """Whether the generator is where a snapshot was taken."""
        if self._known is not None and self._known[1] is state:
            return self._is(*self._known)
        return bool(random.getstate() == state)

    def _is(self, seen: bytes, full: Any) -> bool:
        return bool(_the_generator().gauss_next == full[2]) and _memory_of_python() == seen


def _the_generator() -> Any:
    """The object behind the functions of `random`."""
    return random.getstate.__self__  # type: ignore[attr-defined]  # they are its methods


def _memory_of_python() -> bytes | None:
    """The memory of Python's twister; None where objects are laid out in another way."""
    place = object.__basicsize__
    if sys.implementation.name != "cpython" or random.Random.__basicsize__ < place + ctypes.sizeof(_PythonsTwister):
        return None
    return ctypes.string_at(id(_the_generator()) + place, ctypes.sizeof(_PythonsTwister))


def _is_determined_by_python(seen: bytes, full: Any) -> bool:
    twister = _PythonsTwister.from_buffer_copy(seen)
    return bool((*twister.key, twister.position) == full[1])
