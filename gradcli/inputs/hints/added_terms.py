"""Arguments that forward adds or subtracts and does nothing else with, as a bias: such a tensor has a gradient."""

import ast
from collections.abc import Sequence

from gradcli.sources import nodes_of

_SUMS = frozenset(("add", "sub", "subtract"))
_RESHAPES = frozenset(("view", "reshape", "unsqueeze", "expand", "expand_as", "to", "type_as"))
_SAVES = "save_for_backward"


def added_terms(forward: ast.Module | None, names: Sequence[str]) -> frozenset[str]:
    """The arguments that are only added or subtracted, beside being saved and compared with None.

    Args:
        forward: its syntax tree, or None without source.
        names: of its arguments.
    """
    if forward is None:
        return frozenset()
    above = {id(child): node for node in nodes_of(forward) for child in ast.iter_child_nodes(node)}
    read = [node for node in nodes_of(forward) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)]
    uses = {name: [_is_added(node, above) for node in read if node.id == name] for name in names}
    return frozenset(name for name, each in uses.items() if True in each and False not in each)


def _is_added(node: ast.expr, above: dict[int, ast.AST]) -> bool | None:
    """Whether a use is a sum; None where it is neither that nor another computation."""
    node, parent = _reshaped(node, above)
    match parent:
        case ast.BinOp(op=ast.Add() | ast.Sub()) | ast.AugAssign(op=ast.Add() | ast.Sub()):
            return True
        case ast.Call(func=ast.Attribute(attr=attr)) if attr in _SUMS:
            return True
        case ast.Call(func=ast.Attribute(attr=attr)) if attr == _SAVES:
            return None
        case ast.Compare(ops=[ast.Is() | ast.IsNot()]):
            return None
        case ast.Assign(targets=[ast.Attribute()]):
            return None
    return False


def _reshaped(node: ast.expr, above: dict[int, ast.AST]) -> tuple[ast.expr, ast.AST]:
    """The argument with what only changes its shape, and the node above that."""
    parent = above[id(node)]
    match parent:
        case ast.Subscript(value=value) if value is node:
            return _reshaped(parent, above)
        case ast.Attribute(attr=attr) if attr in _RESHAPES and isinstance(call := above[id(parent)], ast.Call):
            return _reshaped(call, above) if call.func is parent else (node, parent)
    return node, parent
