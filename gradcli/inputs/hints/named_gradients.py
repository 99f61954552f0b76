"""Single numbers recognised by their gradients in a function that returns them with its value: `grad_b = np.sum(s)`."""

import ast
import re
from collections.abc import Iterator, Sequence

from gradcli.inputs.hints.summed_cotangents import Sum
from gradcli.sources import bindings, nodes_of

_SUMS = ("sum", "mean")
_MODULES = ("np", "numpy", "jnp")


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
