"""The arguments that forward uses alike: it puts the same ones together several times, each time in another order."""

import ast
from collections import Counter
from collections.abc import Collection, Iterable

from gradcli.sources import nodes_of

_JOINS = frozenset(("cat", "concat", "concatenate", "stack", "hstack", "vstack", "block"))


def used_alike(trees: Iterable[ast.Module | None], names: Collection[str]) -> tuple[frozenset[str], ...]:
    """The sets of arguments of which forward makes several different arrays by putting all of them together.

    As the parts of a quaternion in `cat([r, -i, -j, -k])` and `cat([i, r, -k, j])`: they have one shape. What is put
    together once, as the features of two inputs, may have different ones.
    """
    lists = {
        tuple(ast.unparse(each) for each in call.args[0].elts): frozenset(filter(None, map(_named, call.args[0].elts)))
        for tree in filter(None, trees)
        for call in nodes_of(tree)
        if isinstance(call, ast.Call) and call.args and isinstance(call.args[0], ast.List | ast.Tuple)
        if _called(call.func) in _JOINS
    }
    counts = Counter(each for order, each in lists.items() if len(each) == len(order) and each <= set(names))
    return tuple(each for each, count in counts.items() if count > 1 and len(each) > 1)


def _named(node: ast.expr) -> str | None:
    if isinstance(node, ast.UnaryOp):
        return _named(node.operand)
    return node.id if isinstance(node, ast.Name) else None


def _called(function: ast.expr) -> str:
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
