"""Running the battery on one Function at one set of inputs."""

from collections.abc import Iterator
from dataclasses import replace
from time import perf_counter

from gradcli.backends.base import Counters, Subject
from gradcli.backends.guard import RepeatError
from gradcli.checks.base import Situation
from gradcli.checks.registry import CHECKS
from gradcli.errors import UserCodeError
from gradcli.results import Evidence
from gradcli.settings import Settings
from gradcli.verdict import Verdict

_STOPPING = frozenset({"forward", "returns", "repeat", "gradient"})
"""Checks without which the later ones would only repeat the same failure."""


_FOR_THE_UNFAILED = frozenset({"aliasing", "sizes", "empty", "other-inputs", "higher-order"})
"""Checks that are left out once anything has failed."""


def run_battery(subject: Subject, settings: Settings, *, seed: int, sweep: bool = False) -> tuple[Evidence, ...]:
    """Every check of the battery that is asked for, in order, until one fails that the others rest on.

    With `sweep`, inputs other than the subject's own are tried too. Where random numbers turn out to have been drawn,
    all of it is done once more with the generators set before every call.

    Raises:
        UserCodeError: the user's own code raised.
    """
    with subject.session(trusting=True) as session:
        session.begin()
        situation = Situation(subject=subject, settings=settings, seed=seed, sweep=sweep)
        try:
            found = tuple(_run(situation))
        except (UserCodeError, RepeatError):
            if not session.must_repeat():
                raise
        else:
            if not session.must_repeat():
                return found
        return tuple(_run(replace(situation, _runs={})))


def _run(situation: Situation) -> Iterator[Evidence]:
    failed, counters = False, situation.subject.counters
    for check in CHECKS:
        if failed and check.name in _FOR_THE_UNFAILED:
            continue
        if not situation.settings.wants(check.name):
            yield Evidence(check=check.name, verdict=Verdict.SKIPPED, note="left out on request")
            continue
        before, began = Counters(forward=counters.forward, backward=counters.backward), perf_counter()
        try:
            found = list(check.run(situation))
        finally:
            counters.book(check.name, before, perf_counter() - began)
        yield from found
        failed = failed or any(e.verdict is Verdict.FAILED for e in found)
        if check.name in _STOPPING and any(e.verdict is Verdict.FAILED for e in found):
            return
        if check.name == "forward" and any(e.verdict is Verdict.INCONCLUSIVE for e in found):
            return
