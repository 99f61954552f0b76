"""A limit of processor time, for work whose result must not depend on what else the machine does."""

from time import monotonic, process_time
from typing import final

DELAY = 4.0
"""So many times as long it may take by the clock: other programs may take most of the processor, a target may wait."""


@final
class TimeLimit:
    """A limit that begins when it is made.

    Args:
        seconds: of processor time of this process.
        clock: seconds by the clock after which it is over in any case; `DELAY` times as long where left out.
    """

    def __init__(self, seconds: float, *, clock: float | None = None) -> None:
        self._worked = process_time() + seconds
        self._clock = monotonic() + (DELAY * seconds if clock is None else clock)

    @property
    def is_over(self) -> bool:
        """Whether it is reached."""
        return process_time() > self._worked or monotonic() > self._clock

    @property
    def clock_left(self) -> float:
        """Seconds by the clock until it is over at the latest."""
        return self._clock - monotonic()
