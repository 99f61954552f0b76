"""One case's time: which phase runs, how long a call may take in it, and how much optional work is left."""

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from time import monotonic
from traceback import FrameSummary
from typing import final

from gradcli.errors import OverrunError, StuckError
from gradcli.frozen import dataclass
from gradcli.watchdog.alarm import Alarm, cleaning
from gradcli.watchdog.limit import Clock, Phase, Stops
from gradcli.watchdog.omissions import RESIZED, Omissions
from gradcli.watchdog.status import Status

OPTIONAL_SECONDS = 60.0
"""What optional work may take in all where no budget is given, by a `Clock`."""
FLOOR_SECONDS, MULTIPLE = 1.0, 20.0
"""A call at inputs that gradcli chose may take so long, or so many times the slowest call at the inputs asked for.

Iterations converge more slowly at other points, by a factor of a few; a machine under load delays a call of
milliseconds by less than a second.
"""
UNMEASURED_SECONDS = 10.0
"""The same while no call has returned yet: the first one may load a library or compile. Halved by each overrun."""
COMPILING_SECONDS = 30.0
"""The same for a first call that compiles, at inputs that are probably right."""
INFERRED_SECONDS = 60.0
"""What a call at inferred inputs may take, or `MULTIPLE` times the slowest call: nobody knows whether it returns there.
Longer than the search gives it, for a backward that is slow; where the user gives a time, that counts alone."""
SEARCH_SECONDS = 20.0
"""What calls that do not return may take of a search for inputs in all."""
STRIKES = 2
"""After so many overruns an optional phase ends; after so many at other sizes no more are tried."""
ENTRIES_SECONDS, LEAST_ENTRIES_SECONDS = 15.0, 1.0
"""What measuring the entries of a gradient may take once it is proven wrong; the second where the budget is spent."""
SLOW_SECONDS, SLOW_CALLS = 0.05, 40
"""A forward that takes longer is called sparingly: optional checks end when it was called so often in all."""

Distance = Callable[[], float]


@dataclass(slots=True)
class Overrun:
    """A call that was stopped: in which phase, after how many seconds, and where in the user's file."""

    phase: str
    seconds: float
    location: str | None = None


@dataclass(slots=True)
class Call:
    """A call of the user's code, perhaps inside another one.

    Args:
        asked: whether it is a call at inputs that were asked for.
        forward: how often forward is among what is called.
        distance: how far from those inputs the point is, in units of their own sizes; None where it has other sizes.
    """

    asked: bool
    forward: int
    distance: Distance | None
    outer: "Call | None" = None
    began: float = 0.0
    limit: float = math.inf

    def how_far(self) -> float:
        """The distance as a number."""
        return math.inf if self.distance is None else self.distance()


