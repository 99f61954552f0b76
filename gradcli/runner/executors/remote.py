"""Jobs in a process of an executor, on this machine or another."""

import atexit
import threading
from contextlib import ExitStack
from pathlib import Path

from gradcli.runner.jobs import Job, Outcome
from gradcli.runner.process.interrupts import Interrupts
from gradcli.runner.workers.worker_pool import WorkerPool

_MINE = threading.local()
_OPEN: list[ExitStack] = []


def outcomes_of(jobs: list[Job], start: Path, path: list[str], timeout: float | None, triton: str) -> list[Outcome]:
    """The outcomes of `jobs` from a worker process of this process, so that the user's code cannot end the executor's.

    The worker is kept for the next jobs of this thread. `start` and `path` are those of the command, and have to exist
    here too.
    """
    key = (start, tuple(path), timeout, triton)
    if getattr(_MINE, "key", None) != key:
        _end()
        opened = ExitStack()
        pool = WorkerPool(size=1, timeout=timeout, start=start, path=path, interrupts=Interrupts(), triton=triton)
        _MINE.pool, _MINE.opened, _MINE.key = opened.enter_context(pool), opened, key
        _OPEN.append(opened)
    try:
        outcomes: list[Outcome] = list(_MINE.pool.outcomes(jobs))
    except BaseException:
        _end()
        raise
    return outcomes


def _end() -> None:
    """End the worker of this thread, if it has one."""
    if getattr(_MINE, "key", None) is not None:
        _MINE.key = None
        _OPEN.remove(_MINE.opened)
        _MINE.opened.close()


@atexit.register
def _end_all() -> None:
    while _OPEN:
        _OPEN.pop().close()
