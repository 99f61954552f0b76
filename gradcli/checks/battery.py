"""Running the battery on one Function at one set of inputs."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from enum import Enum
from time import perf_counter

from gradcli.backends.base import Counters, Subject
from gradcli.backends.guard import RepeatError
from gradcli.backends.refusals import refusal_of
from gradcli.checks.base import Check, Situation
from gradcli.checks.registry import CHECKS
from gradcli.checks.returns import ReturnsCheck
from gradcli.errors import OverrunError, UserCodeError
from gradcli.results import Evidence
from gradcli.settings import Settings
from gradcli.verdict import Verdict
from gradcli.watchdog.case import Watchdog, watched

_STOPPING = frozenset({"forward", "returns", "repeat", "gradient"})
"""Checks without which the later ones would only repeat the same failure."""

_FOR_THE_UNFAILED = frozenset({"aliasing", "sizes", "empty", "other-inputs", "higher-order"})
"""Checks that are left out once anything has failed."""
Excuse = Callable[[Sequence[Evidence], Subject], Sequence[Evidence]]
"""Turns what a check found at a subject into what counts, with what is allowed as a note."""


class Part(Enum):
    """Which checks of the battery run: those that decide a case, those that time allows, or all."""

    REQUIRED = "required"
    OPTIONAL = "optional"
    ALL = "all"

    def holds(self, check: Check) -> bool:
        """Whether a check belongs to it."""
        return self is Part.ALL or check.optional == (self is Part.OPTIONAL)


def run_battery(
    subject: Subject,
    settings: Settings,
    *,
    seed: int,
    sweep: bool = False,
    excuse: Excuse | None = None,
    part: Part = Part.ALL,
) -> tuple[Evidence, ...]:
    """Every check of this part of the battery that is asked for, in order, until one fails that the others rest on.

    With `sweep`, inputs other than the subject's own are tried too. What `excuse` makes of a check's evidence takes its
    place. Where random numbers turn out to have been drawn, all of it is done once more with the generators set before
    every call.

    Raises:
        UserCodeError: the user's own code raised.
    """
    with watched() as watchdog, subject.session(trusting=True) as session:
        session.begin()
        situation = Situation(subject=subject, settings=settings, seed=seed, sweep=sweep)
        try:
            found = tuple(_run(situation, excuse or _as_found, part, watchdog))
        except (UserCodeError, RepeatError):
            if not session.must_repeat():
                raise
        else:
            if not session.must_repeat():
                return found
        return tuple(_run(replace(situation, _runs={}), excuse or _as_found, part, watchdog))


def _as_found(found: Sequence[Evidence], subject: Subject) -> Sequence[Evidence]:  # noqa: ARG001 - the type of Excuse
    return found


def _run(situation: Situation, excuse: Excuse, part: Part, watchdog: Watchdog) -> Iterator[Evidence]:
    failed, counters = False, situation.subject.counters
    for check in filter(part.holds, CHECKS):
        if failed and check.name in _FOR_THE_UNFAILED:
            continue
        if not situation.settings.wants(check.name):
            yield left_out(check.name, "left out on request")
            continue
        before, began = Counters(forward=counters.forward, backward=counters.backward), perf_counter()
        try:
            own, refused = _found_by(check, situation, watchdog)
        finally:
            counters.book(check.name, before, perf_counter() - began)
        found = excuse(own, situation.subject)
        yield from found
        fails = any(e.verdict is Verdict.FAILED for e in found)
        failed = failed or fails
        if refused or (fails and check.name in _STOPPING):
            return
        if check.name == "forward" and any(e.verdict is Verdict.INCONCLUSIVE for e in found):
            return


def _found_by(check: Check, situation: Situation, watchdog: Watchdog) -> tuple[Sequence[Evidence], bool]:
    """What a check found, and whether the framework refused what backward returned, as it would for the checks to come.

    Where the check's time is over, a failure stands; where there is none, the inputs that had passed do, and the rest
    counts as left out.

    Raises:
        UserCodeError: the user's own code raised.
    """
    optional = check.optional and check.name not in situation.settings.only
    why = watchdog.leaves_out(check.name) if optional else None
    if why is not None:
        return [left_out(check.name, why)], False
    found = []
    with watchdog.during(check.name, optional=optional, sparing=optional) as phase:
        try:
            for evidence in check.run(situation):
                if phase.cut is None:
                    found.append(evidence)
        except OverrunError as error:
            phase.cut = phase.cut or str(error)
        except UserCodeError as error:
            return _refused(check, situation, error), True
    if phase.cut is None:
        return found, False
    failed, passed = ([e for e in found if e.verdict is each] for each in (Verdict.FAILED, Verdict.PASSED))
    return failed or [*(e for e in passed if e.input is not None), left_out(check.name, phase.cut)], False


def _refused(check: Check, situation: Situation, error: UserCodeError) -> Sequence[Evidence]:
    """What is wrong with what backward returned, where the framework refused it; raises the error otherwise."""
    refusal = refusal_of(error, situation.subject.info.name)
    if refusal is None:
        raise error
    returned = [e for e in ReturnsCheck().run(situation) if e.verdict is Verdict.FAILED]
    own = [replace(e, check=check.name) for e in returned]
    return own or [check.failed(refusal.kind, refusal.message)]


def left_out(check: str, why: str) -> Evidence:
    """That a check was not made, or not to its end."""
    return Evidence(check=check, verdict=Verdict.SKIPPED, note=why)