@final
class Watchdog:
    """Watches the calls of one case; `current()` is that of the case that runs."""

    def __init__(
        self, *, budget: float | None = None, omissions: Omissions | None = None, status: Status | None = None
    ) -> None:
        self.phase = Phase("preparation")
        self.overruns: list[Overrun] = []
        self.calls = self.forwards = 0
        self.infers = False
        """Whether the inputs asked for are inferred ones, at which calls are limited too."""
        self.omissions = omissions or Omissions()
        self._status = status
        self._budget = budget
        self._clock = Clock()
        self._started = self._clock.now()
        self._spent = 0.0
        self._alarm = Alarm(self._extend)
        self._call: Call | None = None
        self._slowest: float | None = None
        self._quickest: float | None = None
        self._stops, self._forgiven = Stops(), False
        self._resizes = False
        """Whether a call at other sizes was made."""

    @contextmanager
    def watching(self) -> Iterator["Watchdog"]:
        """Be the current watchdog inside."""
        token = CURRENT.set(self)
        try:
            with self._alarm.installed():
                yield self
        finally:
            CURRENT.reset(token)

    @property
    def is_shared(self) -> bool:
        """Whether the command sees which call runs, so that it can run the case again without this call."""
        return self._status is not None

    @property
    def forward_seconds(self) -> float | None:
        """What forward takes at the inputs asked for: the quickest call; None where there was none."""
        return self._quickest

    @property
    def is_slow(self) -> bool:
        """Whether forward is so slow that the number of calls has to be limited."""
        return self._quickest is not None and self._quickest > SLOW_SECONDS

    @property
    def optional_left(self) -> float:
        """Seconds that optional work may still take."""
        if self._budget is not None:
            return self._budget - (self._clock.now() - self._started)
        return OPTIONAL_SECONDS - self._spent

    @contextmanager
    def during(
        self,
        name: str,
        *,
        optional: bool = False,
        calls_limited: bool = False,
        searching: bool = False,
        share: float = math.inf,
    ) -> Iterator[Phase]:
        """A context that counts what runs inside it as the phase `name`.

        Args:
            name: for messages.
            optional: whether it ends when the budget is spent.
            calls_limited: whether it ends after `SLOW_CALLS` of a slow forward, where no budget is given.
            searching: whether it looks for inputs, so that no call in it is at inputs that were asked for.
            share: seconds of the budget that it may take.
        """
        outer, began = self.phase, self._clock.now() if optional else 0.0
        phase = Phase(name, optional or outer.optional, calls_limited, searching, outer.deadline)
        if optional:
            phase.deadline = min(outer.deadline, began + max(0.0, min(self.optional_left, share)))
        if name in self.omissions.phases:
            phase.cut = self._not_survived
        self._enter(phase)
        try:
            yield phase
        finally:
            self._enter(outer)
            if optional and not outer.optional:
                self._spent += self._clock.now() - began

    def _enter(self, phase: Phase) -> None:
        self.phase = phase
        if self._status is not None:
            self._status.entered(phase.name, optional=phase.optional)

    @property
    def _not_survived(self) -> str:
        return f"{self.omissions.why} in an earlier attempt"

    def leaves_out(self, name: str) -> str | None:
        """Why an optional check is not begun; None where it is."""
        if name in self.omissions.phases:
            return self._not_survived
        return self._exhausted(self.optional_left <= 0.0, calls_limited=True)

    def affords(self, calls: int) -> bool:
        """Whether so many more calls of forward fit into what optional checks may spend."""
        if self.is_slow and self._budget is None:
            return self.forwards + calls <= SLOW_CALLS
        return calls * (self._quickest or 0.0) <= self.optional_left

    @property
    def entries_allowed(self) -> int | None:
        """How many calls of forward may go into the entries of a gradient that is wrong; None where none was timed."""
        if self._quickest is None:
            return None
        seconds = min(ENTRIES_SECONDS, max(LEAST_ENTRIES_SECONDS, self.optional_left))
        return int(seconds / max(self._quickest, 1e-9))

    def _exhausted(self, late: bool, *, calls_limited: bool) -> str | None:
        if late:
            budget = OPTIONAL_SECONDS if self._budget is None else self._budget
            return f"the budget of {budget:g} s is used up; a larger --budget allows more"
        if calls_limited and self._budget is None and self.is_slow and self.forwards >= SLOW_CALLS:
            return (
                f"forward takes {self._quickest:.2g} s and was called {self.forwards} times; a larger --budget "
                "allows more"
            )
        return None

    def admit(self, call: Call) -> None:
        """Check before a call that there is time for it, and that similar calls returned.

        Raises:
            OverrunError: it is refused.
        """
        self.calls += 1
        if self.calls in self.omissions.calls:
            self._strike(call, 0.0)
            raise self._refusal(self._not_survived)
        self.stop_if_late()
        if not call.asked and call.distance is None and not self.phase.searching:
            self._resize()
        if not call.asked and self._lies_too_far(call):
            raise self._refusal("earlier calls this far from the given inputs did not return")

    def _resize(self) -> None:
        """A call at other sizes is to be made. Raises OverrunError where an earlier attempt did not survive these."""
        if RESIZED in self.omissions.phases:
            raise self._refusal(self._not_survived)
        if not self._resizes and self._status is not None:
            self._status.entered(RESIZED, optional=True)
            self._status.entered(self.phase.name, optional=False)
        self._resizes = True

    def stop_if_late(self) -> None:
        """For work between calls: end it where the phase that runs has had its time.

        Raises:
            OverrunError: it has.
        """
        phase = self.phase
        if phase.optional and phase.cut is None:
            phase.cut = self._exhausted(self._clock.is_past(phase.deadline), calls_limited=phase.calls_limited)
        if phase.cut is not None:
            raise self._refusal(phase.cut)

    def forgets_stops(self) -> bool:
        """Make calls again that were stopped, as the machine may have been busy: once, and False where none was."""
        if self._forgiven or not self.overruns:
            return False
        self._stops, self._forgiven, self.phase.strikes, self.overruns = Stops(), True, 0, []
        return True

    def _lies_too_far(self, call: Call) -> bool:
        """Whether calls as far from the inputs asked for did not return, or several at other sizes."""
        known = not self.phase.searching and self._stops != Stops()
        return known and self._stops.excludes(call.how_far(), STRIKES)

    @cleaning
    def start(self, call: Call) -> None:
        """The call begins."""
        call.outer, self._call = self._call, call
        self.forwards += call.forward
        call.began = monotonic()
        call.limit = self._limit_of(call)
        if call.limit < math.inf:
            self._alarm.clear()
            self._alarm.set(call.limit)
        self._show(call, call.began + call.limit)

    def _show(self, call: Call, due: float) -> None:
        """Let the command's side see the call that runs."""
        if self._status is not None:
            self._status.began(
                self.calls,
                due,
                self._quickest or 0.0,
                asked=call.asked,
                since=call.began,
                forwards=self.forwards,
                is_backward=call.forward == 0,
            )

    @cleaning
    def _extend(self, until: float) -> None:
        """The call that runs will not be interrupted before `until`: let the command's side know."""
        if self._call is not None:
            self._show(self._call, until)

    @cleaning
    def stop(self, call: Call, *, returned: bool) -> bool:
        """The call has ended; whether it was interrupted because its time was over."""
        interrupted, took = self._alarm.clear(), monotonic() - call.began
        if self._status is not None:
            self._status.ended(self._quickest or 0.0, self.forwards)
        outer = self._call = call.outer
        if outer is not None:  # the time of what it called by the way is not its own
            outer.began += took
            if outer.limit < math.inf:
                self._alarm.set(max(1e-3, outer.limit - (call.began - outer.began)))
        if interrupted:
            self._strike(call, call.limit)
        elif returned and (call.asked or self._slowest is None):
            self._slowest = max(took, self._slowest or 0.0)
            if call.forward == 1:
                self._quickest = min(took, self._quickest or math.inf)
        return interrupted

    def _limit_of(self, call: Call) -> float:
        phase, limit = self.phase, math.inf
        if not call.asked:
            known = self._slowest
            first = COMPILING_SECONDS if phase.compiling and not self.overruns else FLOOR_SECONDS
            unknown = max(first, UNMEASURED_SECONDS / 2.0 ** len(self.overruns))
            limit = unknown if known is None else max(FLOOR_SECONDS, MULTIPLE * known)
        elif self.infers:
            limit = max(INFERRED_SECONDS, MULTIPLE * (self._slowest or 0.0))
        if not phase.optional or not self._clock.is_past(phase.deadline - limit):
            return limit
        return max(1e-3, min(limit, phase.deadline - self._clock.now()))

    def _strike(self, call: Call, seconds: float) -> None:
        phase = self.phase
        if phase.optional and self._clock.is_past(phase.deadline):
            phase.cut = self._exhausted(True, calls_limited=False)
            return
        if self._is_lost(call):
            return
        self.overruns.append(Overrun(phase.name, seconds))
        phase.strikes += 1
        phase.lost += min(seconds, UNMEASURED_SECONDS)
        if not phase.searching:
            self._stops.add(call.how_far())
        ends = phase.lost >= SEARCH_SECONDS if phase.searching else phase.optional and phase.strikes >= STRIKES
        if ends:
            phase.cut = f"{phase.strikes} calls at other inputs did not return within {call.limit:.2g} s"

    def _is_lost(self, call: Call) -> bool:
        """Whether a call at inferred inputs was stopped, without which there is nothing to check."""
        return call.asked and self.infers and call.limit >= INFERRED_SECONDS

    def overrun(self, call: Call, frame: FrameSummary | None) -> OverrunError:
        """The error for a call that was interrupted, in the line `frame` of the user's code."""
        file, line = (None, None) if frame is None else (frame.filename, frame.lineno)
        place = file if line is None else f"{file}:{line}"
        at = "" if place is None else f" at {place}"
        if self._is_lost(call):
            what = "backward" if call.forward == 0 else "forward"
            said = (
                f"{what} did not return within {call.limit:.2g} s at the inferred inputs and was stopped{at}; give "
                "inputs at which it returns, or more time by --timeout"
            )
            return StuckError(said, phase=what, file=file, line=line)
        if self.overruns:
            self.overruns[-1].location = place
        return OverrunError(f"stopped after {call.limit:.2g} s{at}", phase=self.phase.name, file=file, line=line)

    def _refusal(self, why: str) -> OverrunError:
        return OverrunError(f"not called: {why}", phase=self.phase.name)


CURRENT: ContextVar[Watchdog | None] = ContextVar("gradcli_watchdog", default=None)
"""The watchdog of the case that runs, None outside of one."""


def current() -> Watchdog | None:
    """The watchdog of the case that runs in this thread, if one does."""
    return CURRENT.get()


@contextmanager
def watched() -> Iterator[Watchdog]:
    """The watchdog of the case that runs, or a new one where none does."""
    watchdog = current()
    if watchdog is not None:
        yield watchdog
        return
    with Watchdog().watching() as new:
        yield new


def stop_if_late() -> None:
    """`Watchdog.stop_if_late` of the case that runs; nothing where none does."""
    watchdog = current()
    if watchdog is not None:
        watchdog.stop_if_late()


def entries_allowed() -> int | None:
    """`Watchdog.entries_allowed` of the case that runs; None, which limits nothing, where none does."""
    watchdog = current()
    return None if watchdog is None else watchdog.entries_allowed


def is_cut() -> bool:
    """Whether the phase that runs was ended early, so that calls in it are refused."""
    watchdog = current()
    return watchdog is not None and watchdog.phase.cut is not None
