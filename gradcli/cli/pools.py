"""What runs a command's jobs, and from which working directory."""

import gc
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from gradcli.errors import RelayedError, UsageError
from gradcli.frozen import dataclass
from gradcli.runner.jobs import Done, Job
from gradcli.runner.kernels import kernel_environment
from gradcli.runner.pool import InProcess, Pool
from gradcli.runner.process.interrupts import Interrupts
from gradcli.runner.workers.fork_server_start import leave
from gradcli.runner.workers.worker_pool import WorkerPool


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """The working directory at the start of a command, and what runs its jobs."""

    start: Path
    pool: Pool

    def do(self, job: Job) -> Any:
        """What `job` returns.

        Raises:
            RelayedError: it was refused, gradcli failed, or the process that did it ended.
        """
        (outcome,) = self.pool.outcomes([job])
        if isinstance(outcome, Done):
            return outcome.value
        raise RelayedError(outcome.message_for(job.target), outcome.exit_code)


@contextmanager
def site(
    *, in_process: bool, size: int = 1, timeout: float | None = None, executor: str | None = None, triton: str = "auto"
) -> Iterator[Site]:
    """A site for one command, where Triton kernels run as `triton` says; at the end none of its processes is left.

    Raises:
        UsageError: the working directory no longer exists, or the executor is not available.
    """
    start = starting_folder()
    if executor is not None:
        from gradcli.runner.executors.futures import PROCESSES, ExecutorPool, executor_named, require_executor

        require_executor(executor)
    path = [os.path.abspath(entry) for entry in sys.path]
    _collecting()
    with Interrupts() as interrupts:
        if in_process or not hasattr(os, "fork"):
            sys.path[:] = path
            os.environ.update(kernel_environment(triton))
            yield Site(start=start, pool=InProcess(start=start, interrupts=interrupts))
            return
        if executor is not None and executor != PROCESSES:
            leave()  # its processes may be copies of this one, which would share the fork server
            with executor_named(executor, size, start) as given:
                pool = ExecutorPool(
                    executor=given, start=start, path=path, timeout=timeout, interrupts=interrupts, triton=triton
                )
                yield Site(start=start, pool=pool)
            return
        workers = WorkerPool(size=size, timeout=timeout, start=start, path=path, interrupts=interrupts, triton=triton)
        with workers:
            yield Site(start=start, pool=workers)


def _collecting() -> None:
    """Collect garbage from here on, but for what the start of the command has made, which stays."""
    gc.freeze()
    gc.enable()


def starting_folder() -> Path:
    """The working directory. Raises UsageError where it no longer exists."""
    try:
        return Path.cwd()
    except FileNotFoundError:
        raise UsageError("the working directory no longer exists: change to one that does") from None
