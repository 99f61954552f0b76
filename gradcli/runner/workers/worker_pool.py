"""The command's side of its workers: giving jobs to workers, and handling workers that end before their job does."""

import contextlib
import os
import selectors
import signal
from collections import Counter, deque
from collections.abc import Generator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic
from typing import Any, final

from gradcli.runner.jobs import Job, Lost, Outcome
from gradcli.runner.planning.import_folders import import_folder_of
from gradcli.runner.process.activity import RunningJob, doing
from gradcli.runner.process.interrupts import Interrupts
from gradcli.runner.workers.channel import Channel, GarbledError
from gradcli.runner.workers.crash import read
from gradcli.runner.workers.fork_server import kill_group
from gradcli.runner.workers.messages import Begun, Ended, Reply, Task
from gradcli.runner.workers.supervisor import Supervisor
from gradcli.watchdog.status import LOST_DEVICE, StatusReading, read_status

_IMPORT_SECONDS = 60.0
_SHORTEST_IMPORT = 20.0
"""Seconds that an import may take: the first without a time limit, at least the second with one. A framework takes 2 to
20 s from a cold disk; a module that compiles a kernel needs a `--timeout` as long as that."""
_IDLE_KEPT = 4
_LONGEST_WAIT = 3600.0
_FAREWELL_SECONDS = 2.0
_DYING_SECONDS = 6.0
"""A crash closes the connection before the process has ended: a core file, or a machine under load, takes time."""
_LAST_WORDS_SECONDS = 0.5
_GRACE_SECONDS = 1.0
"""How long a call that is due may still take to be interrupted in its own process, before that is killed."""
_LOOK_SECONDS = 0.5
_ATTEMPTS = 8
_CLOSED = "the target closed a file descriptor that it did not open, the worker process's connection to gradcli"
_HANGS = "a call did not return and could not be interrupted"
_GARBLED = "the target wrote to a file descriptor that it did not open, the worker process's connection to gradcli"


@final
@dataclass(slots=True, kw_only=True, eq=False)
class _Worker:
    """One process, with the folder that it imports from and the job that it runs."""

    pid: int
    channel: Channel
    crashes: int | None
    import_folder: str
    number: int = -1
    job: Job | None = None
    begun: bool = False
    since: float = 0.0
    deadline: float | None = None
    limit: float | None = None
    started: float = 0.0
    done: int = 0
    killed: str | None = None
    last: StatusReading | None = None

    def activities(self, job: Job) -> RunningJob:
        """The job that it does, as it is now."""
        status = read_status(self.crashes)
        limited = job.calls_limited
        return RunningJob(label=job.label, since=self.started, begun=self.begun, status=status, calls_limited=limited)

    def close(self) -> None:
        """Close what the command holds of it."""
        self.channel.close()
        if self.crashes is not None:
            os.close(self.crashes)


