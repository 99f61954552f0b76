"""How a command ends: every error becomes its exit code and a message on standard error, in one place."""

import functools
import re
import sys
import traceback
from collections.abc import Callable
from typing import TYPE_CHECKING, NoReturn, ParamSpec

import typer

from gradcli._version import __version__
from gradcli.errors import GradcliError, RelayedError, UsageError
from gradcli.reporters.escaping import lines_of, one_line
from gradcli.runner.interrupts import Interrupted

if TYPE_CHECKING:
    from gradcli.results import CheckResult

FAULT = 70
INTERRUPTED = 130
_PLACED = re.compile(r"[^\n]+?:\d+:\d+: ")
_P = ParamSpec("_P")


def guarded(command: Callable[_P, int]) -> Callable[_P, None]:
    """A command that leaves with the code it returns, or with that of the error it raises."""

    @functools.wraps(command)
    def run(*args: _P.args, **kwargs: _P.kwargs) -> None:
        try:
            code = command(*args, **kwargs)
        except typer.Exit:
            raise
        except (Exception, KeyboardInterrupt, Interrupted) as error:
            leave(error)
        raise typer.Exit(max(code, _unwritten()))

    run.__annotations__ = {**command.__annotations__, "return": None}
    return run


def _unwritten() -> int:
    """2 where standard output could not be written, which is said; 0 where it could."""
    from gradcli.cli.streams import report_stream

    problem = report_stream().problem
    if problem is None:
        return 0
    typer.echo(f"Error: standard output cannot be written: {problem}", err=True)
    return UsageError.exit_code


def leave(error: BaseException) -> NoReturn:
    """Say what went wrong on standard error and exit with its code."""
    if isinstance(error, KeyboardInterrupt | Interrupted):
        typer.echo("gradcli: interrupted", err=True)
        raise typer.Exit(error.exit_code if isinstance(error, Interrupted) else INTERRUPTED) from None
    if isinstance(error, GradcliError) and error.exit_code != FAULT:
        from gradcli.runner.jobs import explained

        say(prefixed(explained(error)))
        raise typer.Exit(error.exit_code) from None
    if isinstance(error, RelayedError):
        say(str(error))
    else:
        traceback.print_exception(error, file=sys.stderr)
    typer.echo(how_to_report(), err=True)
    raise typer.Exit(FAULT) from None


def say(text: str) -> None:
    """Text on standard error, with what it holds of the user's harmless to terminals and CI systems."""
    typer.echo("\n".join(lines_of(text)), err=True)


def say_fault(result: "CheckResult") -> None:
    """Say on standard error why a case could not be checked at all."""
    from gradcli.results import Fault

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
