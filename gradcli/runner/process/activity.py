"""What a process with a job is doing at the moment, also as text."""

from dataclasses import field
from time import monotonic

from gradcli.frozen import dataclass
from gradcli.watchdog.case import SLOW_CALLS, SLOW_SECONDS
from gradcli.watchdog.status import StatusReading

_NO_CHECKS = ("preparation", "inference of inputs", "naming", "shrinking", "figures")
"""Phases of a case that are no checks of the battery."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningJob:
    """A job that runs: its name, since when by the clock of `monotonic`, and the status of its case.

    `begun` says whether the target has been imported, `calls_limited` whether the calls of a slow forward are limited.
    """

    label: str
    since: float
    begun: bool = True
    status: StatusReading = field(default_factory=StatusReading)
    calls_limited: bool = False

    def described(self) -> str:
        """One sentence: what runs, for how long, and what is still to come where that can be said."""
        took = f"{self.label} has run for {monotonic() - self.since:.0f} s"
        if not self.begun:
            return f"{self.label} has been importing for {monotonic() - self.since:.0f} s"
        parts = [text for text in (doing(self.status), self._calls()) if text]
        return f"{took}: {'; '.join(parts)}" if parts else took

    def _calls(self) -> str:
        """How often forward was called and, where it is slow, how many calls are left at most."""
        seen = self.status
        if not seen.forwards:
            return ""
        each = f", {seen.forward_seconds:.2g} s each" if seen.forward_seconds else ""
        left = SLOW_CALLS - seen.forwards
        if not self.calls_limited or seen.forward_seconds <= SLOW_SECONDS or left <= 0:
            return f"forward was called {seen.forwards} times{each}"
        about = f"about {left} calls ({left * seen.forward_seconds:.0f} s) left if the gradient is right"
        return f"forward was called {seen.forwards} times{each}, {about}"


def doing(seen: StatusReading, *, ended: bool = False) -> str:
    """What a case does, or did when it `ended`, as in `check gradient, call 12 (forward) has run for 3 s`.

    Nothing where it is not known.
    """
    if not seen.phase:
        return ""
    phase = seen.phase if seen.phase in _NO_CHECKS else f"check {seen.phase}"
    if not seen.call:
        return f"{phase}, between calls of the target"
    what = "backward" if seen.is_backward else "forward"
    where = "" if seen.asked else " at inputs that gradcli chose"
    had = "had" if ended else "has"
    return f"{phase}, call {seen.call} ({what}{where}) {had} run for {max(monotonic() - seen.since, 0.0):.1f} s"