@final
@dataclass(slots=True, kw_only=True, eq=False)
class WorkerPool:
    """Worker processes that do jobs, at most `size` at a time; a job that has begun may take `timeout` seconds.

    Modules are looked up in `path`, relative paths from the folder `start`; `triton` says where Triton kernels run, as
    in `Settings`. A context: at its end every process is
    gone.
    """

    size: int
    timeout: float | None
    start: Path
    path: list[str]
    interrupts: Interrupts
    triton: str = "auto"
    _selector: selectors.BaseSelector = field(default_factory=selectors.DefaultSelector)
    _supervisor: Supervisor = field(init=False)
    _workers: dict[int, _Worker] = field(default_factory=dict)
    _outcomes: dict[int, Outcome] = field(default_factory=dict)
    _again: deque[tuple[int, Job]] = field(default_factory=deque)
    _attempts: Counter[int] = field(default_factory=Counter)
    _spent: dict[int, float] = field(default_factory=dict)
    _first: int = 0
    _next: int = 0
    _activities: tuple[RunningJob, ...] = ()

    def __enter__(self) -> "WorkerPool":
        self._supervisor = Supervisor(
            selector=self._selector, path=self.path, one_thread=self.size > 1, triton=self.triton
        )
        self._supervisor.open()
        return self

    def __exit__(self, kind: type[BaseException] | None, *raised: object) -> None:
        """End every process: at once after an error, else when it closes its connection, or after two seconds."""
        for worker in tuple(self._workers.values()):
            self._dismiss(worker, kill=kind is not None or worker.job is not None)
        self._supervisor.close(_FAREWELL_SECONDS)
        self._selector.close()

    def outcomes(self, jobs: Sequence[Job]) -> Generator[Outcome, None, None]:
        """The outcomes of `jobs` in their order, each as soon as it and those before it are known.

        Raises:
            Interrupted: a signal came.
        """
        queue = deque(enumerate(jobs, self._next))
        self._first, self._next = self._next, self._next + len(jobs)
        for number in range(self._first, self._next):
            self._dispatch(queue)
            while number not in self._outcomes:
                self._wait()
                self._dispatch(queue)
            self._activities = ()
            yield self._outcomes.pop(number)

    def activities(self) -> tuple[RunningJob, ...]:
        """The jobs that run, as they were half a second ago at most."""
        return self._activities

    def finished(self) -> tuple[tuple[int, Outcome], ...]:
        """Outcomes of the last jobs that are known and have not been handed out, each with its job's position."""
        return tuple((number - self._first, self._outcomes[number]) for number in sorted(self._outcomes))

    def _dispatch(self, queue: deque[tuple[int, Job]]) -> None:
        """Give jobs to workers that are free, and make workers, as long as fewer than `size` are at work."""
        while (self._again or queue) and sum(w.job is not None for w in self._workers.values()) < self.size:
            number, job = (self._again or queue).popleft()
            folder = import_folder_of(job.target, self.start)
            free = (w for w in self._workers.values() if w.job is None and w.import_folder == folder)
            self._give(next(free, None) or self._new(folder), number, job)

    def _new(self, import_folder: str) -> _Worker:
        idle = [worker for worker in self._workers.values() if worker.job is None]
        if len(idle) >= _IDLE_KEPT:
            self._dismiss(min(idle, key=lambda worker: worker.since), kill=False)
        pid, channel, crashes = self._supervisor.start()
        worker = self._workers[pid] = _Worker(pid=pid, channel=channel, crashes=crashes, import_folder=import_folder)
        self._selector.register(channel, selectors.EVENT_READ, worker)
        return worker

    def _give(self, worker: _Worker, number: int, job: Job) -> None:
        worker.number, worker.job, worker.begun, worker.started = number, job, False, monotonic()
        self._limit(worker, _IMPORT_SECONDS if self.timeout is None else max(self.timeout, _SHORTEST_IMPORT))
        with contextlib.suppress(OSError):  # it has just been killed: the fork server says so
            worker.channel.send(Task(job=job, folder=self.start))

    def _limit(self, worker: _Worker, limit: float | None) -> None:
        """The worker's time runs from now: it is stopped after `limit` seconds."""
        worker.since = monotonic()
        worker.limit = limit
        worker.deadline = None if limit is None else worker.since + limit

    def _wait(self) -> None:
        """Wait for the next message, end or deadline, and act on it."""
        deadlines = [worker.deadline for worker in self._workers.values() if worker.deadline is not None]
        longest = _LOOK_SECONDS if any(worker.job is not None for worker in self._workers.values()) else _LONGEST_WAIT
        left = min([longest, *(deadline - monotonic() for deadline in deadlines)])
        self._activities = tuple(w.activities(w.job) for w in self._workers.values() if w.job is not None)
        with self.interrupts.raising():
            events = self._selector.select(max(left, 0.0))
        for key, _ in events:
            if isinstance(key.data, _Worker):
                self._hear(key.data)
        for ended in self._supervisor.ended() if any(key.data is self._supervisor for key, _ in events) else ():
            self._bury(ended)
        for worker in tuple(self._workers.values()):
            if worker.deadline is not None and worker.deadline <= monotonic():
                self._stop(worker, _CLOSED if worker.limit is None else self._late(worker, worker.limit))
            elif worker.begun and worker.killed is None and _hangs(worker):
                self._stop(worker, _HANGS)

    def _late(self, worker: _Worker, limit: float) -> str:
        own = self.timeout if worker.begun and self.timeout is not None else limit  # an import may take longer
        return f"ran over its time limit of {own:g} s and was stopped"

    def _hear(self, worker: _Worker) -> None:
        """Act on a worker's messages; a connection that is closed or garbled is not read again."""
        try:
            for message in worker.channel.arrived():
                self._act(worker, message)
        except EOFError:
            self._selector.unregister(worker.channel)
            if worker.killed is None:
                worker.limit, worker.deadline = None, monotonic() + _DYING_SECONDS
        except GarbledError:
            if worker.pid in self._workers:  # not let go for a message before
                self._selector.unregister(worker.channel)
                self._stop(worker, _GARBLED)

    def _act(self, worker: _Worker, message: Any) -> None:
        if isinstance(message, Begun):
            worker.begun = True
            spent = self._spent.get(worker.number, 0.0)
            self._limit(worker, None if self.timeout is None else max(self.timeout - spent, 0.0))
        elif isinstance(message, Reply) and worker.job is not None:
            self._supervisor.loaded.update(message.loaded)
            self._outcomes[worker.number] = self._in_time(worker, message.outcome)
            worker.job, worker.deadline = None, None
            worker.done += 1
            if message.left:
                self._dismiss(worker, kill=True)

    def _in_time(self, worker: _Worker, outcome: Outcome) -> Outcome:
        """The outcome of a job, unless it came after its time: the worker may have done it before it was stopped."""
        seconds = monotonic() - worker.since
        if not worker.begun or worker.limit is None or seconds <= worker.limit:
            return outcome
        return Lost(how=self._late(worker, worker.limit), begun=True, sudden=False, seconds=seconds)

    def _bury(self, ended: Ended) -> None:
        """Handle the end of a worker: read what it sent before; a job that it had not finished is lost."""
        worker = self._workers.get(ended.pid)
        if worker is None:
            return
        while worker.channel.fileno() in self._selector.get_map():
            self._hear(worker)
        if self._workers.pop(ended.pid, None) is None:
            return
        if worker.job is not None:
            self._lose(worker, worker.job, worker.killed or f"the worker process {ending(ended.code)}")
        worker.close()

    def _lose(self, worker: _Worker, job: Job, how: str) -> None:
        """A job's process has ended: it is done again without what the process did not survive, if that is known.

        Where it ended before the target was imported, after other jobs, one of these is to blame: it is done again.
        """
        if worker.done and not worker.begun and worker.killed is None:
            self._again.append((worker.number, job))
            return
        seconds = monotonic() - worker.since
        self._attempts[worker.number] += 1
        self._spent[worker.number] = self._spent.get(worker.number, 0.0) + seconds
        hopeless = not worker.begun or worker.killed not in (None, _HANGS) or self._attempts[worker.number] > _ATTEMPTS
        status = worker.last or read_status(worker.crashes)
        again = None if hopeless else job.after(status, how)
        if again is not None:
            self._again.append((worker.number, again))
            return
        crash = read(worker.crashes)
        self._outcomes[worker.number] = Lost(
            how=how,
            begun=worker.begun,
            sudden=worker.killed in (None, _CLOSED, _GARBLED),
            seconds=seconds,
            location=crash.location,
            trace=crash.trace,
            doing=doing(status, ended=True) if worker.begun else "",
        )

    def _stop(self, worker: _Worker, why: str) -> None:
        """End a worker that hangs, or whose connection is broken; the message that it has ended comes later.

        SIGABRT comes first: at it Python's fault handler writes down where the process was, also in compiled code.
        """
        if worker.killed is None:
            worker.last = read_status(worker.crashes)
            worker.killed, worker.deadline = why, monotonic() + _LAST_WORDS_SECONDS
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(worker.pid, signal.SIGABRT)
        else:
            worker.deadline = None
            kill_group(worker.pid)

    def _dismiss(self, worker: _Worker, *, kill: bool) -> None:
        """Let a worker go whose job is done or no longer wanted."""
        del self._workers[worker.pid]
        if worker.channel.fileno() in self._selector.get_map():
            self._selector.unregister(worker.channel)
        worker.close()
        if kill:
            kill_group(worker.pid)


def _hangs(worker: _Worker) -> bool:
    """Whether a call at inputs that gradcli chose should have been interrupted by now, and was not."""
    return worker.job is not None and read_status(worker.crashes).due + _GRACE_SECONDS < monotonic()


def ending(code: int) -> str:
    """How a process ended, from its exit code, or minus the number of a signal."""
    if code == LOST_DEVICE:
        return "lost its GPU because a kernel failed, for example at an index out of range"
    if code >= 0:
        return f"ended with exit code {code}"
    try:
        return f"was killed by {signal.Signals(-code).name}"
    except ValueError:  # a real-time signal has no name
        return f"was killed by signal {-code}"
