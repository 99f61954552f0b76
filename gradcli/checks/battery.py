"""Running the battery on one Function at one set of inputs."""

from collections.abc import Iterator

from gradcli.backends.base import Subject
from gradcli.checks.base import Check, Situation
from gradcli.checks.registry import CHECKS
from gradcli.results import Evidence
from gradcli.settings import Settings
from gradcli.verdict import Verdict

_STOPPING = frozenset({"forward", "returns", "repeat", "gradient"})
"""Checks without which the later ones would only repeat the same failure."""


_FOR_THE_UNFAILED = frozenset({"other-inputs", "higher-order"})
"""Checks that are left out once anything has failed."""


def run_battery(subject: Subject, settings: Settings, *, seed: int, sweep: bool = False) -> tuple[Evidence, ...]:
    """Every check of the battery that is asked for, in order, until one fails that the others rest on.

    With `sweep`, inputs other than the subject's own are tried too.

    Raises:
        UserCodeError: the user's own code raised.
    """
    situation = Situation(subject=subject, settings=settings, seed=seed, sweep=sweep)
    with subject.session():
        return tuple(_run(situation))


def _run(situation: Situation) -> Iterator[Evidence]:
    failed = False
    for check in CHECKS:
        if failed and check.name in _FOR_THE_UNFAILED:
            continue
        if not _wanted(check, situation.settings):
            yield Evidence(check=check.name, verdict=Verdict.SKIPPED, note="left out on request")
            continue
        with situation.subject.counters.during(check.name):
            found = list(check.run(situation))
        yield from found
        failed = failed or any(e.verdict is Verdict.FAILED for e in found)
        if check.name in _STOPPING and any(e.verdict is Verdict.FAILED for e in found):
            return
        if check.name == "forward" and any(e.verdict is Verdict.INCONCLUSIVE for e in found):
            return


def _wanted(check: Check, settings: Settings) -> bool:
    if check.name in settings.skip:
        return False
    return not settings.only or check.name in settings.only
