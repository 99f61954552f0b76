"""`gradcli trace`: run forward and backward once, show the graph and the hooks, and explain."""

import os
from collections.abc import Iterable
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated

import typer

from gradcli.cli.completion import leave_to_shell
from gradcli.cli.exits import guarded, say
from gradcli.cli.parameters import Arguments, InProcess, Inputs, Seed
from gradcli.cli.streams import ReportStream, report_stream
from gradcli.cli.target_names import complete_functions
from gradcli.errors import UsageError
from gradcli.reporters.escaping import lines_of, printable
from gradcli.traces import TraceGraph

FORMATS = ("tree", "table", "json", "dot", "mermaid")
_NODES_SHOWN = 200
_WIDTH = 100
"""Columns where the terminal tells none; lines are not folded to it."""
_USER_CODE_RAISED = 3
_STYLES = {
    "result": "bold",
    "node": "",
    "leaf": "cyan",
    "hook": "",
    "heading": "bold",
    "warning": "yellow",
    "why": "yellow",
    "error": "red",
}


def _complete_formats(incomplete: str) -> list[str]:
    return [name for name in FORMATS if name.startswith(incomplete)]


_Check = Annotated[
    bool,
    typer.Option("--check", help="Check each custom Function's backward in place; exit 1 when a symptom is found."),
]
_EveryNode = Annotated[bool, typer.Option("--every-node", help="With --check: check the framework's operations too.")]


def _trace(
    target: Annotated[
        str,
        typer.Argument(
            metavar="TARGET",
            help="module:Name or path.py:Name: a Function, a Module, or a callable that builds a loss.",
            autocompletion=complete_functions,
            show_default=False,
        ),
    ],
    inputs: Inputs = None,
    arguments: Arguments = None,
    form: Annotated[
        str,
        typer.Option(
            "--format", metavar="NAME", help="tree, table, json, dot or mermaid.", autocompletion=_complete_formats
        ),
    ] = "tree",
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", metavar="FILE", help="Write to FILE.", autocompletion=leave_to_shell, show_default=False
        ),
    ] = None,
    max_nodes: Annotated[
        int | None,
        typer.Option(
            "--max-nodes", min=1, metavar="N", help="Nodes drawn; 200 in a tree, all elsewhere.", show_default=False
        ),
    ] = None,
    check: _Check = False,
    every_node: _EveryNode = False,
    seed: Seed = 0,
    in_process: InProcess = False,
) -> int:
    """Run forward and backward of TARGET once: the graph, the hooks in order, and why a .grad is None."""
    from gradcli.cli.options import inputs_from
    from gradcli.cli.staffing import site
    from gradcli.runner.jobs import TraceJob

    _require_format(form)
    flags = inputs_from(inputs or (), arguments or ())
    stream = report_stream()
    with site(in_process=in_process) as here:
        graph: TraceGraph = here.do(
            TraceJob(target=target, flags=flags, seed=seed, check=check, every_node=check and every_node)
        )
    if output is not None:
        _write(output, _text(graph, form, max_nodes))
    elif form == "tree" and stream.isatty():
        _show(graph, max_nodes, stream)
    else:
        stream.write(_text(graph, form, max_nodes))
    stream.flush()
    if graph.error is not None:
        say(graph.error_traceback or graph.error)
        return _USER_CODE_RAISED
    return int(check and bool(graph.symptoms))


trace_command = guarded(_trace)


def _require_format(name: str) -> None:
    if name not in FORMATS:
        close = get_close_matches(name, FORMATS, 1)
        hint = f"did you mean {close[0]!r}? " if close else ""
        raise UsageError(f"--format {name}: no format is called that; {hint}available: {', '.join(FORMATS)}")


def _text(graph: TraceGraph, form: str, max_nodes: int | None) -> str:
    """The graph in a format, as a file or a pipe gets it."""
    if form == "json":
        from gradcli.reporters.graph_json import trace_document

        return trace_document(graph)
    if form in ("dot", "mermaid"):
        from gradcli.reporters import graph_drawings

        draw = graph_drawings.dot if form == "dot" else graph_drawings.mermaid
        return draw(graph, max_nodes=max_nodes)
    if form == "table":
        from gradcli.reporters.graph_table import table

        return "\n".join(lines_of(table(graph, max_nodes=max_nodes)))
    from gradcli.reporters.graph_tree import tree

    return "\n".join(lines_of(tree(graph, max_nodes=max_nodes or _NODES_SHOWN)))


def _show(graph: TraceGraph, max_nodes: int | None, stream: ReportStream) -> None:
    """The tree on a terminal: no wider than it, and in colour unless that was declined."""
    import io

    from rich.console import Console
    from rich.text import Text

    from gradcli.reporters.graph_tree import tree_lines

    colour = not os.environ.get("NO_COLOR") and os.environ.get("TERM") not in ("dumb", "unknown")
    lines = tree_lines(graph, max_nodes=max_nodes or _NODES_SHOWN, width=Console().width or None)
    sink = io.StringIO()
    console = Console(
        file=sink,
        width=_WIDTH,
        force_terminal=colour,
        color_system="standard" if colour else None,
        highlight=False,
        markup=False,
    )
    styled: Iterable[Text] = (Text(printable(line.text), style=_STYLES[line.tone.value]) for line in lines)
    for text in styled:
        console.print(text, soft_wrap=True)
    stream.write(sink.getvalue())


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"--output {path}: cannot be written: {error.strerror or error}") from error
