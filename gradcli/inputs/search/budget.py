"""The budget of a search for inputs: a number of tries, which is the same on every machine, and a time limit."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import final

from gradcli.errors import InputsNotFoundError
from gradcli.watchdog.case import SLOW_SECONDS
from gradcli.watchdog.limit import Clock

SEARCH_TRIES = 5_000
GUARANTEED_TRIES = 100
LIMIT_SECONDS = 30.0
_MOST: ContextVar[int | None] = ContextVar("gradcli_most_tries", default=None)


@contextmanager
def at_most(tries: int) -> Iterator[None]:
    """Give searches up that need more tries, where nothing depends on their inputs being found."""
    token = _MOST.set(tries)
    try:
        yield
    finally:
        _MOST.reset(token)


@final
class Budget:
    """Counts tries against the allowance of each stage of a search.

    What a search finds must not depend on how busy the machine is, so tries decide. The limit of time is for functions
    that take long; it never ends a search of fewer than `GUARANTEED_TRIES`, and a note says if it was reached.
    """

    def __init__(self, *, limit_seconds: float = LIMIT_SECONDS) -> None:
        self.count = 0
        self._stop = 0
        self._limit_seconds = limit_seconds
        self._clock = Clock()
        self._deadline = self._clock.now() + limit_seconds
        self._most = _MOST.get()
        self._late = False
        self._quickest: float | None = None

    def allow(self, tries: int) -> None:
        """Begin a stage that may take `tries` from here."""
        self._stop = self.count + tries

    @contextmanager
    def aside(self, tries: int) -> Iterator[None]:
        """A stage within another, whose own tries are kept for when it goes on."""
        stop, before = self._stop, self.count
        self.allow(tries)
        try:
            yield
        finally:
            self._stop = stop + self.count - before

    @property
    def is_slow(self) -> bool:
        """Whether forward is so slow that the first inputs found have to be taken."""
        return self._quickest is not None and self._quickest > SLOW_SECONDS

    def spend(self, seconds: float, *, accepted: bool) -> None:
        """Count a try; the time that a framework needs to load or compile in the first one does not count.

        Raises:
            InputsNotFoundError: there were as many as `at_most` allows.
        """
        if self.count == self._most:
            raise InputsNotFoundError(f"no inputs were found in {self._most} tries")
        self.count += 1
        if accepted:
            self._quickest = seconds if self._quickest is None else min(seconds, self._quickest)
        if self.count == 1:
            self._deadline += seconds

    def spend_again(self, tries: int) -> None:
        """Count tries whose outcome is known already: what a search finds does not depend on what it remembers.

        Raises:
            InputsNotFoundError: there were as many as `at_most` allows.
        """
        if self._most is not None and self.count + tries > self._most:
            raise InputsNotFoundError(f"no inputs were found in {self._most} tries")
        self.count += tries

    @property
    def exhausted(self) -> bool:
        """Whether the stage is to end."""
        if self.count >= self._stop:
            return True
        self._late = self._late or (self.count >= GUARANTEED_TRIES and self._clock.is_past(self._deadline))
        return self._late

    @property
    def ran_late(self) -> str | None:
        """A note if the time limit ended the search; else None."""
        if not self._late:
            return None
        return (
            f"the search for inputs stopped at its time limit of {self._limit_seconds:g} s, before everything was "
            "tried; give inputs with -i to check others"
        )
