"""NumPy's legacy generator, which user code shares with everybody: its state, and whether anyone has drawn since."""

import ctypes
from typing import Any, final

import numpy as np
from numpy.random.mtrand import get_bit_generator

_WORDS = 624


class _Twister(ctypes.Structure):
    """How NumPy lays out the state of its Mersenne twister."""

    _fields_ = (("key", ctypes.c_uint32 * _WORDS), ("position", ctypes.c_int))


@final
class SharedGenerator:
    """The generator behind `np.random`, looked at where it lies: to ask NumPy for a copy takes 50 microseconds.

    A number drawn moves the twister, but for the second of a pair of normal ones, which NumPy keeps. Where one is kept,
    or the layout is another than known, NumPy is asked.
    """

    def __init__(self) -> None:
        self._known: tuple[Any, bytes, Any] | None = None

    def state(self) -> Any:
        """A snapshot, for `np.random.set_state`; the last one again while nobody draws."""
        if self._known is not None and self._is(self._known[0], self._known[1]):
            return self._known[2]
        full, source = np.random.get_state(), get_bit_generator()
        seen = _memory_of(source)
        self._known = None if seen is None or not _is_told_by(seen, full) else (source, seen, full)
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


def _is_told_by(seen: bytes, full: Any) -> bool:
    """Whether the memory says all that NumPy's own copy says: the same twister, and no number kept."""
    twister = _Twister.from_buffer_copy(seen)
    _, key, position, kept, _ = full
    return not kept and twister.position == position and bool((np.frombuffer(twister.key, np.uint32) == key).all())
