"""The notebook in docs/ runs from its first cell to its last, and shows what its text says."""

import ast
import json
import linecache
from pathlib import Path
from typing import Any

import pytest

from gradcli import Report  # which says how reports and traces are shown
from gradcli.traces import TraceGraph, TraceNode

NOTEBOOK = Path(__file__).parent.parent / "docs" / "notebook.ipynb"


@pytest.fixture(scope="module")
def shown() -> list[Any]:
    """The value of the last expression of each cell, as a notebook shows it."""
    space: dict[str, Any] = {"__name__": "__main__"}
    values = []
    for number, cell in enumerate(json.loads(NOTEBOOK.read_text())["cells"]):
        if cell["cell_type"] != "code":
            continue
        source, name = "".join(cell["source"]), f"<cell {number}>"
        linecache.cache[name] = (len(source), None, source.splitlines(True), name)
        tree = ast.parse(source, name)
        last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
        exec(compile(tree, name, "exec"), space)
        values.append(None if last is None else eval(compile(ast.Expression(last.value), name, "eval"), space))
    return values


def test_the_wrong_function_fails_with_the_name_of_the_mistake(shown: list[Any]) -> None:
    wrong = shown[1]
    assert isinstance(wrong, Report)
    assert not wrong.ok
    assert shown[2] == ["wrong-factor"]
    assert "wrong-factor" in wrong._repr_html_()


def test_the_corrected_function_passes_and_its_trace_is_shown(shown: list[Any]) -> None:
    assert shown[3].ok
    trace = shown[4]
    assert isinstance(trace, TraceGraph)
    assert "CorrectedExp" in trace._repr_html_()


def test_the_notebook_has_no_outputs_and_the_format_that_jupyter_reads() -> None:
    notebook = json.loads(NOTEBOOK.read_text())
    assert notebook["nbformat"] == 4
    identifiers = [cell["id"] for cell in notebook["cells"]]
    assert len(set(identifiers)) == len(identifiers)
    assert all(not cell["outputs"] for cell in notebook["cells"] if cell["cell_type"] == "code")


def test_names_in_a_trace_are_text_and_no_markup() -> None:
    node = TraceNode(id=0, name="<script>alert(1)</script>", edges=())
    html = TraceGraph(target="<b>&", backend="engine", nodes=(node,))._repr_html_()
    assert "<script>" not in html
    assert "<b>" not in html
    assert "&lt;script&gt;" in html
    assert html.startswith("<pre>")
    assert html.endswith("</pre>")
