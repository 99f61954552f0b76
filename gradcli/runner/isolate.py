"""Cases in worker processes of their own, so that a crash or an endless loop harms no other case."""

import os
import pickle
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from time import perf_counter
from typing import Any

from gradcli.errors import GradcliError, UsageError
from gradcli.results import CheckResult
from gradcli.runner.plan import CheckCase
from gradcli.runner.worker import Begun, Broken, Refused, Task
from gradcli.settings import Settings
from gradcli.verdict import Verdict

_ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")
_IMPORT_SECONDS = 60.0
_FAREWELL_SECONDS = 5.0


def run_isolated(
    cases: Sequence[CheckCase], settings: Settings, failures: Path | None = None
) -> Generator[CheckResult, None, None]:
    """Results in the order of `cases`, from `settings.jobs` worker processes.

    A case that takes longer than `settings.timeout` seconds, or whose process dies, is an ERROR. Closing the iterator
    ends the workers.
    """
    pool = _Pool(settings.timeout, failures)
    threads = ThreadPoolExecutor(max_workers=min(settings.jobs, len(cases)))
    futures = [threads.submit(pool.run, case) for case in cases]
    finished = False
    try:
        for future in futures:
            yield future.result()
        finished = True
    finally:
        threads.shutdown(wait=False, cancel_futures=True)
        pool.close(kill=not finished)
        threads.shutdown(wait=True)


class _Pool:
    """Workers that wait for a case; a dead one is replaced when the next case comes."""

    def __init__(self, timeout: float | None, failures: Path | None) -> None:
        self._timeout = timeout
        self._failures = failures
        self._idle: queue.SimpleQueue[_Worker] = queue.SimpleQueue()
        self._all: list[_Worker] = []
        self._lock = threading.Lock()
        self._closed = False

    def run(self, case: CheckCase) -> CheckResult:
        """The result of `case`, from an idle worker or a new one."""
        worker = self._take()
        result = worker.run(Task(case=case, failures=self._failures), self._timeout)
        if worker.alive:
            self._idle.put(worker)
        return result

    def close(self, *, kill: bool) -> None:
        """End every worker: at once if `kill`, else by closing its input."""
        with self._lock:
            self._closed = True
            workers = list(self._all)
        for worker in workers:
            worker.close(kill=kill)

    def _take(self) -> "_Worker":
        try:
            return self._idle.get_nowait()
        except queue.Empty:
            with self._lock:
                worker = _Worker()
                self._all.append(worker)
                if self._closed:
                    worker.close(kill=True)
            return worker


class _Worker:
    """One process that runs cases, seen from the process that started it."""

    def __init__(self) -> None:
        command = f"import sys; sys.path[:] = {sys.path!r}; from gradcli.runner.worker import serve; sys.exit(serve())"
        environment = {**dict.fromkeys(_ONE_THREAD, "1"), **os.environ}
        self._process = subprocess.Popen(  # noqa: S603 - this interpreter with a fixed program
            [sys.executable, "-c", command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment,
            start_new_session=True,
        )
        self.alive = True
        self._begun = 0.0

    def run(self, task: Task, timeout: float | None) -> CheckResult:
        """The result of the task's case; ERROR where the process dies or runs over `timeout` seconds."""
        assert self._process.stdin is not None  # noqa: S101 - a pipe; for the type checker
        self._begun = perf_counter()
        try:
            pickle.dump(task, self._process.stdin)
            self._process.stdin.flush()
        except BrokenPipeError:
            return self._dead(task.case, "before the case began", None)
        import_limit = None if timeout is None else max(timeout, _IMPORT_SECONDS)
        reply, late = self._reply(import_limit)
        if isinstance(reply, Begun):
            self._begun = perf_counter()
            reply, late = self._reply(timeout)
            limit = timeout
        else:
            limit = import_limit
        if reply is None:
            return self._dead(task.case, "while the case ran", limit if late else None)
        if isinstance(reply, Refused):
            raise UsageError(reply.message)
        if isinstance(reply, Broken):
            raise GradcliError(f"a worker process failed:\n{reply.trace}")
        assert isinstance(reply, CheckResult)  # noqa: S101 - what is left of the protocol; for the type checker
        return reply

    def close(self, *, kill: bool) -> None:
        """End the process."""
        assert self._process.stdin is not None  # noqa: S101 - a pipe; for the type checker
        if kill:
            self._kill()
        try:
            self._process.stdin.close()
        except BrokenPipeError:
            self.alive = False
        try:
            self._process.wait(_FAREWELL_SECONDS)
        except subprocess.TimeoutExpired:
            self._kill()
            self._process.wait()
        self.alive = False

    def _reply(self, limit: float | None) -> tuple[Any, bool]:
        """The next message, None if the process is dead; and whether it was killed at the limit."""
        assert self._process.stdout is not None  # noqa: S101 - a pipe; for the type checker
        with self._killed_after(limit) as killed:
            try:
                return pickle.load(self._process.stdout), False  # noqa: S301 - written by our own worker
            except (EOFError, pickle.UnpicklingError):
                return None, killed.is_set()

    @contextmanager
    def _killed_after(self, limit: float | None) -> Iterator[threading.Event]:
        killed = threading.Event()
        if limit is None:
            yield killed
            return

        def expire() -> None:
            killed.set()
            self._kill()

        timer = threading.Timer(limit, expire)
        timer.daemon = True
        timer.start()
        try:
            yield killed
        finally:
            timer.cancel()

    def _kill(self) -> None:
        """End the process and those it started."""
        if self._process.poll() is not None:
            return
        if os.name == "posix":
            os.killpg(self._process.pid, signal.SIGKILL)
        else:
            self._process.kill()

    def _dead(self, case: CheckCase, moment: str, limit: float | None) -> CheckResult:
        code = self._process.wait()
        self.alive = False
        if limit is not None:
            error = f"ran over its time limit of {limit:g} s and was stopped"
        else:
            error = f"its process {_ending(code)} {moment}"
        return replace(case.result(Verdict.ERROR), error=error, seconds=perf_counter() - self._begun)


def _ending(code: int) -> str:
    if code >= 0:
        return f"ended with exit code {code}"
    try:
        return f"was killed by {signal.Signals(-code).name}"
    except ValueError:  # a real-time signal has no name
        return f"was killed by signal {-code}"
