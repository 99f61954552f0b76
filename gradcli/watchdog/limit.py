"""A limit of processor time, for work whose result must not depend on what else the machine does."""

from time import process_time
from typing import final

from gradcli.watchdog.clock import Clock

DELAY = 4.0
"""So many times as long it may take by a `Clock`: a target may wait for something else than the processor."""


@final
class TimeLimit:
    """A limit that begins when it is made.

    Args:
        seconds: of processor time of this process.
        clock: seconds by a `Clock` after which it is over in any case; `DELAY` times as long where left out.
    """

    def __init__(self, seconds: float, *, clock: float | None = None) -> None:
        self._worked = process_time() + seconds
        self._clock = Clock()
        self._end = self._clock.now() + (DELAY * seconds if clock is None else clock)

    @property
    def is_over(self) -> bool:
        """Whether it is reached."""
        return process_time() > self._worked or self._clock.is_past(self._end)

    @property
    def clock_left(self) -> float:
        """Seconds by its clock until it is over at the latest."""
        return self._end - self._clock.now()
