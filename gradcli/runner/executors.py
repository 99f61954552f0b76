"""Cases on an executor of `concurrent.futures`: Dask's, or any that a factory of the user's returns."""

import sys
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import Executor, Future
from concurrent.futures import TimeoutError as NotYet
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic
from typing import final

from gradcli.errors import UsageError
from gradcli.runner.interrupts import Interrupts
from gradcli.runner.jobs import Job, Lost, Outcome
from gradcli.runner.remote import outcome_of
from gradcli.spec.resolve import resolve

PROCESSES = "processes"
_GLANCE = 0.2
"""Seconds between looks at whether a signal has come."""
_AHEAD = 1000
"""Jobs that are handed to the executor before the first of them is awaited: enough for hundreds of workers, and memory
stays bounded however many cases there are."""


def require_executor(name: str | None) -> None:
    """Refuse what is no executor: `processes`, `dask`, `dask:ADDRESS` or `module:factory`."""
    if name is None or name in (PROCESSES, "dask") or ":" in name.strip(":"):
        return
    raise UsageError(
        f"--executor {name}: expected processes, dask, dask:ADDRESS or module:factory, as in dask:tcp://10.0.0.5:8786"
    )


@contextmanager
def executor_named(name: str, size: int, start: Path) -> Iterator[Executor]:
    """The executor called `name`, shut down at the end; `size` is the number of workers of a local Dask cluster.

    Raises:
        UsageError: it cannot be had.
    """
    if name == "dask" or name.startswith("dask:"):
        from gradcli.runner.dask_executor import dask_executor

        with dask_executor(name.partition(":")[2] or None, size) as executor:
            yield executor
        return
    with _made_by(name, start) as executor:
        yield executor


@contextmanager
def _made_by(name: str, start: Path) -> Iterator[Executor]:
    """What the factory `module:factory` returns; a factory beside the working directory is found, too."""
    if str(start) not in sys.path:
        sys.path.insert(0, str(start))
    factory: Callable[[], object] = resolve(name).object
    if not callable(factory):
        raise UsageError(f"--executor {name}: expected a function that returns an executor, got {factory!r}")
    try:
        executor = factory()
    except Exception as error:
        raise UsageError(f"--executor {name}: its function raised {type(error).__name__}: {error}") from error
    if not isinstance(executor, Executor):
        raise UsageError(
            f"--executor {name}: expected it to return a concurrent.futures.Executor, got {type(executor).__name__}"
        )
    try:
        yield executor
    finally:
        executor.shutdown(wait=True, cancel_futures=True)


@final
@dataclass(slots=True, kw_only=True)
class ExecutorStaff:
    """Does jobs on an executor; each runs in a worker process of the executor's own process."""

    executor: Executor
    start: Path
    path: list[str]
    timeout: float | None
    interrupts: Interrupts
    _left: dict[int, "Future[Outcome]"] = field(default_factory=dict)

    def outcomes(self, jobs: Sequence[Job]) -> Generator[Outcome, None, None]:
        """The outcomes of `jobs` in their order, each as soon as it and those before it are known.

        Raises:
            Interrupted: a signal came.
        """
        self._left = {}
        submitted = 0
        try:
            for number in range(len(jobs)):
                while submitted < min(len(jobs), number + _AHEAD):
                    self._left[submitted] = self.executor.submit(
                        outcome_of, jobs[submitted], self.start, self.path, self.timeout
                    )
                    submitted += 1
                yield self._outcome(number)
                del self._left[number]
        finally:
            for future in self._left.values():
                future.cancel()

    def finished(self) -> tuple[tuple[int, Outcome], ...]:
        """Outcomes that are known and have not been handed out, each with its job's position."""
        done = {number: future for number, future in self._left.items() if future.done() and not future.cancelled()}
        return tuple((number, done[number].result()) for number in done if done[number].exception() is None)

    def _outcome(self, number: int) -> Outcome:
        began = monotonic()
        future = self._left[number]
        while True:
            with self.interrupts.raising(), suppress(NotYet):
                return self._awaited(future, began)

    def _awaited(self, future: "Future[Outcome]", began: float) -> Outcome:
        """The outcome within a glance; an exception of the executor's own is a loss of this job alone."""
        try:
            return future.result(timeout=_GLANCE)
        except NotYet:
            if future.done() and future.exception() is not None:
                return _lost(future, began)
            raise
        except Exception:
            return _lost(future, began)


def _lost(future: "Future[Outcome]", began: float) -> Lost:
    error = future.exception()
    text = (str(error).strip().splitlines() or [""])[0]
    how = f"the executor lost it ({type(error).__name__}{': ' if text else ''}{text})"
    return Lost(how=how, begun=True, seconds=monotonic() - began)
