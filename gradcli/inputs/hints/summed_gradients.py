"""Arguments whose gradient is a product with a sum, so that a single number or a vector is meant.

`sign(alpha) * (g * above).sum()` has the shape of alpha, whatever that is: a gradient of the right shape does not show
that the Function was written for a matrix, although forward takes one by broadcasting. A function that returns its
gradients with its value shows it by their names, as in `grad_b = np.sum(s)`.
"""

import ast
import re
from collections.abc import Iterator, Sequence
from enum import Enum

from gradcli.sources import bindings, nodes_of

_SUMS = ("sum", "mean")
_MODULES = ("np", "numpy", "jnp")
_NOT_COTANGENTS = frozenset(("ctx", "res", "residual", "residuals", "saved", "self", "cls"))
_RESHAPED = frozenset(("reshape", "view", "view_as", "reshape_as", "unsqueeze", "to", "type_as", "astype"))
"""What may follow a sum over all entries: the gradient is a single number in any case."""


class Sum(Enum):
    """Over what a gradient is summed: all entries, or some axes, which are then gone."""

    ALL = "all"
    AXES = "axes"


def sums_of(backward: ast.Module | None, parameters: Sequence[str]) -> tuple[Sum | None, ...]:
    """For each of forward's arguments, the sum of the cotangent that is a factor of its gradient in some return.

    Args:
        backward: its syntax tree, or None without source.
        parameters: the names of forward's arguments, which a vjp may take beside the cotangent.
    """
    function = next((n for n in nodes_of(backward) if isinstance(n, ast.FunctionDef)), None) if backward else None
    found: list[Sum | None] = [None] * len(parameters)
    if function is None:
        return tuple(found)
    given = [each.arg for each in (*function.args.posonlyargs, *function.args.args)]
    cotangents = set(given) - set(parameters) - _NOT_COTANGENTS
    values: dict[str, ast.expr] = {}
    for node in nodes_of(function):
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            values[node.targets[0].id] = node.value
    read = {name: _names_in(value) for name, value in values.items()}
    for _ in values:  # names that depend on the cotangent through other names
        cotangents |= {name for name, mentioned in read.items() if mentioned & cotangents}
    for node in nodes_of(function):
        for returned in returned_values(function, node.value) if isinstance(node, ast.Return) and node.value else ():
            if isinstance(returned, ast.Tuple | ast.List) and len(returned.elts) <= len(found):
                for position, each in enumerate(returned.elts):
                    found[position] = found[position] or _sum_in(each, values, cotangents, len(values) + 1)
    return tuple(found)


def returned_values(tree: ast.AST, value: ast.expr) -> list[ast.expr]:
    """What a return statement gives: `value` itself, or the tuples and lists assigned to the name that it is."""
    if not isinstance(value, ast.Name):
        return [value]
    return [
        node.value
        for node in nodes_of(tree)
        if isinstance(node, ast.Assign)
        and isinstance(node.value, ast.Tuple | ast.List)
        and any(isinstance(target, ast.Name) and target.id == value.id for target in node.targets)
    ]


def _sum_in(value: ast.expr, values: dict[str, ast.expr], cotangents: set[str], deepest: int) -> Sum | None:
    """The sum of a cotangent among the factors of a product, which may be reshaped if it is over all entries."""
    inner = value
    while isinstance(inner, ast.Call) and isinstance(inner.func, ast.Attribute) and inner.func.attr in _RESHAPED:
        inner = inner.func.value
    found = _sum_among_factors(inner, values, cotangents, deepest)
    return found if inner is value or found is Sum.ALL else None


def _sum_among_factors(value: ast.expr, values: dict[str, ast.expr], cotangents: set[str], deepest: int) -> Sum | None:
    if isinstance(value, ast.BinOp) and isinstance(value.op, ast.Mult | ast.Div):
        left = _sum_in(value.left, values, cotangents, deepest)
        return left or (_sum_in(value.right, values, cotangents, deepest) if isinstance(value.op, ast.Mult) else None)
    if isinstance(value, ast.UnaryOp):
        return _sum_in(value.operand, values, cotangents, deepest)
    if isinstance(value, ast.Name) and deepest:
        own = values.get(value.id)
        return None if own is None else _sum_in(own, values, cotangents, deepest - 1)
    if not isinstance(value, ast.Call) or not isinstance(value.func, ast.Attribute) or value.func.attr != "sum":
        return None
    if not _mentions(value, cotangents) or any(keyword.arg in ("keepdim", "keepdims") for keyword in value.keywords):
        return None
    of_module = isinstance(value.func.value, ast.Name) and not _mentions(value.func.value, cotangents)
    axes = len(value.args) - of_module + len(value.keywords)
    return Sum.AXES if axes else Sum.ALL


def _mentions(value: ast.expr, names: set[str]) -> bool:
    return not names.isdisjoint(_names_in(value))


def _names_in(value: ast.expr) -> set[str]:
    return {node.id for node in ast.walk(value) if isinstance(node, ast.Name)}


def sums_of_named(function: ast.Module | None, parameters: Sequence[str]) -> tuple[Sum | None, ...]:
    """For each argument, whether what its gradient is assigned is a sum over all entries, or a multiple of one.

    Args:
        function: the syntax tree, or None without source.
        parameters: the names of the arguments, whose gradients are called `db`, `grad_b` or `b_grad`, or are stored
            under such a key of a dict.
    """
    assigned = [] if function is None else list(_assigned(function))
    found: list[Sum | None] = []
    for parameter in parameters:
        bare = re.escape(parameter)
        name = re.compile(rf"(?:d\w{{0,2}}_?d?_?|grad_?|g_?){bare}|{bare}_?grad")
        values = [value for key, value, is_key in assigned if name.fullmatch(key) or (is_key and key == parameter)]
        found.append(Sum.ALL if values and all(map(_is_sum_of_all, values)) else None)
    return tuple(found)


def _assigned(tree: ast.AST) -> Iterator[tuple[str, ast.expr, bool]]:
    """What is assigned to names and to keys of dicts; of a key, True comes last."""
    for node in nodes_of(tree):
        if isinstance(node, ast.Assign):
            for target, value in bindings(node):
                if isinstance(target, ast.Name):
                    yield target.id, value, False
                elif isinstance(target, ast.Subscript) and isinstance(target.slice, ast.Constant):
                    yield str(target.slice.value), value, True
        elif isinstance(node, ast.Dict):
            for key, value in zip(node.keys, node.values, strict=True):
                if isinstance(key, ast.Constant) and not isinstance(value, ast.Name):
                    yield str(key.value), value, True


def _is_sum_of_all(value: ast.expr) -> bool:
    """Whether a value is a sum or mean without an axis, times numbers."""
    if isinstance(value, ast.BinOp) and isinstance(value.op, ast.Mult | ast.Div):
        return _is_sum_of_all(value.left) or (isinstance(value.op, ast.Mult) and _is_sum_of_all(value.right))
    if isinstance(value, ast.UnaryOp):
        return _is_sum_of_all(value.operand)
    if not isinstance(value, ast.Call) or not isinstance(value.func, ast.Attribute) or value.func.attr not in _SUMS:
        return False
    of_module = isinstance(value.func.value, ast.Name) and value.func.value.id in _MODULES
    return len(value.args) == of_module and not value.keywords
