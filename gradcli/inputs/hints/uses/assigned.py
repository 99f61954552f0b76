"""The arguments that forward assigns by, as in `out[index] = values`: of equal indices, one value remains.

PyTorch and JAX do not define which one, so forward is not a function of its inputs there.
"""

import ast
from collections.abc import Collection, Iterable, Iterator

from gradcli.sources import nodes_of

_COPIES = frozenset(("index_copy", "index_copy_", "scatter", "scatter_"))
"""Methods that take a dimension, an index and values, and keep one value for each index."""
_CONVERSIONS = frozenset(("long", "int", "to", "type", "astype"))


def assigned_by(trees: Iterable[ast.Module | None], names: Collection[str]) -> frozenset[str]:
    """The arguments that select entries, along one axis, to which forward assigns others than a constant.

    Args:
        trees: the syntax trees of forward and of its helpers, in forward's names.
        names: forward's arguments.
    """
    nodes = (node for tree in trees if tree is not None for node in nodes_of(tree))
    return frozenset(name for node in nodes for name in _indices(node) if name in names)


def _indices(node: ast.AST) -> Iterator[str]:
    match node:
        case ast.Assign(targets=[ast.Subscript(slice=key)], value=value) if not _is_constant(value):
            yield from _only_name(key)
        case ast.Call(func=ast.Attribute(attr=method), args=[_, index, value], keywords=[]) if method in _COPIES:
            yield from () if _is_constant(value) else _only_name(index)
        case ast.Call(func=ast.Attribute(attr="set", value=ast.Subscript(slice=key) as place), args=[value, *_]):
            if isinstance(place.value, ast.Attribute) and place.value.attr == "at" and not _is_constant(value):
                yield from _only_name(key)


def _only_name(key: ast.expr) -> Iterator[str]:
    """The variable that a key has beside slices and constants, if it is the only one."""
    parts = key.elts if isinstance(key, ast.Tuple) else [key]
    chosen = [part for part in parts if not isinstance(part, ast.Slice | ast.Constant)]
    if len(chosen) != 1:
        return
    match chosen[0]:
        case ast.Name(id=name):
            yield name
        case ast.Call(func=ast.Attribute(attr=method, value=ast.Name(id=name))) if method in _CONVERSIONS:
            yield name


def _is_constant(value: ast.expr) -> bool:
    operand = value.operand if isinstance(value, ast.UnaryOp) else value
    return isinstance(operand, ast.Constant)
