"""Signals that end a run: remembered when they come, and raised where the run waits or the user's code runs."""

import contextlib
import signal
from collections.abc import Iterator
from types import FrameType
from typing import Any, final

from gradcli.errors import ControlFlow

_SIGNALS = (signal.SIGINT, signal.SIGTERM, getattr(signal, "SIGHUP", signal.SIGTERM))


class Interrupted(ControlFlow):
    """The run was asked to end by `signal_number`."""

    def __init__(self, signal_number: int) -> None:
        super().__init__(f"interrupted by {signal.Signals(signal_number).name}")
        self.signal_number = signal_number

    @property
    def exit_code(self) -> int:
        """130 for SIGINT, 143 for SIGTERM, 129 for SIGHUP, as shells have it."""
        return 128 + self.signal_number


@final
class Interrupts:
    """A context in which SIGINT, SIGTERM and SIGHUP are noted; those that were ignored before stay ignored.

    A signal outside `raising` is raised when that is entered next, so that a line that is being written is finished.
    """

    def __init__(self) -> None:
        self._seen: int | None = None
        self._raises = False
        self._before: dict[int, Any] = {}

    def __enter__(self) -> "Interrupts":
        for number in _SIGNALS:
            if signal.getsignal(number) is not signal.SIG_IGN:
                with contextlib.suppress(ValueError):  # not on the main thread: signals go elsewhere
                    self._before[number] = signal.signal(number, self._note)
        return self

    def __exit__(self, *raised: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    @contextlib.contextmanager
    def raising(self) -> Iterator[None]:
        """Raise Interrupted at once from here on, also for a signal that has come before."""
        self._raises = True
        try:
            if self._seen is not None:
                raise Interrupted(self._seen)
            yield
        finally:
            self._raises = False

    def _note(self, number: int, frame: FrameType | None) -> None:  # noqa: ARG002 - the signature of a handler
        self._seen = number
        if self._raises:
            self._raises = False
            raise Interrupted(number)
