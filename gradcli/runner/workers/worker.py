"""The worker's side: jobs in, outcomes out."""

import atexit
import contextlib
import faulthandler
import gc
import io
import os
import sys
from functools import partial
from types import ModuleType
from typing import Never

from gradcli.errors import UsageError
from gradcli.runner.jobs import Attempt, Broken, Done, Refused
from gradcli.runner.planning.import_folders import import_folder_of
from gradcli.runner.process.interference import end_refused
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
        with contextlib.suppress(OSError):  # files may have no size here: nobody sees what a case does
            share(crashes)
    own = os.getpid()
    with contextlib.closing(channel):
        while True:
            try:
                task: Task = channel.receive()
            except (EOFError, GarbledError, OSError):
                return
            footprint, modules = _settled(task), _own_modules()
            if not os.path.isdir(task.folder):
                said = f"{task.job.target}: the working directory {task.folder} no longer exists"
                _send(channel, Reply(outcome=Refused(message=said, exit_code=UsageError.exit_code), left=(said,)))
                continue
            with end_refused(), Attempt() as attempt:
                attempt.outcome = Done(value=task.job.run(partial(_begin, channel, task, footprint, modules)))
            if os.getpid() != own:  # a fork in the user's code came back here
                os._exit(1)
            left = _left(footprint)
            sys.modules.update(modules)  # nothing can be sent without them
            _send(channel, Reply(outcome=attempt.outcome, left=left, loaded=_loaded()))


def end() -> Never:
    """End this process as one of `multiprocessing` ends: after the functions that run at exit, with its files written.

    That the interpreter takes everything apart first would cost a tenth of a small check.
    """
    with contextlib.suppress(BaseException):
        atexit._run_exitfuncs()
    for value in (sys.__stdout__, sys.__stderr__, *gc.get_objects()):  # what was frozen is not among the objects
        if issubclass(type(value), _BUFFERED):
            with contextlib.suppress(BaseException):
                value.flush()
    os._exit(0)


def _settled(task: Task) -> Footprint:
    """The process as it is before a job; ends it where an earlier one has left it unusable: the job is then lost."""
    try:
        with contextlib.suppress(FileNotFoundError):  # the job is refused
            os.chdir(task.folder)
        return Footprint(import_folder=import_folder_of(task.job.target, task.folder))
    except BaseException:
        os._exit(1)


def _own_modules() -> dict[str, ModuleType]:
    return {name: module for name, module in sys.modules.items() if name.partition(".")[0] == "gradcli"}


def _left(footprint: Footprint) -> tuple[str, ...]:
    try:
        return footprint.left()
    except BaseException as error:
        return (f"something that could not be examined ({type(error).__name__})",)


def _begin(channel: Channel, task: Task, footprint: Footprint, modules: dict[str, ModuleType]) -> None:
    try:
        os.chdir(task.folder)
    except FileNotFoundError:
        raise UsageError(f"the working directory {task.folder} no longer exists") from None
    footprint.lost_modules = tuple(name for name in modules if sys.modules.get(name) is not modules[name])
    sys.modules.update(modules)
    footprint.imported()
    channel.send(Begun())
    if footprint.lost_modules:
        lost = ", ".join(footprint.lost_modules[:2]) + (", ..." if len(footprint.lost_modules) > 2 else "")
        raise UsageError(
            f"{task.job.target} removed or replaced modules of gradcli in sys.modules while it was imported "
            f"({lost}): leave them in place, because gradcli recognises a Function by the classes in these modules"
        )


def _send(channel: Channel, reply: Reply) -> None:
    with contextlib.suppress(Exception):
        sys.stderr.flush()
    try:
        channel.send(reply)
    except OSError:
        os._exit(1)
    except Exception as error:  # the user's own class in the outcome, for example
        try:
            channel.send(Reply(outcome=Broken(trace=f"the outcome cannot be sent: {error!r}"), left=reply.left))
        except BaseException:  # what it takes to send has been replaced: the job is lost with this process
            os._exit(1)


def _loaded() -> tuple[tuple[str, str], ...]:
    found = ((name, getattr(sys.modules.get(name), "__file__", None)) for name in _COSTLY)
    return tuple((name, file) for name, file in found if isinstance(file, str))
