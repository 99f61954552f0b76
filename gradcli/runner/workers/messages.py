"""The messages between the command, the fork server and the workers."""

from pathlib import Path

from gradcli.frozen import dataclass
from gradcli.runner.jobs import Job, Outcome


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """The first message to the fork server: the path of its modules, and the environment of its workers.

    `defaults` are variables for those that are unset, `settings` for those that are set as well.
    """

    path: tuple[str, ...]
    defaults: tuple[tuple[str, str], ...] = ()
    settings: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """Make a worker: its socket and the descriptor for its fault handler come along.

    `preload` names modules with their files, which are imported first if they are found there.
    """

    preload: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Started:
    """A worker runs as process `pid`, which leads a process group of its own."""

    pid: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """The worker `pid` has ended with `code`: its exit code, or minus the number of the signal that killed it."""

    pid: int
    code: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """A job, and the working directory in which it is done."""

    job: Job
    folder: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Begun:
    """The target has been imported; from now on the job's time runs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """How the job ended. `left` names what it left behind: the worker does no other job, if there is any.

    `loaded` are the costly modules that have been imported, with their files.
    """

    outcome: Outcome
    left: tuple[str, ...] = ()
    loaded: tuple[tuple[str, str], ...] = ()
