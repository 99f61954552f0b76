"""What a case is doing, in memory that another process can read: its phase, and the call that runs."""

import math
import mmap
import os
import struct
import zlib
from typing import final

from gradcli.frozen import dataclass

LOST_DEVICE = 86
"""The exit code of a process that ends because it lost its device in a call that the case can do without."""
_OFFSET = 1 << 16
"""Where the status begins: the memory before it is the fault handler's."""
_CALL = struct.Struct("=qdd?dq?")
_SUM = struct.Struct("=I")
"""A checksum follows the call: a reader may look while the call is written, and must not believe what it sees then."""
_TEXTS, _LISTS = 128, 512
_PHASE = _CALL.size + _SUM.size
_ENTERED = _PHASE + _TEXTS
_SIZE = _ENTERED + _LISTS
_IN_BETWEEN = (0, math.inf, 0.0, True, 0.0, 0, False)


@dataclass(frozen=True, slots=True, kw_only=True)
class StatusReading:
    """The status of a case.

    `call` is the number of the call that runs, 0 between calls; it should be over at `due`, by the clock of
    `time.monotonic`, and began at `since`; `asked` says whether it is at inputs that were asked for, `is_backward`
    whether backward alone is called. `forwards` is how often forward has been called, in `forward_seconds` each.
    `optional` are the optional phases begun so far, `phase` the one that runs.
    """

    call: int = 0
    due: float = math.inf
    forward_seconds: float = 0.0
    asked: bool = True
    since: float = 0.0
    forwards: int = 0
    is_backward: bool = False
    phase: str = ""
    optional: frozenset[str] = frozenset()


@final
class Status:
    """The writing side, in memory that a descriptor stands for."""

    def __init__(self, descriptor: int) -> None:
        if os.fstat(descriptor).st_size < _OFFSET + _SIZE:
            os.ftruncate(descriptor, _OFFSET + _SIZE)
        self._memory = mmap.mmap(descriptor, _SIZE, offset=_OFFSET)
        self.clear()

    def clear(self) -> None:
        """Nothing has been done yet."""
        self._entered = ""
        self._put(_CALL.pack(*_IN_BETWEEN))
        self._memory[_PHASE:] = bytes(_SIZE - _PHASE)

    def began(
        self,
        call: int,
        due: float,
        forward_seconds: float,
        *,
        asked: bool,
        since: float = 0.0,
        forwards: int = 0,
        is_backward: bool = False,
    ) -> None:
        """A call of the user's code begins."""
        self._put(_CALL.pack(call, due, forward_seconds, asked, since, forwards, is_backward))

    def ended(self, forward_seconds: float = 0.0, forwards: int = 0) -> None:
        """No call runs."""
        self._put(_CALL.pack(0, math.inf, forward_seconds, True, 0.0, forwards, False))

    def entered(self, phase: str, *, optional: bool) -> None:
        """Another phase runs."""
        self._write(_PHASE, phase, _TEXTS)
        if optional:
            self._entered = f"{self._entered}{phase}\n"
            self._write(_ENTERED, self._entered, _LISTS)

    def _put(self, call: bytes) -> None:
        self._memory[:_PHASE] = call + _SUM.pack(zlib.crc32(call))

    def _write(self, place: int, text: str, size: int) -> None:
        self._memory[place : place + size] = text.encode()[:size].ljust(size, b"\0")


_own: Status | None = None


def share(descriptor: int) -> None:
    """Let the process that reads this descriptor's memory see what the cases of this one do."""
    global _own  # noqa: PLW0603 - a process has one status
    _own = Status(descriptor)


def new_status() -> Status | None:
    """The status that this process shares, if it does, for another case."""
    if _own is not None:
        _own.clear()
    return _own


def read_status(descriptor: int | None) -> StatusReading:
    """The status in the memory of a descriptor: empty if there is none, without a call while one is written."""
    content = b"" if descriptor is None else os.pread(descriptor, _SIZE, _OFFSET)
    if len(content) < _SIZE:
        return StatusReading()
    whole = _SUM.unpack_from(content, _CALL.size) == (zlib.crc32(content[: _CALL.size]),)
    call, due, forward_seconds, asked, since, forwards, is_backward = (
        _CALL.unpack_from(content) if whole else _IN_BETWEEN
    )
    phase, entered = (
        content[place : place + size].rstrip(b"\0").decode("utf-8", "replace")
        for place, size in ((_PHASE, _TEXTS), (_ENTERED, _LISTS))
    )
    return StatusReading(
        call=call,
        due=due,
        forward_seconds=forward_seconds,
        asked=asked,
        since=since,
        forwards=forwards,
        is_backward=is_backward,
        phase=phase,
        optional=frozenset(entered.split("\n")) - {""},
    )
