"""A clock that leaves out the time for which other programs had the processor: a busy machine must change no result."""

from time import monotonic
from typing import final

_SCHEDULER = "/proc/thread-self/schedstat"
_NANOSECONDS = 1e-9


@final
class Clock:
    """Seconds since an arbitrary moment, less those for which this thread was ready to run and waited for a processor.

    Linux counts these waits (https://docs.kernel.org/scheduler/sched-stats.html, "run_delay"); elsewhere the clock is
    `monotonic`.
    """

    def __init__(self) -> None:
        self._before, self._waited = _waited(), 0.0

    def now(self) -> float:
        """The time."""
        self._waited = _waited() - self._before
        return monotonic() - self._waited

    def is_past(self, moment: float) -> bool:
        """Whether a moment is past. The waits are read only where it seems to be, which saves time."""
        return monotonic() - self._waited >= moment and self.now() >= moment


def _waited() -> float:
    """Seconds for which this thread has waited for a processor since it began; 0 where the system does not tell."""
    try:
        with open(_SCHEDULER, encoding="ascii") as file:
            return int(file.read().split()[1]) * _NANOSECONDS
    except (OSError, ValueError, IndexError):
        return 0.0
