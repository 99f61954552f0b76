"""The arguments that forward writes into, such as running statistics, codebooks and queues."""

import ast
from collections.abc import Collection

_NO_WRITES = frozenset(("requires_grad_", "share_memory_", "pin_memory_"))
"""Methods with an underscore at the end that leave the values as they are."""


def written_into(forward: ast.Module | None, names: Collection[str]) -> frozenset[str]:
    """The arguments whose values forward changes in place, before it gives their names to something else.

    Args:
        forward: its syntax tree, or None without source.
        names: of its arguments.
    """
    if forward is None:
        return frozenset()
    bound = [node for node in ast.walk(forward) if isinstance(node, ast.Assign | ast.For | ast.With | ast.NamedExpr)]
    rebound: dict[str, int] = {}
    for node in bound:
        for each in ast.walk(node):
            if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store):
                rebound[each.id] = min(node.lineno, rebound.get(each.id, node.lineno))
    return frozenset(
        place.id
        for node in ast.walk(forward)
        for place in filter(None, map(_root, _written_by(node)))
        if place.id in names and place.lineno <= rebound.get(place.id, place.lineno)
    )


def _written_by(node: ast.AST) -> list[ast.expr]:
    """What one statement or call writes into."""
    places: list[ast.expr] = []
    if isinstance(node, ast.AugAssign):
        places = [node.target]
    elif isinstance(node, ast.Assign):
        places = [target for target in node.targets if isinstance(target, ast.Subscript)]
    elif isinstance(node, ast.Call):
        called = node.func
        if isinstance(called, ast.Attribute) and called.attr.endswith("_") and called.attr not in _NO_WRITES:
            places = [called.value]
        places += [keyword.value for keyword in node.keywords if keyword.arg == "out"]
    return places


def _root(place: ast.expr) -> ast.Name | None:
    """The name of the array that a view such as `mean.data`, `queue[:n]` or `m.view(-1)` is of."""
    while not isinstance(place, ast.Name):
        if isinstance(place, ast.Attribute | ast.Subscript):
            place = place.value
        elif isinstance(place, ast.Call) and isinstance(place.func, ast.Attribute):
            place = place.func.value
        else:
            return None
    return place
