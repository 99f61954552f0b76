"""Other calls of forward, made between a forward and its backward."""

from collections.abc import Callable, Iterable
from contextlib import suppress
from itertools import chain


def ran_one_of(calls: Iterable[Callable[[], object]], last: Callable[[], object]) -> bool:
    """Run the first of these calls that does not raise, the last one if all others do; whether there was one."""
    for call in chain(calls, (last,)):
        with suppress(Exception, SystemExit):
            call()
            return True
    return False
