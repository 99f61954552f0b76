"""The worker's side: jobs in, outcomes out."""

import atexit
import contextlib
import faulthandler
import gc
import io
import os
import sys
from functools import partial
from pathlib import Path
from typing import Never

from gradcli.runner.interference import end_refused
from gradcli.runner.jobs import Broken, attempt
from gradcli.runner.realms import realm_of
from gradcli.runner.workers.channel import Channel, GarbledError
from gradcli.runner.workers.footprint import Footprint
from gradcli.runner.workers.messages import Begun, Reply, Task
from gradcli.watchdog.status import share

_STDERR = 2
_BUFFERED = (io.TextIOWrapper, io.BufferedWriter, io.BufferedRandom)
_COSTLY = ("torch", "gradcli.engine")
"""Modules that take long to import, and that a process may be forked after importing."""


def warm_up() -> None:
    """Import what every job needs."""
    import gradcli.runner.case  # noqa: F401 - kept for the workers


def serve(channel: Channel, crashes: int = _STDERR) -> None:
    """Do jobs until the command closes its end; where a crash happened is written to the descriptor `crashes`."""
    faulthandler.enable(crashes)
    if crashes != _STDERR:
        share(crashes)
    own = os.getpid()
    with contextlib.closing(channel):
        while True:
            try:
                task: Task = channel.receive()
            except (EOFError, GarbledError, OSError):
                return
            os.chdir(task.folder)
            footprint = Footprint(realm=realm_of(task.job.target, task.folder))
            with end_refused():
                outcome = attempt(task.job, partial(_begin, channel, task.folder, footprint))
            if os.getpid() != own:  # a fork in the user's code came back here
                os._exit(1)
            _send(channel, Reply(outcome=outcome, left=footprint.left(), loaded=_loaded()))


def end() -> Never:
    """End this process as one of `multiprocessing` ends: after the functions that run at exit, with its files written.

    That the interpreter takes everything apart first would cost a tenth of a small check.
    """
    with contextlib.suppress(BaseException):
        atexit._run_exitfuncs()
    for value in gc.get_objects():
        if issubclass(type(value), _BUFFERED):
            with contextlib.suppress(BaseException):
                value.flush()
    os._exit(0)


def _begin(channel: Channel, folder: Path, footprint: Footprint) -> None:
    os.chdir(folder)
    footprint.imported()
    channel.send(Begun())


def _send(channel: Channel, reply: Reply) -> None:
    with contextlib.suppress(Exception):
        sys.stderr.flush()
    try:
        channel.send(reply)
    except OSError:
        os._exit(1)
    except Exception as error:  # the user's own class in the outcome, for example
        channel.send(Reply(outcome=Broken(trace=f"the outcome cannot be sent: {error!r}"), left=reply.left))


def _loaded() -> tuple[tuple[str, str], ...]:
    found = ((name, getattr(sys.modules.get(name), "__file__", None)) for name in _COSTLY)
    return tuple((name, file) for name, file in found if isinstance(file, str))
