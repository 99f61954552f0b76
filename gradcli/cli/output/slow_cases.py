"""A line on standard error where a case takes long: what runs, for how long, and what is still to come."""

import contextlib
import os
import threading
from collections.abc import Iterator
from time import monotonic

from gradcli.cli.output.streams import progress_wanted
from gradcli.reporters.escaping import one_line
from gradcli.runner.pool import Pool
from gradcli.runner.process.activity import RunningJob

FIRST_SECONDS = 5.0
"""A case that has run for so long is mentioned."""
NEXT_SECONDS = (10.0, 15.0, 30.0)
"""Seconds from one line to the next; the last holds from then on."""
_LOOK_SECONDS = 0.5
_STDERR = 2


def slowest(jobs: tuple[RunningJob, ...]) -> str | None:
    """What has run longest, and how many more have run long, in one line; None where nothing has."""
    now = monotonic()
    late = sorted((job for job in jobs if now - job.since >= FIRST_SECONDS), key=lambda job: job.since)
    if not late:
        return None
    count = len(late) - 1
    others = f"; {count} more case{'s' * (count > 1)} also running" if count else ""
    return one_line(f"{late[0].described()}{others}")


@contextlib.contextmanager
def slow_cases_reported(pool: Pool, *, wanted: bool) -> Iterator[None]:
    """Write a line now and then while a job takes long; not on a terminal, where progress shows the same.

    It is written by a thread: the command itself waits for its workers.
    """
    if not wanted or progress_wanted():
        yield
        return
    over = threading.Event()
    thread = threading.Thread(target=_tell, args=(pool, over), name="gradcli-slow-cases", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def _tell(pool: Pool, over: threading.Event) -> None:
    lines, due = 0, 0.0
    while not over.wait(_LOOK_SECONDS):
        line = slowest(pool.activities()) if monotonic() >= due else None
        if line is not None:
            due = monotonic() + NEXT_SECONDS[min(lines, len(NEXT_SECONDS) - 1)]
            lines += 1
            with contextlib.suppress(OSError):  # standard error is closed or full
                os.write(_STDERR, f"gradcli: {line}\n".encode(errors="backslashreplace"))
