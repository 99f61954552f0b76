"""Vectors whose entries forward names one by one, as in `a, b = x` or `x[0] * x[1]`: their number is fixed."""

import ast
from collections.abc import Sequence

_PASSED_ON = frozenset(("asarray", "array", "save_for_backward", "asanyarray"))
_FEWEST, _MOST = 2, 16


def entries_read(forward: ast.Module | None, names: Sequence[str]) -> dict[str, tuple[int]]:
    """The shapes of the arguments that forward reads by entries alone, all of them from the first one on.

    Args:
        forward: its syntax tree, or None without source.
        names: of its arguments.
    """
    found: dict[str, tuple[int]] = {}
    if forward is None:
        return found
    above = {id(child): node for node in ast.walk(forward) for child in ast.iter_child_nodes(node)}
    read = [node for node in ast.walk(forward) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)]
    for name in names:
        counts = [_entries(node, above[id(node)]) for node in read if node.id == name]
        entries = {entry for each in counts for entry in each or ()}
        whole = None not in counts and entries == set(range(len(entries)))
        if whole and _FEWEST <= len(entries) <= _MOST:
            found[name] = (len(entries),)
    return found


def _entries(node: ast.Name, parent: ast.AST) -> list[int] | None:
    """The entries that one use of an argument reads, none where it is only passed on; None for any other use."""
    if isinstance(parent, ast.Subscript) and parent.value is node and isinstance(parent.slice, ast.Constant):
        return [parent.slice.value] if type(parent.slice.value) is int else None
    if isinstance(parent, ast.Assign) and parent.value is node and len(parent.targets) == 1:
        target = parent.targets[0]
        elements = target.elts if isinstance(target, ast.Tuple | ast.List) else []
        if elements and not any(isinstance(each, ast.Starred) for each in elements):
            return list(range(len(elements)))
    if isinstance(parent, ast.Call) and node in parent.args:
        called = getattr(parent.func, "attr", getattr(parent.func, "id", ""))
        return [] if called in _PASSED_ON else None
    return None
