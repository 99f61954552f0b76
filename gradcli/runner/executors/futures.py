"""Cases on an executor of `concurrent.futures`: Dask's, or any that a factory of the user's returns."""

import sys
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import Executor, Future
from concurrent.futures import TimeoutError as NotYet
from contextlib import contextmanager, suppress
from dataclasses import field
from pathlib import Path
from time import monotonic
from typing import final

from gradcli.errors import UsageError
from gradcli.frozen import dataclass
from gradcli.runner.executors.remote import outcomes_of
from gradcli.runner.jobs import Job, Lost, Outcome
from gradcli.runner.process.activity import RunningJob
from gradcli.runner.process.interrupts import Interrupts
from gradcli.spec.resolve import resolve

PROCESSES = "processes"
_GLANCE = 0.2
"""Seconds between looks at whether a signal has come."""
_AHEAD = 1000
"""Tasks that are handed to the executor before the first of them is awaited: enough for hundreds of workers."""
_TASKS = 1000
_LARGEST_TASK = 10
"""Up to a thousand jobs are a task each; of more jobs as many as ten are a task. Dask takes about 6 ms of the command's
processor time for a task, as much as two or three short cases need."""


def require_executor(name: str | None) -> None:
    """Refuse any name but `processes`, `dask`, `dask:ADDRESS` or `module:factory`."""
    if name is None or name in (PROCESSES, "dask") or ":" in name.strip(":"):
        return
    raise UsageError(
        f"--executor {name}: expected processes, dask, dask:ADDRESS or module:factory, as in dask:tcp://10.0.0.5:8786"
    )


@contextmanager
def executor_named(name: str, size: int, start: Path) -> Iterator[Executor]:
    """The executor called `name`, shut down at the end; `size` is the number of workers of a local Dask cluster.

    Raises:
        UsageError: it is not available.
    """
    if name == "dask" or name.startswith("dask:"):
        from gradcli.runner.executors.dask import dask_executor

        with dask_executor(name.partition(":")[2] or None, size) as executor:
            yield executor
        return
    with _executor_of(name, start) as executor:
        yield executor


@contextmanager
def _executor_of(name: str, start: Path) -> Iterator[Executor]:
    """What the factory `module:factory` returns; a factory in a file of the working directory is found, too."""
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
class ExecutorPool:
    """Runs jobs on an executor; each runs in a worker process of the executor's own process."""

    executor: Executor
    start: Path
    path: list[str]
    timeout: float | None
    interrupts: Interrupts
    triton: str = "auto"
    _tasks: "deque[_Task]" = field(default_factory=deque)
    _ready: deque[tuple[int, Outcome]] = field(default_factory=deque)
    _awaited: tuple[list[Job], float] | None = None

    def outcomes(self, jobs: Sequence[Job]) -> Generator[Outcome, None, None]:
        """The outcomes of `jobs` in their order, each as soon as it and those before it are known.

        Raises:
            Interrupted: a signal came.
        """
        self._tasks, self._ready = deque(), deque()
        waiting = _shared_out(len(jobs))
        try:
            while self._tasks or waiting:
                while waiting and len(self._tasks) < _AHEAD:
                    self._tasks.append(self._submitted(jobs, waiting.popleft()))
                self._awaited = [jobs[number] for number in self._tasks[0].jobs], monotonic()
                result = self._result(self._tasks[0])
                self._awaited = None
                task = self._tasks.popleft()
                if isinstance(result, Lost) and len(task.jobs) > 1:
                    self._tasks.extendleft(self._submitted(jobs, range(n, n + 1)) for n in reversed(task.jobs))
                    continue
                self._ready.extend(zip(task.jobs, [result] if isinstance(result, Lost) else result, strict=True))
                while self._ready:
                    yield self._ready.popleft()[1]
        finally:
            for task in self._tasks:
                task.future.cancel()

    def activities(self) -> tuple[RunningJob, ...]:
        """The first case without a result; what it is doing is known only to the executor."""
        if self._awaited is None:
            return ()
        (first, *more), since = self._awaited
        label = f"{first.label} or one of {len(more)} after it" if more else first.label
        return (RunningJob(label=label, since=since),)

    def finished(self) -> tuple[tuple[int, Outcome], ...]:
        """Outcomes that are known and have not been handed out, each with its job's position."""
        known = list(self._ready)
        for task in self._tasks:
            if task.future.done() and not task.future.cancelled() and task.future.exception() is None:
                known += zip(task.jobs, task.future.result(), strict=True)
        return tuple(known)

    def _submitted(self, jobs: Sequence[Job], numbers: range) -> "_Task":
        chosen = [jobs[number] for number in numbers]
        future = self.executor.submit(outcomes_of, chosen, self.start, self.path, self.timeout, self.triton)
        return _Task(jobs=numbers, future=future)

    def _result(self, task: "_Task") -> list[Outcome] | Lost:
        """The outcomes of a task's jobs; if the executor raised, each of them is lost."""
        began = monotonic()
        while True:
            with self.interrupts.raising(), suppress(NotYet):
                return _awaited(task.future, began)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class _Task:
    """Some jobs, by their positions, that the executor runs together."""

    jobs: range
    future: "Future[list[Outcome]]"


def _shared_out(count: int) -> deque[range]:
    """The positions of `count` jobs as tasks."""
    size = min(max(-(-count // _TASKS), 1), _LARGEST_TASK)
    return deque(range(first, min(first + size, count)) for first in range(0, count, size))


def _awaited(future: "Future[list[Outcome]]", began: float) -> list[Outcome] | Lost:
    """The outcomes, waited for in short intervals, so that signals are handled."""
    try:
        return future.result(timeout=_GLANCE)
    except NotYet:
        if future.done() and future.exception() is not None:
            return _lost(future, began)
        raise
    except Exception:
        return _lost(future, began)


def _lost(future: "Future[list[Outcome]]", began: float) -> Lost:
    error = future.exception()
    text = (str(error).strip().splitlines() or [""])[0]
    how = f"the executor did not run the case ({type(error).__name__}{': ' if text else ''}{text})"
    return Lost(how=how, begun=True, sudden=False, seconds=monotonic() - began)
