"""A wall-clock timer that interrupts the user's code on the main thread of this process."""

import contextlib
import math
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic, process_time
from types import CodeType, FrameType
from typing import Any, TypeVar, final

from gradcli.errors import ControlFlow

_AGAIN = 0.05
"""Seconds between one interrupt and the next, for code that catches every exception and goes on."""

_DEAF = 4
"""From this interrupt on, the code is assumed to catch every exception, and is stopped at every line; from this ring of
the timer on, what the code does when it is interrupted is interrupted itself."""
_STARVED = 3.0
"""Code that has had little of the processor gets so many times its limit: on a machine under load, calls of
milliseconds were seen to take a second."""
_IMPORT_SECONDS = 60.0
"""Seconds that an import in the user's code may take beyond the limit. To interrupt it would leave a module half made:
PyTorch imports parts of itself at the first backward, and failed for the rest of the process."""
_EXTENSION = 1.0
_IMPORTING = "<frozen importlib._bootstrap>"
_CONTEXTLIB = contextlib.__file__
_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
handler_of: Callable[[int], object] = getattr(sys.modules.get("_signal"), "getsignal", signal.getsignal)
"""The handler of a signal. That of `signal` first looks for it among the members of an enumeration: 5 us, and it is
asked for at each call of the user's code; the function behind it takes 0.15 us."""
_Function = TypeVar("_Function", bound=Callable[..., Any])
_cleaning: set[CodeType] = set()


class OutOfTimeError(ControlFlow):
    """Raised in the user's code when its time is over; no Exception, so that `except Exception` lets it through."""


def cleaning(function: _Function) -> _Function:
    """Mark a function that starts or ends a call of the user's code: neither it nor what it calls is interrupted."""
    _cleaning.add(function.__code__)
    return function


def _at_every_line(_frame: FrameType, event: str, _argument: Any) -> Any:
    if event == "line":
        raise OutOfTimeError
    return _at_every_line


def _imports(frame: FrameType | None) -> bool:
    """Whether the user's code imports a module in this frame."""
    while frame is not None and not frame.f_code.co_filename.startswith(_PACKAGE):
        if frame.f_code.co_filename == _IMPORTING:
            return True
        frame = frame.f_back
    return False


def _cleans_up(frame: FrameType | None) -> bool:
    """Whether a function runs that must not be interrupted, such as the end of a `with` statement of gradcli's."""
    own = False
    while frame is not None and frame.f_code.co_filename == _CONTEXTLIB:
        frame, own = frame.f_back, True
    if own and frame is not None and _is_ours(frame):
        return True
    while frame is not None and frame.f_code not in _cleaning:
        frame = frame.f_back if _is_ours(frame) else None
    return frame is not None


def _is_ours(frame: FrameType) -> bool:
    return frame.f_code.co_filename.startswith(_PACKAGE)


def _not_in_new_functions(_frame: FrameType, _event: str, _argument: Any) -> None:
    return None


@contextmanager
def _lost_interrupts_unreported() -> Iterator[None]:
    """Print no "Exception ignored in ..." for an interrupt that arrives in a finaliser or a callback of the collector.

    Python cannot raise from there and drops the exception; the timer interrupts again shortly after.
    """
    outer = sys.unraisablehook

    def hook(unraisable: "sys.UnraisableHookArgs") -> None:
        if not issubclass(unraisable.exc_type, OutOfTimeError):
            outer(unraisable)

    sys.unraisablehook = hook
    try:
        yield
    finally:
        if sys.unraisablehook is hook:
            sys.unraisablehook = outer


