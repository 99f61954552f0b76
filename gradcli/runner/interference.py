"""What a target must not do to the process that checks it: end it, or put other functions in NumPy's place."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from operator import is_
from typing import Never

import numpy as np

from gradcli.errors import UserCodeError

_MODULES = (np, np.linalg, np.random)


@contextmanager
def numpy_kept() -> Iterator[None]:
    """Put NumPy's own functions back.

    Raises:
        UserCodeError: some were replaced, so that nothing which was computed since can be relied on.
    """
    before = [dict(vars(module)) for module in _MODULES]
    trouble: Exception | None = None
    try:
        yield
    except Exception as error:
        trouble = error
    replaced = []
    for module, own in zip(_MODULES, before, strict=True):
        now = vars(module)
        if len(now) == len(own) and all(map(is_, now.values(), own.values())):
            continue
        for name, value in own.items():
            if now.get(name) is not value:
                replaced.append(f"{module.__name__}.{name}")
                setattr(module, name, value)
    if replaced:
        raise UserCodeError(
            f"the target replaced {', '.join(replaced)} while it ran: expected NumPy to be left as it is, since "
            "the check computes with it too",
            phase="forward",
        ) from trouble
    if trouble is not None:
        raise trouble


@contextmanager
def end_refused() -> Iterator[None]:
    """Make `os._exit` raise SystemExit in this process, which would otherwise end with the target's own exit code."""
    own, process = os._exit, os.getpid()

    def refuse(status: int) -> Never:
        if os.getpid() != process:  # a child made by fork ends like this
            own(status)
        raise SystemExit(f"os._exit({status}): outside of gradcli the process would have ended with exit code {status}")

    os._exit = refuse
    try:
        yield
    finally:
        os._exit = own
