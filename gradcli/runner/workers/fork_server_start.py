"""The fork server (the process that workers are forked from), started as a copy of the command's process.

A new interpreter that imports again what the command has imported costs as much as the check of a small Function. At
the very start there is nothing yet that a copy should not have: no arguments read, no streams redirected, no handlers
of signals, no threads and nothing of the user's. Anywhere else the fork server is a new interpreter.
"""

import atexit
import contextlib
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable
from time import monotonic, sleep
from types import ModuleType
from typing import TYPE_CHECKING, final

from gradcli.frozen import dataclass
from gradcli.runner.process.descriptors import keep_stdout

if TYPE_CHECKING:
    import subprocess

ENDING = (signal.SIGINT, signal.SIGTERM, getattr(signal, "SIGHUP", signal.SIGTERM))
"""Signals that end a command: it ends the fork server itself."""
_PROGRAM = "import sys; sys.path[:] = {}; from gradcli.runner.workers.fork_server import main; main({})"
_SHORTEST_SLEEP, _LONGEST_SLEEP = 5e-4, 0.05
_FIRST_OF_OTHERS = 3
"""The first descriptor that is none of the standard streams."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Copy:
    """The process of the fork server, a child of this one."""

    pid: int

    def has_ended(self, seconds: float) -> bool:
        """Whether it ends within `seconds`."""
        return _within(seconds, lambda: self._reaped(os.WNOHANG))

    def kill(self) -> None:
        """End it."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)
        self._reaped(0)

    def _reaped(self, options: int) -> bool:
        try:
            return os.waitpid(self.pid, options)[0] != 0
        except ChildProcessError:  # somebody else has waited for it
            return True


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Interpreter:
    """The process of a fork server in an interpreter of its own."""

    process: "subprocess.Popen[bytes]"

    def has_ended(self, seconds: float) -> bool:
        """Whether it ends within `seconds`."""
        return _within(seconds, lambda: self.process.poll() is not None)

    def kill(self) -> None:
        """End it."""
        self.process.kill()
        self.process.wait()


_WAITING: list[tuple[socket.socket, Copy]] = []
"""The fork server that was begun and that nobody has taken yet: its socket and its process, or nothing."""


def begin() -> int | None:
    """Begin a fork server, where this process can be copied: in the copy its descriptor, in the command None."""
    if not hasattr(os, "fork") or not os.path.isdir("/dev/fd") or threading.active_count() > 1:
        return None
    with contextlib.suppress(OSError):  # no more processes or descriptors are allowed: a worker will be told so
        return _begun()
    return None


def _begun() -> int | None:
    """Copy this process; returns as `begin`. Raises OSError where that is not allowed."""
    mine, theirs = (_beside_standard_streams(end) for end in socket.socketpair())
    with contextlib.ExitStack() as held:
        held.callback(theirs.close)
        held.callback(signal.pthread_sigmask, signal.SIG_SETMASK, signal.pthread_sigmask(signal.SIG_BLOCK, ENDING))
        try:
            pid = os.fork()
        except OSError:
            mine.close()
            raise
        if pid:
            _WAITING.append((mine, Copy(pid=pid)))
            return None
        try:
            mine.close()
            _stand_alone(theirs.fileno())
        except BaseException:  # it must not go on as a second command
            os._exit(1)
        return theirs.detach()


def taken() -> tuple[socket.socket, Copy] | None:
    """The fork server that was begun, once; None where there is none."""
    return _WAITING.pop() if _WAITING else None


def interpreter(path: list[str]) -> tuple[socket.socket, Interpreter]:
    """A fork server in a new interpreter, which finds gradcli on `path`: its socket and its process."""
    import subprocess

    mine, theirs = socket.socketpair()
    flags = subprocess._args_from_interpreter_flags()  # type: ignore[attr-defined]  # as multiprocessing does
    process = subprocess.Popen(  # noqa: S603 - this interpreter with a fixed program
        [sys.executable, *flags, "-c", _PROGRAM.format(repr(path), theirs.fileno())],
        stdin=subprocess.DEVNULL,
        pass_fds=[theirs.fileno()],
        start_new_session=True,
    )
    theirs.close()
    return mine, Interpreter(process=process)


def leave() -> None:
    """End a fork server that was not used."""
    for end, copy in _WAITING:
        end.close()
        if not copy.has_ended(1.0):
            copy.kill()
    _WAITING.clear()


def _within(seconds: float, happened: Callable[[], bool]) -> bool:
    """Whether it happens within `seconds`."""
    until, pause = monotonic() + seconds, _SHORTEST_SLEEP
    while not happened():
        if monotonic() >= until:
            return False
        sleep(pause)
        pause = min(2.0 * pause, _LONGEST_SLEEP)
    return True


def _beside_standard_streams(end: socket.socket) -> socket.socket:
    """The socket under a number that is not that of a standard stream, which may be closed."""
    if end.fileno() >= _FIRST_OF_OTHERS:
        return end
    import fcntl

    with end:
        return socket.socket(fileno=fcntl.fcntl(end.fileno(), fcntl.F_DUPFD_CLOEXEC, _FIRST_OF_OTHERS))


def _stand_alone(kept: int) -> None:
    """Make the copy what a new process would be, with the descriptor `kept` beside the standard streams."""
    for number in ENDING:
        signal.signal(number, signal.SIG_IGN)
    os.setsid()
    atexit._clear()
    sys.argv[:] = ["-c"]
    sys.modules["__main__"] = ModuleType("__main__")
    for name in os.listdir("/dev/fd"):
        if int(name) >= _FIRST_OF_OTHERS and int(name) != kept:
            with contextlib.suppress(OSError):  # the one by which the folder was read
                os.close(int(name))
    nothing = os.open(os.devnull, os.O_RDONLY)
    if nothing != 0:
        os.dup2(nothing, 0)
        os.close(nothing)
    os.close(keep_stdout())
