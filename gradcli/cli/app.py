"""The commands, put together."""

import os
from collections.abc import Callable, Sequence
from typing import Annotated

import typer

from gradcli._version import __version__
from gradcli.cli.arguments.completion import VARIABLE, completed
from gradcli.cli.arguments.memory_option import Command, CommandWithBudget
from gradcli.cli.commands.check import check_command
from gradcli.cli.commands.explain import explain_command
from gradcli.cli.commands.fix import fix_command
from gradcli.cli.commands.init import init_command
from gradcli.cli.commands.list import list_command
from gradcli.cli.commands.merge import merge_command
from gradcli.cli.commands.replay import replay_command
from gradcli.cli.commands.schema import schema_command
from gradcli.cli.commands.trace import trace_command
from gradcli.cli.exits import guarded

_EXIT_CODES = """
Exit codes: 0 every case passed, 1 a case failed, 2 wrong usage, or a target that cannot be used,
3 the user's code raised, crashed or timed out, or no inputs were found, 4 inconclusive, 5 nothing to check,
70 internal error in gradcli, 130 interrupted.
"""


def run(arguments: Sequence[str]) -> int:
    """Run the command line with `arguments` (without the program's name) and return its exit code."""

    def start() -> None:
        application()(args=list(arguments), prog_name="gradcli")

    try:
        completed(start) if VARIABLE in os.environ else start()
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    return 0


def application() -> typer.Typer:
    """The Typer application with all commands."""
    app = typer.Typer(
        name="gradcli",
        help="Check hand-written gradients with finite differences and their error bounds, and name the mistake.",
        epilog=_EXIT_CODES,
        no_args_is_help=True,
        add_completion=True,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    )
    app.callback()(_main)
    app.command("check", cls=Command, short_help="check gradients")(guarded(check_command))
    tracing = app.command(
        "trace",
        short_help=("run forward and backward once; show the graph, the hooks, and why a .grad is None"),
        cls=CommandWithBudget,
    )
    tracing(trace_command)
    app.command("list", cls=Command, short_help=("list the Functions found and the inputs they would be checked with"))(
        guarded(list_command)
    )
    others: dict[str, tuple[Callable[..., int], str]] = {
        "explain": (explain_command, "explain a name in a report, such as missing-gradient"),
        "fix": (fix_command, "search for a patch of backward that passes the whole check"),
        "init": (init_command, "write a spec (YAML) for a target"),
        "replay": (replay_command, "run a saved failure again"),
        "merge": (merge_command, "merge several reports into one"),
        "schema": (schema_command, "print the JSON Schema of specs"),
    }
    for name, (command, words) in others.items():
        app.command(name, cls=Command, short_help=words)(guarded(command))
    return app


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"gradcli {__version__}")
        raise typer.Exit


def _main(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Check hand-written gradients with finite differences and their error bounds, and name the mistake."""
