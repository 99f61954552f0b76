"""Limits of time for work whose result must not depend on what else the machine does."""

import math
from time import monotonic, process_time
from typing import final

from gradcli.frozen import dataclass

DELAY = 4.0
"""So many times as long it may take by a `Clock`: a target may wait for something else than the processor."""
_SCHEDULER = "/proc/thread-self/schedstat"
_NANOSECONDS = 1e-9


@dataclass(slots=True)
class Phase:
    """A part of a case: a check, the inference of inputs, naming, shrinking.

    `cut` says why it was ended early. A `calls_limited` phase ends after `SLOW_CALLS` of a slow forward, a
    `searching` one, in which no inputs are known yet, when calls that did not return took `SEARCH_SECONDS` (`lost`).
    In a `compiling` one the first call has more time.
    """

    name: str
    optional: bool = False
    calls_limited: bool = False
    searching: bool = False
    deadline: float = math.inf
    lost: float = 0.0
    strikes: int = 0
    cut: str | None = None
    compiling: bool = False


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
    def left(self) -> float:
        """Seconds by its clock until it is over, if this process works all the time."""
        return min(self._worked - process_time(), self._end - self._clock.now())


@final
@dataclass(slots=True)
class Stops:
    """The calls that did not return: the `radius` is the least distance of one from the inputs asked for.

    None is made there or farther any more; `resized` is how many of them were at other sizes.
    """

    radius: float = math.inf
    resized: int = 0

    def add(self, far: float) -> None:
        """A call at a distance did not return; at other sizes it is infinite."""
        self.radius = min(self.radius, far)
        self.resized += far == math.inf

    def excludes(self, far: float, most: int) -> bool:
        """Whether a call did not return there or nearer; at other sizes, whether so many did not."""
        return self.resized >= most if far == math.inf else far >= self.radius
