"""Where backward leaves the graph: by a context that records nothing, a pass that is not recorded, or a call."""

import ast
from collections.abc import Callable, Iterator
from typing import Any

from gradcli.diagnosis.code.helpers import plain_function
from gradcli.diagnosis.code.source import FunctionSource, function_tree
from gradcli.frozen import dataclass
from gradcli.results import Location

_LEAVING = {
    "detach": "detaches",
    "detach_": "detaches",
    "data": "uses .data",
    "numpy": "goes through NumPy",
    "item": "takes a Python number with item()",
    "tolist": "goes through Python lists",
}
_UNRECORDED = frozenset({"no_grad", "inference_mode"})
_CREATE_GRAPH = 4
"""The place of create_graph among the arguments of autograd.grad."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Leaving:
    """What leaves the graph: a predicate of backward, with its line, and where that is."""

    said: str
    location: Location


def graph_left(backward: Callable[..., Any] | None) -> Iterator[Leaving]:
    """What leaves the graph in backward, then in the functions of its module that it calls.

    A pass inside of it that is not recorded comes first, then what records nothing, then single calls.
    """
    own = function_tree(backward)
    if own is None:
        return
    yield from _left_in(own, "")
    known = getattr(backward, "__globals__", {})
    calls = [node.func for node in ast.walk(own.tree) if isinstance(node, ast.Call)]
    for name in dict.fromkeys(each.id for each in calls if isinstance(each, ast.Name)):
        helper = function_tree(plain_function(known.get(name)))
        if helper is not None:
            yield from _left_in(helper, f"calls {name}, which ")


def _left_in(source: FunctionSource, path: str) -> Iterator[Leaving]:
    for does, line in [*_unrecorded_passes(source.tree), *_unrecorded(source.tree), *_detached(source.tree)]:
        place = Location(file=source.file, line=source.first_line + line - 1)
        yield Leaving(said=f"{path}{does} at line {place.line}", location=place)


def _unrecorded_passes(tree: ast.FunctionDef) -> Iterator[tuple[str, int]]:
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or node.func.attr != "grad":
            continue
        options = {each.arg: each.value for each in node.keywords}
        recorded = options.get("create_graph")
        positional = len(node.args) > _CREATE_GRAPH or None in options
        if (isinstance(recorded, ast.Constant) and not recorded.value) or (recorded is None and not positional):
            yield "calls autograd.grad without create_graph=True", node.lineno


def _unrecorded(tree: ast.FunctionDef) -> Iterator[tuple[str, int]]:
    """Decorators and contexts in which nothing is recorded."""
    for node in tree.decorator_list:
        if _records_nothing(node):
            yield f"is decorated with @{ast.unparse(node)}", node.lineno
    for inner in (each for statement in tree.body for each in ast.walk(statement)):
        if isinstance(inner, ast.Call) and _records_nothing(inner):
            yield f"switches gradients off ({ast.unparse(inner)})", inner.lineno


def _records_nothing(node: ast.expr) -> bool:
    """Whether an expression is `no_grad`, `inference_mode()` or `set_grad_enabled(False)`, from whatever module."""
    if not isinstance(node, ast.Call):
        return _name(node) in _UNRECORDED
    mode = node.args[0].value if node.args and isinstance(node.args[0], ast.Constant) else None
    named = _name(node.func)
    return mode is False if named == "set_grad_enabled" else named in _UNRECORDED and mode is not False


def _name(node: ast.expr) -> str:
    return str(getattr(node, "attr", getattr(node, "id", "")))


def _detached(tree: ast.FunctionDef) -> Iterator[tuple[str, int]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr in _LEAVING:
            yield _LEAVING[node.attr], node.lineno
