"""How a command ends: every error becomes its exit code and a message on standard error, in one place."""

import errno
import functools
import re
import sys
import traceback
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, ParamSpec, final

from gradcli._version import __version__
from gradcli.errors import GradcliError, RelayedError, UsageError
from gradcli.reporters.escaping import lines_of, one_line
from gradcli.runner.process.interrupts import Interrupted

if TYPE_CHECKING:
    from gradcli.results import CheckResult

FAULT = 70
_EXHAUSTED = frozenset({errno.EMFILE, errno.ENFILE, errno.EAGAIN, errno.ENOMEM})
"""Errors of the system that say that a limit of this process or machine is reached."""
_PLACED = re.compile(r"[^\n]+?:\d+:\d+: ")
_P = ParamSpec("_P")


def guarded(command: Callable[_P, int]) -> Callable[_P, None]:
    """A command that leaves with the code it returns, or with that of the error it raises."""

    import typer

    @functools.wraps(command)
    def run(*args: _P.args, **kwargs: _P.kwargs) -> None:
        with Exit() as end:
            end.code = command(*args, **kwargs)
        raise typer.Exit(end.code)

    run.__annotations__ = {**command.__annotations__, "return": None}
    return run


@final
class Exit:
    """The end of a command: `code` is what the command sets, or that of an error, which is said on standard error."""

    def __init__(self) -> None:
        self.code = 0

    def __enter__(self) -> "Exit":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        """Report what was raised, unless it ends the process itself."""
        if error is None:
            self.code = max(self.code, _unwritten())
            return False
        if not isinstance(error, Exception | KeyboardInterrupt | Interrupted):
            return False
        self.code = leave(error)
        return True


def _unwritten() -> int:
    """2 where standard output could not be written, which is said; 0 where it could."""
    from gradcli.cli.output.streams import report_stream

    problem = report_stream().problem
    if problem is None:
        return 0
    write_error(f"Error: standard output cannot be written: {problem}")
    return UsageError.exit_code


def leave(error: BaseException) -> int:
    """Say what went wrong on standard error; its exit code."""
    if isinstance(error, KeyboardInterrupt | Interrupted):
        write_error("gradcli: interrupted")
        from gradcli.results import INTERRUPTED

        return error.exit_code if isinstance(error, Interrupted) else INTERRUPTED
    if isinstance(error, GradcliError) and error.exit_code != FAULT:
        from gradcli.runner.jobs import explained

        say(prefixed(explained(error)))
        return error.exit_code
    if isinstance(error, OSError) and error.errno in _EXHAUSTED:
        say(
            f"Error: the system refused what gradcli needs to run: {error.strerror}; raise the limit that is reached "
            "(`ulimit -a` lists the limits), or run fewer workers at a time (-j 1)"
        )
        return UsageError.exit_code
    if isinstance(error, RelayedError):
        say(str(error))
    else:
        traceback.print_exception(error, file=sys.stderr)
    write_error(how_to_report())
    return FAULT


def write_error(text: str) -> None:
    """A line on standard error, where there is one."""
    if sys.stderr is not None:
        sys.stderr.write(f"{text}\n")
        sys.stderr.flush()


def say(text: str) -> None:
    """Text on standard error, with what it holds of the user's harmless to terminals and CI systems."""
    write_error("\n".join(lines_of(text)))


def say_fault(result: "CheckResult") -> None:
    """Say on standard error why a case could not be checked at all."""
    from gradcli.verdict import Fault

    if result.fault is Fault.INTERNAL:
        say(f"{one_line(result.case_id)}:\n{result.error_traceback or result.error}\n{how_to_report()}")
    else:
        say(prefixed(str(result.error)))


def how_to_report() -> str:
    """What to do about a fault of gradcli."""
    return (
        f"gradcli {__version__} (Python {sys.version.split()[0]}, {sys.platform}): an internal error in gradcli, "
        "not in what it checked.\nPlease report it to the project with the lines above and the command that you ran."
    )


def prefixed(message: str) -> str:
    """The message after `Error:`; that of a spec begins with its place, as editors and scripts expect."""
    return message if _PLACED.match(message) else f"Error: {message}"
