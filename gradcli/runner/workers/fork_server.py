"""The process that workers are forked from: gradcli is imported in it once, and the user's code never.

It answers on its control socket: `Start` makes a worker, whose end of a socket travels with the message, and `Ended`
tells the command how a worker ended. When the command is gone, which closes the control socket, every worker is killed,
so that none outlives it, however the command ended.
"""

import contextlib
import gc
import importlib
import importlib.util
import os
import selectors
import signal
import socket
import sys
import warnings
from typing import Never, final

from gradcli.runner.workers.channel import Channel, GarbledError
from gradcli.runner.workers.fork_server_start import ENDING
from gradcli.runner.workers.messages import Ended, Setup, Start, Started

_FIRST_DESCRIPTOR = 512
"""Where a worker keeps its socket: above the descriptors that code closes by number, as in `os.closerange(0, 256)`."""


def main(descriptor: int) -> Never:
    """Make workers until the command closes its end of the socket `descriptor`, then end this process, or the worker.

    Until everything is imported no garbage is collected: there is next to none, and looking for it takes a tenth of the
    time.
    """
    gc.disable()
    for number in ENDING:
        signal.signal(number, signal.SIG_IGN)
    with contextlib.closing(_ForkServer(socket.socket(fileno=descriptor))) as server:
        if not server.set_up():
            os._exit(0)
        try:
            from gradcli.runner.workers import worker

            worker.warm_up()
        except OSError as error:
            # A limit of the system is reached: the command finds this process gone, and says what to do.
            sys.stderr.write(f"gradcli: worker processes cannot start: {error}\n")
            os._exit(1)
        gc.freeze()
        gc.enable()
        ends = server.serve()
    if ends is None:
        os._exit(0)
    worker.serve(Channel(socket.socket(fileno=ends[0])), *ends[1:])
    worker.end()


@final
class _ForkServer:
    """The control socket, the workers that live, and a pipe that a worker's end writes to."""

    def __init__(self, control: socket.socket) -> None:
        self._socket = control
        self._control = Channel(control)
        self._living: set[int] = set()
        self._bell, ring = os.pipe()
        os.set_blocking(ring, False)
        os.set_blocking(self._bell, False)
        self._ring = ring
        signal.set_wakeup_fd(ring, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)

    def set_up(self) -> bool:
        """Apply the command's first message; False if the command ended without one."""
        try:
            setup: Setup = self._control.receive()
        except (EOFError, GarbledError, OSError):
            return False
        sys.path[:] = setup.path
        for name, value in setup.defaults:
            os.environ.setdefault(name, value)
        os.environ.update(setup.settings)
        return True

    def serve(self) -> tuple[int, ...] | None:
        """In this process None, once the command has gone; in each worker the descriptors that came with the order."""
        with selectors.DefaultSelector() as selector:
            selector.register(self._bell, selectors.EVENT_READ)
            selector.register(self._socket, selectors.EVENT_READ)
            while True:
                for key, _ in selector.select():
                    if key.fileobj == self._bell:
                        self._reap()
                        continue
                    message, ends = self._order()
                    if message is None:
                        self._kill_all()
                        return None
                    worker = self._fork(message, ends)
                    if worker is not None:
                        return worker

    def close(self) -> None:
        """Close what belongs to the fork server, in it or in a worker."""
        signal.set_wakeup_fd(-1)
        for descriptor in (self._bell, self._ring):
            os.close(descriptor)
        self._socket.close()

    def _order(self) -> tuple[Start | None, list[int]]:
        """The next order with the descriptors that came with it; None when the command has gone."""
        try:
            _, ends, _, _ = socket.recv_fds(self._socket, 1, 2)
            return (self._control.receive(), ends) if ends else (None, [])
        except (OSError, EOFError, GarbledError):
            return None, []

    def _fork(self, order: Start, ends: list[int]) -> tuple[int, ...] | None:
        for name, file in order.preload:
            _preload(name, file)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # OpenBLAS's threads are no hindrance: it waits for forks itself
            pid = os.fork()
        if pid == 0:
            os.setsid()
            return _settled(ends)
        for end in ends:
            os.close(end)
        self._living.add(pid)
        self._tell(Started(pid=pid))
        return None

    def _reap(self) -> None:
        with contextlib.suppress(BlockingIOError):
            os.read(self._bell, 4096)
        for pid in tuple(self._living):
            ended, status = os.waitpid(pid, os.WNOHANG)
            if ended:
                self._living.discard(pid)
                kill_group(pid)  # what it started and left behind
                self._tell(Ended(pid=pid, code=os.waitstatus_to_exitcode(status)))

    def _tell(self, message: object) -> None:
        with contextlib.suppress(OSError):  # the command has gone: the next order says so
            self._control.send(message)

    def _kill_all(self) -> None:
        for pid in self._living:
            kill_group(pid)
            os.waitpid(pid, 0)


def kill_group(pid: int) -> None:
    """End the worker `pid`, if it still runs, and every process of its group."""
    for end in (os.killpg, os.kill):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            end(pid, signal.SIGKILL)


def _settled(descriptors: list[int]) -> tuple[int, ...]:
    """The worker's descriptors under high numbers, and signals as a process starts with them; no core is dumped."""
    import fcntl
    import resource

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGCHLD):
        signal.signal(number, signal.SIG_DFL)
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    settled = []
    for descriptor in descriptors:
        try:
            settled.append(fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, _FIRST_DESCRIPTOR))
            os.close(descriptor)
        except OSError:  # fewer descriptors are allowed: the low number has to do
            settled.append(descriptor)
    return tuple(settled)


def _preload(name: str, file: str) -> None:
    """Import `name` if it is the module of `file`: another one of that name belongs to the user."""
    if name in sys.modules:
        return
    with contextlib.suppress(Exception):
        found = importlib.util.find_spec(name)
        if found is not None and found.origin == file:
            importlib.import_module(name)
