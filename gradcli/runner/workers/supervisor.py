"""The command's side of the fork server: starting workers, noticing their ends, and ending all of them."""

import contextlib
import os
import selectors
import socket
from dataclasses import dataclass, field
from time import monotonic
from typing import Any, final

from gradcli.errors import GradcliError
from gradcli.runner.kernels import kernel_environment
from gradcli.runner.workers.channel import Channel, GarbledError, framed
from gradcli.runner.workers.crash import sink
from gradcli.runner.workers.fork_server import kill_group
from gradcli.runner.workers.fork_server_start import Copy, Interpreter, interpreter, taken
from gradcli.runner.workers.messages import Ended, Setup, Start, Started

_ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")
_TRIES = 3


@final
@dataclass(slots=True, kw_only=True, eq=False)
class Supervisor:
    """Starts the fork server, and another one if that is killed; reads its messages when `selector` reports some.

    `path` is where modules are looked up; `one_thread` says that workers share the processors, so that each computes
    with one thread unless the environment says otherwise; `triton` where Triton kernels run, as in `Settings`. `loaded`
    are costly modules with their files that workers have imported: they are imported in the fork server before another
    worker is made.
    """

    selector: selectors.BaseSelector
    path: list[str]
    one_thread: bool
    triton: str = "auto"
    loaded: dict[str, str] = field(default_factory=dict)
    _process: Copy | Interpreter | None = None
    _socket: socket.socket | None = None
    _control: Channel | None = None
    _living: set[int] = field(default_factory=set)
    _ended: list[Ended] = field(default_factory=list)

    def open(self) -> None:
        """Start the fork server; it imports what workers need while the command goes on."""
        mine, self._process = taken() or interpreter(self.path)
        self._socket, self._control = mine, Channel(mine)
        self.selector.register(mine, selectors.EVENT_READ, self)
        defaults = dict.fromkeys(_ONE_THREAD, "1") if self.one_thread else {}
        kernels = kernel_environment(self.triton, self.path)
        with contextlib.suppress(OSError):  # it has been killed: the first order says so
            self._control.send(
                Setup(path=tuple(self.path), defaults=tuple(defaults.items()), settings=tuple(kernels.items()))
            )

    def start(self) -> tuple[int, Channel, int | None]:
        """A new worker: its process, the connection to it, and the descriptor its fault handler writes to.

        Raises:
            GradcliError: no process can be started, as where their number is limited.
        """
        for _ in range(_TRIES):
            if self._socket is None:
                self.open()
            mine, theirs = socket.socketpair()
            crashes = sink()
            pid = self._ordered([theirs.fileno(), *([] if crashes is None else [crashes])])
            theirs.close()
            if pid is not None:
                self._living.add(pid)
                return pid, Channel(mine), crashes
            mine.close()
            if crashes is not None:
                os.close(crashes)
        raise GradcliError(
            "worker processes cannot be started: the process that starts them exits immediately; is the number of "
            "processes limited (`ulimit -u`)?"
        )

    def ended(self) -> list[Ended]:
        """The workers that have ended since the last call."""
        self._read()
        news, self._ended = self._ended, []
        return news

    def close(self, patience: float) -> None:
        """Wait for the workers to end, kill those that have not after `patience` seconds, and end the fork server."""
        until = monotonic() + patience
        while self._living and self._socket is not None:
            if not self.selector.select(max(until - monotonic(), 0.0)) and monotonic() >= until:
                break
            self._read()
        self._abandon()

    def _ordered(self, ends: list[int]) -> int | None:
        """The worker made on order, which is given the descriptors `ends`; None if the fork server has been killed."""
        assert self._socket is not None  # noqa: S101 - open, as just seen; for the type checker
        try:
            socket.send_fds(self._socket, [b"+"], ends)
            self._socket.sendall(framed(Start(preload=tuple(self.loaded.items()))))
        except OSError:
            self._abandon()
            return None
        while self._control is not None:
            try:
                message: Any = self._control.receive()
            except (EOFError, GarbledError):
                self._abandon()
                return None
            if isinstance(message, Started):
                return message.pid
            self._note(message)
        return None

    def _read(self) -> None:
        """Read what the fork server says; where it has been killed its workers are killed too."""
        try:
            for message in () if self._control is None else self._control.arrived():
                self._note(message)
        except (EOFError, GarbledError):
            self._abandon()

    def _note(self, message: Ended) -> None:
        self._living.discard(message.pid)
        self._ended.append(message)

    def _abandon(self) -> None:
        """Kill what still runs and let the fork server end, which it does when its socket is closed."""
        for pid in tuple(self._living):
            kill_group(pid)
            self._note(Ended(pid=pid, code=-9))
        if self._socket is not None:
            self.selector.unregister(self._socket)
            self._socket.close()
        self._socket = self._control = None
        if self._process is not None:
            if not self._process.has_ended(1.0):
                self._process.kill()
            self._process = None
