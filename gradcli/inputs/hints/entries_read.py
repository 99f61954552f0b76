"""Vectors whose entries forward names one by one, as in `a, b = x` or `x[0] * x[1]`: their number is fixed."""

import ast
from collections.abc import Mapping, Sequence

from gradcli.inputs.hints.documented_shapes import Axis
from gradcli.sources import bindings, nodes_of

_PASSED_ON = frozenset(("asarray", "array", "save_for_backward", "asanyarray"))
_FEWEST, _MOST = 2, 16
_INDEXED_BY = ("index_", "gather", "scatter", "take", "bincount", "segment_")
"""How functions begin that take indices."""
_WITH_AXES = frozenset(
    ("shape", "size", "dim", "ndim", "T", "mT", "sum", "mean", "reshape", "view", "flatten", "unsqueeze")
)
"""Attributes of what has axes of its own: then the argument has rows, not entries."""


def entries_read(forward: ast.Module | None, names: Sequence[str]) -> dict[str, tuple[int]]:
    """The shapes of the arguments that forward reads by entries alone, all of them from the first one on.

    Args:
        forward: its syntax tree, or None without source.
        names: of its arguments.
    """
    found: dict[str, tuple[int]] = {}
    if forward is None:
        return found
    above = {id(child): node for node in nodes_of(forward) for child in ast.iter_child_nodes(node)}
    read = [node for node in nodes_of(forward) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)]
    for name in names:
        places = [above[id(node)] for node in read if node.id == name]
        counts = [_entries(node, above[id(node)]) for node in read if node.id == name]
        entries = {entry for each in counts for entry in each or ()}
        one_by_one = any(count and not _is_slice(place) for place, count in zip(places, counts, strict=True))
        whole = one_by_one and None not in counts and entries == set(range(len(entries)))
        if whole and _FEWEST <= len(entries) <= _MOST and not _are_arrays(name, forward):
            found[name] = (len(entries),)
    return found


def without_components(
    shapes: Mapping[str, tuple[Axis, ...]], read: Mapping[str, tuple[int]]
) -> dict[str, tuple[Axis, ...]]:
    """The documented shapes without those that are names of entries, as in `pose = (x, y, angle)`.

    There are as many names as entries that forward reads one by one, at least three: two may be those of axes.
    """
    return {name: axes for name, axes in shapes.items() if not 3 <= len(axes) == read.get(name, (0,))[0]}


def _are_arrays(name: str, forward: ast.Module) -> bool:
    """Whether an entry of an argument is used as an index, or as an array with axes of its own."""
    own = {name}
    for node in nodes_of(forward):
        for target, value in bindings(node) if isinstance(node, ast.Assign) else ():
            if _is_entry(value, name):
                targets = target.elts if isinstance(target, ast.Tuple | ast.List) else [target]
                own.update(each.id for each in targets if isinstance(each, ast.Name))
    for node in nodes_of(forward):
        if isinstance(node, ast.Subscript) and any(_is_entry(part, *own) for part in ast.walk(node.slice)):
            return True
        if isinstance(node, ast.Attribute) and node.attr in _WITH_AXES and _is_entry(node.value, *(own - {name})):
            return True
        indexed = isinstance(node, ast.Call) and _called(node).startswith(_INDEXED_BY)
        if isinstance(node, ast.Call) and indexed and any(_is_entry(argument, *own) for argument in node.args):
            return True
    return False


def _is_entry(node: ast.AST, *names: str) -> bool:
    """Whether a node is one of the names, or an element of one."""
    held = node.value if isinstance(node, ast.Subscript) else node
    return isinstance(held, ast.Name) and held.id in names


def _called(node: ast.Call) -> str:
    return str(getattr(node.func, "attr", getattr(node.func, "id", "")))


def _entries(node: ast.Name, parent: ast.AST) -> list[int] | None:
    """The entries that one use of an argument reads, none where it is only passed on; None for any other use."""
    if isinstance(parent, ast.Subscript) and parent.value is node:
        return _selected(parent.slice)
    if isinstance(parent, ast.Assign) and parent.value is node and len(parent.targets) == 1:
        target = parent.targets[0]
        elements = target.elts if isinstance(target, ast.Tuple | ast.List) else []
        if elements and not any(isinstance(each, ast.Starred) for each in elements):
            return list(range(len(elements)))
    if isinstance(parent, ast.Call) and node in parent.args:
        return [] if _called(parent) in _PASSED_ON else None
    return None


def _is_slice(node: ast.AST) -> bool:
    return isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Slice)


def _selected(index: ast.expr) -> list[int] | None:
    """The entries that a number or a slice between two numbers selects; None for any other index."""
    if isinstance(index, ast.Constant):
        return [index.value] if type(index.value) is int else None
    if isinstance(index, ast.Slice) and index.step is None and isinstance(index.upper, ast.Constant):
        first = 0 if index.lower is None else getattr(index.lower, "value", None)
        if type(first) is int and type(index.upper.value) is int:
            return list(range(first, index.upper.value))
    return None
