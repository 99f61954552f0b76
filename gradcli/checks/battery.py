"""Running the battery on one Function at one set of inputs."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from enum import Enum
from time import perf_counter
from typing import Any, final

from gradcli.backends.base import Counters, Subject
from gradcli.backends.tensor.refusals import refusal_of
from gradcli.checks.base import Check, Situation
from gradcli.checks.registry import CHECKS
from gradcli.checks.repeat import concerns_later_passes
from gradcli.checks.returns import ReturnsCheck
from gradcli.errors import OverrunError, StuckError, UserCodeError
from gradcli.results import LEFT_OUT, Evidence
from gradcli.settings import Settings
from gradcli.verdict import Reason, Verdict
from gradcli.watchdog.case import Watchdog, watched

_STOPPING = frozenset({"forward", "returns", "repeat", "gradient"})
"""Checks after whose failure the battery stops, since later checks would only repeat it."""

_FOR_THE_UNFAILED = frozenset({"aliasing", "sizes", "empty", "other-inputs", "higher-order"})
"""Checks that are left out once anything of order 1 has failed."""
Excuse = Callable[[Sequence[Evidence], Subject], Sequence[Evidence]]
"""Turns what a check found at a subject into what counts: an allowed failure becomes a note."""


class Part(Enum):
    """Which checks of the battery run: those that decide a case, those that time allows, or all."""

    REQUIRED = "required"
    OPTIONAL = "optional"
    ALL = "all"

    def holds(self, check: Check) -> bool:
        """Whether a check belongs to this part."""
        return self is Part.ALL or check.optional == (self is Part.OPTIONAL)


def run_battery(
    subject: Subject,
    settings: Settings,
    *,
    seed: int,
    sweep: bool = False,
    sizes_given: bool = False,
    excuse: Excuse | None = None,
    part: Part = Part.ALL,
    known: dict[str, Any] | None = None,
) -> tuple[Evidence, ...]:
    """Run the checks of this part of the battery, in order, until one fails that later ones depend on.

    With `sweep`, inputs other than the subject's own are tried too; `sizes_given` says that the user chose the sizes.
    The evidence of each check is passed through `excuse`. If random numbers were drawn, everything runs once more with
    every call seeded. `known` are the results that checks share, of an earlier part for the same subject; those of this
    part are added.

    Raises:
        UserCodeError: the user's own code raised.
    """
    with watched() as watchdog, subject.session(lazy=True) as session:
        runs = {} if known is None else known
        for number, attempt in enumerate(session.attempts()):
            if number:
                runs.clear()
            situation = Situation(
                subject=subject, settings=settings, seed=seed, sweep=sweep, sizes_given=sizes_given, _runs=runs
            )
            battery = _Battery(situation=situation, watchdog=watchdog, excuse=excuse or _as_found)
            with attempt:
                for check in battery.due(part):
                    battery.run(check)
    return tuple(battery.found)


def _as_found(found: Sequence[Evidence], subject: Subject) -> Sequence[Evidence]:  # noqa: ARG001 - the type of Excuse
    return found


@final
@dataclass(slots=True, kw_only=True)
class _Battery:
    """The checks of one run of the battery, and what they found."""

    situation: Situation
    watchdog: Watchdog
    excuse: Excuse
    found: list[Evidence] = field(default_factory=list)
    failed: bool = False
    stopped: bool = False
    first_alone: bool = False
    """Whether only what the first pass through the graph of a call returns is looked at."""

    def due(self, part: Part) -> Iterator[Check]:
        """The checks of this part, one at a time, until one fails that later ones depend on."""
        for check in filter(part.holds, CHECKS):
            if self.stopped:
                return
            if self.failed and check.name in _FOR_THE_UNFAILED:
                continue
            if self.first_alone and check.name != "gradient":
                continue
            if not self.situation.settings.wants(check.name):
                self.found.append(left_out(check.name, LEFT_OUT))
            elif self._is_optional(check) and (why := self.watchdog.leaves_out(check.name)) is not None:
                with _booked(check, self.situation.subject.counters):
                    self._take(check, [left_out(check.name, why)])
            else:
                yield check

    def _is_optional(self, check: Check) -> bool:
        return check.optional and check.name not in self.situation.settings.only

    def run(self, check: Check) -> None:
        """Run a check, and keep what it found and what it cost.

        Raises:
            UserCodeError: the user's own code raised, or does not return at the inferred inputs.
        """
        optional = self._is_optional(check)
        own: list[Evidence] = []
        with (
            _booked(check, self.situation.subject.counters),
            self.watchdog.during(
                check.name, optional=optional or self.situation.settings.limited, calls_limited=optional
            ) as phase,
        ):
            try:
                again = True
                while again:
                    own.clear()
                    for evidence in check.run(self.situation):
                        if phase.cut is None:
                            own.append(evidence)
                    again = _seems_undefined(own) and phase.cut is None and self.watchdog.forgets_stops()
            except StuckError:
                raise
            except OverrunError as error:
                phase.cut = phase.cut or str(error)
            except UserCodeError as error:
                own, self.stopped = _refused(check, self.situation, error), True
        if not self.stopped:
            own = [self._told(evidence) for evidence in own]
        if not self.stopped and phase.cut is not None:
            own = _cut(check, own, phase.cut, order_asked=self.situation.settings.order_asked)
        self._take(check, own)

    def _told(self, evidence: Evidence) -> Evidence:
        """The evidence, with stopped calls as the reason where forward may not seem to be finite because of these."""
        overruns = self.watchdog.overruns if _seems_undefined([evidence]) else ()
        if not overruns:
            return evidence
        longest = max(overrun.seconds for overrun in overruns)
        note = (
            f"no finite difference could be computed, because a call near this point was stopped after {longest:.2g} s"
        )
        return replace(evidence, reason=Reason.BUDGET, note=note)

    def _take(self, check: Check, own: Sequence[Evidence]) -> None:
        """Keep the evidence that counts, and stop if later checks would only repeat the failure."""
        found = self.excuse(own, self.situation.subject)
        self.found += found
        fails = any(e.verdict is Verdict.FAILED for e in found)
        doubts = any(e.verdict is Verdict.INCONCLUSIVE for e in found)
        self.failed = self.failed or not only_higher_orders(found)
        later = fails and check.name == "repeat" and concerns_later_passes(found)
        self.first_alone = self.first_alone or later
        stops = fails and check.name in _STOPPING and not later
        self.stopped = self.stopped or stops or (doubts and check.name == "forward")


def _seems_undefined(found: Sequence[Evidence]) -> bool:
    """Whether some evidence is undecided because forward is not finite, as it seems where calls were stopped."""
    return any(e.verdict is Verdict.INCONCLUSIVE and e.reason is Reason.DOMAIN for e in found)


@contextmanager
def _booked(check: Check, counters: Counters) -> Iterator[None]:
    """A context that counts the calls and the time within it for the check."""
    before, began = Counters(forward=counters.forward, backward=counters.backward), perf_counter()
    try:
        yield
    finally:
        counters.book(check.name, before, perf_counter() - began)


def _cut(check: Check, found: Sequence[Evidence], why: str, *, order_asked: bool) -> list[Evidence]:
    """The evidence of a check that ran out of time: a failure, or the inputs that passed and a note on the rest.

    Where the check decides about an order that was asked for, the rest is inconclusive: other checks that pass, such as
    the second derivative of a wrong gradient, must not make up for it.
    """
    failed, passed = ([e for e in found if e.verdict is each] for each in (Verdict.FAILED, Verdict.PASSED))
    rest = left_out(check.name, why)
    if check.name == "gradient" or (check.name == "higher-order" and order_asked):
        order = 1 if check.name == "gradient" else 1 + max((e.order for e in found), default=1)
        rest = replace(rest, verdict=Verdict.INCONCLUSIVE, order=order, reason=Reason.DOMAIN)
    return failed or [*(e for e in passed if e.input is not None), rest]


def _refused(check: Check, situation: Situation, error: UserCodeError) -> list[Evidence]:
    """The failure for the framework's error about a returned gradient; raises any other error again."""
    info = situation.subject.info
    refusal = refusal_of(error, info.name, has_rule=info.differentiates_numbers)
    if refusal is None:
        raise error
    returned = [e for e in ReturnsCheck().run(situation) if e.verdict is Verdict.FAILED]
    own = [replace(e, check=check.name) for e in returned]
    return own or [check.failed(refusal.kind, refusal.message)]


def only_higher_orders(found: Iterable[Evidence]) -> bool:
    """Whether all that failed concerns derivatives of order 2 and higher: it says nothing against the gradient."""
    return all(e.order > 1 for e in found if e.verdict is Verdict.FAILED)


def left_out(check: str, why: str) -> Evidence:
    """Evidence that a check did not run, or not to its end."""
    return Evidence(check=check, verdict=Verdict.SKIPPED, note=why)
