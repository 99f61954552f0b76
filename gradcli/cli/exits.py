"""How a command ends: every error becomes its exit code and a message on standard error, in one place."""

import functools
import sys
import traceback
from collections.abc import Callable
from typing import NoReturn, ParamSpec

import typer

from gradcli._version import __version__
from gradcli.errors import GradcliError, SpecError, TargetImportError, UserCodeError

FAULT = 70
INTERRUPTED = 130
_P = ParamSpec("_P")


def guarded(command: Callable[_P, int]) -> Callable[_P, None]:
    """A command that leaves with the code it returns, or with that of the error it raises."""

    @functools.wraps(command)
    def run(*args: _P.args, **kwargs: _P.kwargs) -> None:
        try:
            code = command(*args, **kwargs)
        except typer.Exit:
            raise
        except (Exception, KeyboardInterrupt) as error:
            leave(error)
        raise typer.Exit(code)

    run.__annotations__ = {**command.__annotations__, "return": None}
    return run


def leave(error: BaseException) -> NoReturn:
    """Say what went wrong on standard error and exit with its code."""
    if isinstance(error, KeyboardInterrupt):
        typer.echo("gradcli: interrupted", err=True)
        raise typer.Exit(INTERRUPTED) from None
    if isinstance(error, GradcliError) and error.exit_code != FAULT:
        typer.echo(explained(error), err=True)
        raise typer.Exit(error.exit_code) from None
    traceback.print_exception(error, file=sys.stderr)
    typer.echo(
        f"gradcli {__version__} (Python {sys.version.split()[0]}, {sys.platform}): this is a fault of gradcli itself, "
        "not of what it checked.\nPlease report it to the project with the lines above and the command that you ran.",
        err=True,
    )
    raise typer.Exit(FAULT) from None


def explained(error: GradcliError) -> str:
    """The message of an error, with the user's part of the traceback where there is one.

    The problems of a spec begin with their place, as editors and scripts expect.
    """
    message = str(error) if isinstance(error, SpecError) else f"Error: {error}"
    if isinstance(error, UserCodeError) and error.__cause__ is not None:
        from gradcli.spec.hints import explain_exception

        hint = explain_exception(error.__cause__)
        message += "" if hint is None else f"\n  hint: {hint}"
    if isinstance(error, TargetImportError | UserCodeError) and error.user_traceback:
        return f"{message}\n{error.user_traceback}"
    return message
