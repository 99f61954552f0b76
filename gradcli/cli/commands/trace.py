"""`gradcli trace`: run forward and backward once, show the graph and the hooks, and explain."""

import os
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated

import typer

from gradcli.cli.arguments.completion import leave_to_shell
from gradcli.cli.arguments.memory_option import NAME, budget_from
from gradcli.cli.arguments.parameters import Arguments, InProcess, Inputs, Seed
from gradcli.cli.arguments.target_names import complete_functions
from gradcli.cli.commands.trace_difference import FORMATS as DIFFERENCE_FORMATS
from gradcli.cli.commands.trace_difference import compared
from gradcli.cli.exits import guarded, say
from gradcli.cli.output.streams import ReportStream, report_stream
from gradcli.errors import UsageError
from gradcli.reporters.escaping import lines_of, printable
from gradcli.traces import TraceGraph

FORMATS = ("tree", "table", "json", "dot", "mermaid", "html")
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


_Target = Annotated[
    str,
    typer.Argument(
        metavar="TARGET",
        help="module:Name or path.py:Name: a Function, a Module, or a callable that builds a loss.",
        autocompletion=complete_functions,
        show_default=False,
    ),
]
_Format = Annotated[
    str,
    typer.Option(
        "--format", metavar="NAME", help="tree, table, json, dot, mermaid or html.", autocompletion=_complete_formats
    ),
]
_Output = Annotated[
    Path | None,
    typer.Option(
        "--output", metavar="FILE", help=("Write the trace to FILE."), autocompletion=leave_to_shell, show_default=False
    ),
]
_MaxNodes = Annotated[
    int | None,
    typer.Option(
        "--max-nodes",
        min=1,
        metavar="N",
        help=("Show at most N nodes; unless given, 200 in a tree and all in other formats."),
        show_default=False,
    ),
]
_Check = Annotated[
    bool,
    typer.Option(
        "--check",
        help="Check the backward of each custom Function at the arguments that it is called with; exit 1 when a "
        "symptom is found.",
    ),
]
_EveryNode = Annotated[
    bool, typer.Option("--every-node", help=("With --check: check the backward of the framework's own operations too."))
]
_Memory = Annotated[
    str | None,
    typer.Option(
        NAME,
        metavar="[BUDGET]",
        help=(
            "Show the peak memory of the backward pass and what it consists of; with a BUDGET such as 500MB, "
            "also say whether the peak is below it."
        ),
        show_default=False,
    ),
]
_Diff = Annotated[
    str | None,
    typer.Option(
        "--diff",
        metavar="OTHER",
        help="Compare two traces and show only the differences. OTHER is another target, a trace that --format json "
        "wrote to a file, or seed=N for TARGET with another seed. TARGET may be such a file too.",
        show_default=False,
    ),
]


def _trace(
    target: _Target,
    inputs: Inputs = None,
    arguments: Arguments = None,
    form: _Format = "tree",
    output: _Output = None,
    max_nodes: _MaxNodes = None,
    check: _Check = False,
    every_node: _EveryNode = False,
    memory: _Memory = None,
    diff: _Diff = None,
    seed: Seed = 0,
    in_process: InProcess = False,
) -> int:
    """Run forward and backward of TARGET once; show the graph, the hooks, and why a .grad is None or zero."""
    from gradcli.cli.arguments.options import inputs_from, writable
    from gradcli.cli.pools import site
    from gradcli.runner.jobs import TraceJob

    _require_format(form, FORMATS if diff is None else DIFFERENCE_FORMATS)
    if every_node and not check:
        raise UsageError("--every-node needs --check")
    budget = budget_from(memory)
    flags = inputs_from(inputs or (), arguments or ())
    output = None if output is None else writable(output, "--output")
    with site(in_process=in_process) as here:

        def run(name: str, other_seed: int | None = None) -> TraceGraph:
            job = TraceJob(
                target=name,
                flags=flags,
                seed=seed if other_seed is None else other_seed,
                check=check,
                every_node=check and every_node,
                memory=memory is not None,
                budget=budget,
            )
            graph: TraceGraph = here.do(job)
            return graph

        if diff is not None:
            text, code = compared(target, diff, run, form)
            _show_text(text, output)
            return code
        graph = run(target)
    _show_graph(graph, form, output, max_nodes)
    if graph.error is not None:
        say(graph.error_traceback or graph.error)
        return 1 if check and graph.wrong_nodes else _USER_CODE_RAISED
    return int(check and bool(graph.symptoms))


trace_command = guarded(_trace)


def _require_format(name: str, formats: Sequence[str]) -> None:
    if name in FORMATS and name not in formats:
        raise UsageError(f"--format {name}: with --diff, expected {' or '.join(formats)}")
    if name not in FORMATS:
        close = get_close_matches(name, formats, 1)
        hint = f"did you mean {close[0]!r}? " if close else ""
        raise UsageError(f"--format {name}: unknown format; {hint}available: {', '.join(formats)}")


def _show_graph(graph: TraceGraph, form: str, output: Path | None, max_nodes: int | None) -> None:
    stream = report_stream()
    if output is None and form == "tree" and stream.isatty():
        _show(graph, max_nodes, stream)
        stream.flush()
    else:
        _show_text(_text(graph, form, max_nodes), output)


def _show_text(text: str, output: Path | None) -> None:
    if output is not None:
        _write(output, text)
        return
    stream = report_stream()
    stream.write(text)
    stream.flush()


def _text(graph: TraceGraph, form: str, max_nodes: int | None) -> str:
    """The graph in a format, as a file or a pipe gets it."""
    if form == "json":
        from gradcli.reporters.graph.json_document import trace_document

        return trace_document(graph)
    if form in ("dot", "mermaid"):
        from gradcli.reporters.graph import drawings

        draw = drawings.dot if form == "dot" else drawings.mermaid
        return draw(graph, max_nodes=max_nodes)
    if form == "html":
        from gradcli.reporters.graph.page import trace_page

        return trace_page(graph)
    if form == "table":
        from gradcli.reporters.graph.table import table

        return "\n".join(lines_of(table(graph, max_nodes=max_nodes)))
    from gradcli.reporters.graph.tree import tree

    return "\n".join(lines_of(tree(graph, max_nodes=max_nodes or _NODES_SHOWN)))


def _show(graph: TraceGraph, max_nodes: int | None, stream: ReportStream) -> None:
    """The tree on a terminal: no wider than it, and in colour unless that was declined."""
    import io

    from rich.console import Console
    from rich.text import Text

    from gradcli.reporters.graph.tree import tree_lines

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
