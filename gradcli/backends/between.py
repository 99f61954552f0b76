"""Other calls of forward, made between a forward and its backward."""

from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any

from gradcli.backends.effort import at_most, within

_SECONDS, _LINES = 1.0, 100_000
"""A call at values far away is stopped after this much of the processor's time, or after so many lines."""


def ran_one_of(
    calls: Iterable[Callable[[], object]], last: Callable[[], object], forward: Callable[..., Any] | None
) -> bool:
    """Run the first of these calls that does not raise, the last one if all others do; whether there was one.

    All but the last are stopped where they take long: a loop that ends for the user's inputs need not end for others.
    """
    for call in calls:
        with suppress(Exception, SystemExit):
            _run_bounded(call, forward)
            return True
    with suppress(Exception, SystemExit):
        last()
        return True
    return False


def _run_bounded(call: Callable[[], object], forward: Callable[..., Any] | None) -> None:
    with within(_SECONDS) as watch:
        if watch.is_set:
            call()
            return
    with at_most(_LINES, forward):
        call()
