"""Other calls of forward, made between a forward and its backward."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import chain

from gradcli.backends.visits import OtherCalls
from gradcli.cases import Argument


def ran_one_of(run: Callable[[Sequence[Argument]], object], others: OtherCalls) -> bool:
    """Run forward at the first of these calls at which it does not raise; whether there was one."""
    for arguments in chain(others.bold, (others.near,)):
        with suppress(Exception, SystemExit):
            run(arguments)
            return True
    return False