@final
class Alarm:
    """SIGALRM and the process's real-time timer, shared with whoever used them before.

    A timer that somebody else has set keeps running: its handler is called when it is due, whether the user's code runs
    then or not, and it is restored with the time that is left. Off the main thread, on Windows, and where a handler was
    installed from C, nothing can be interrupted and `set` does nothing.

    Code that imports a module, or that got less than half of its time on the processor, is interrupted later; after an
    import it has the whole time again. `extended` is then called with the time, by the clock of `monotonic`, before
    which the code is not interrupted.
    """

    def __init__(self, extended: Callable[[float], None] = lambda _until: None) -> None:
        self._extended = extended
        self._seconds = self._used = 0.0
        self._rings = self._raised = 0
        self._installed = False
        self._traces = False
        self._tracer: Any = None
        self._imported = False
        self._due = self._first_due = math.inf
        self._outer: Any = signal.SIG_DFL
        self._outer_due = math.inf
        self._outer_interval = 0.0

    @contextmanager
    def installed(self) -> Iterator[None]:
        """Handle SIGALRM inside, and give it back to its former handler at the end."""
        if sys.platform == "win32" or threading.current_thread() is not threading.main_thread():
            yield
            return
        self._outer = signal.getsignal(signal.SIGALRM)
        if self._outer is None:  # not installed from Python: it could not be restored
            yield
            return
        signal.signal(signal.SIGALRM, self._ring)
        self._installed = True
        try:
            with _lost_interrupts_unreported():
                yield
        finally:
            self.clear()
            self._installed = False
            if handler_of(signal.SIGALRM) == self._ring:
                signal.signal(signal.SIGALRM, self._outer)

    @cleaning
    def set(self, seconds: float) -> None:
        """Interrupt what runs after so many seconds, and again until `clear` is called."""
        self._rings = self._raised = 0
        if not self._installed or handler_of(signal.SIGALRM) != self._ring:
            return  # the user's code has a handler of its own by now
        self._due = self._first_due = monotonic() + seconds
        self._imported = False
        self._seconds, self._used = seconds, process_time()
        left, self._outer_interval = signal.setitimer(signal.ITIMER_REAL, seconds, _AGAIN)
        if left > 0.0:
            self._outer_due = monotonic() + left
            if left < seconds:
                signal.setitimer(signal.ITIMER_REAL, left, _AGAIN)

    @cleaning
    def clear(self) -> bool:
        """Stop the timer; whether the code was interrupted."""
        if self._due < math.inf:
            self._due = math.inf
            signal.setitimer(signal.ITIMER_REAL, 0.0)
            if self._outer_due < math.inf:
                signal.setitimer(signal.ITIMER_REAL, max(self._outer_due - monotonic(), 1e-6), self._outer_interval)
                self._outer_due = math.inf
        if self._traces:
            self._traces = False
            sys.settrace(self._tracer)
        rings, self._rings = self._rings, 0
        return rings > 0

    def _ring(self, number: int, frame: FrameType | None) -> None:
        now = monotonic()
        if now >= self._due and self._waits(now, frame):
            self._extended(max(now + _EXTENSION, self._due))
        elif now >= self._due:
            self._rings += 1
            if not _cleans_up(frame) and not self._unwinds(frame):
                self._raised += 1
                if self._raised >= _DEAF and not self._traces:
                    self._trace(frame)
                raise OutOfTimeError
        elif self._due == math.inf or now >= self._outer_due:
            self._pass_on(number, frame)
        else:  # the other timer is over, or was stopped: what is left of our own time
            signal.setitimer(signal.ITIMER_REAL, max(self._due - now, 1e-6), _AGAIN)

    def _waits(self, now: float, frame: FrameType | None) -> bool:
        """Whether the code may run on although its time is over: it imports, or got little of the processor."""
        late = now - self._due
        starved = late < (_STARVED - 1) * self._seconds and process_time() - self._used < self._seconds / 2
        if starved and not self._rings:
            return True
        if now - self._first_due < _IMPORT_SECONDS and _imports(frame):
            self._imported = True
            return True
        if not self._imported:
            return False
        self._imported = False  # what took so long was the import: the code that made it gets its time
        self._due, self._used = now + self._seconds, process_time()
        return True

    def _unwinds(self, frame: FrameType | None) -> bool:
        """Whether an interrupt is on its way out, through `finally` and `with`: under load that takes a while."""
        own = frame is not None and _is_ours(frame)
        return isinstance(sys.exception(), OutOfTimeError) and (own or self._rings < _DEAF)

    def _trace(self, frame: FrameType | None) -> None:
        """Raise at every line of the functions that run and are not gradcli's: one of them catches every exception."""
        self._traces, self._tracer = True, sys.gettrace()
        while frame is not None and not frame.f_code.co_filename.startswith(_PACKAGE):
            frame.f_trace = _at_every_line
            frame = frame.f_back
        sys.settrace(_not_in_new_functions)

    def _pass_on(self, number: int, frame: FrameType | None) -> None:
        """Let the former handler have a signal that is not this timer's."""
        if self._due < math.inf:
            signal.setitimer(signal.ITIMER_REAL, max(self._due - monotonic(), 1e-6), _AGAIN)
            self._outer_due = monotonic() + self._outer_interval if self._outer_interval else math.inf
        if callable(self._outer):
            self._outer(number, frame)
        elif self._outer is not signal.SIG_IGN:
            raise RuntimeError(
                "SIGALRM arrived and no handler was set: code that uses a timer must set a handler first"
            )
