"""Expressions that only decide: their values reach a gradient through a comparison or a branch, and as no number."""

import ast

from gradcli.edits.render import Tree

Definition = ast.FunctionDef | ast.Lambda

_SIGNS = ("gt", "ge", "lt", "le", "eq", "ne")
_WORDS = ("greater", "greater_equal", "less", "less_equal", "equal", "not_equal", "isclose", "allclose")
_COMPARED = frozenset((*_SIGNS, *_WORDS, "any", "all", "isnan", "isinf", "isfinite", "signbit"))
"""Functions and methods whose results are truth values."""
_FOLLOWED = 4
"""Names that a value is followed through."""


def decides(node: ast.AST, definition: Definition, tree: Tree) -> bool:
    """Whether the value of an expression is used in comparisons and conditions alone, if by way of names.

    A function put round such a value can make the condition true or false throughout, which takes one of two branches
    away and fixes neither.
    """
    return _decides(node, definition, tree, _FOLLOWED)


def _decides(node: ast.AST, definition: Definition, tree: Tree, names: int) -> bool:
    above = tree.parent(node)
    while above is not None and above is not definition:
        if _is_condition(above, node):
            return True
        if isinstance(above, ast.Assign):
            targets = [t for t in above.targets if isinstance(t, ast.Name)]
            return len(targets) == len(above.targets) == 1 and _only_decides(targets[0].id, definition, tree, names)
        if isinstance(above, ast.stmt):
            return False
        node, above = above, tree.parent(above)
    return False


def _is_condition(above: ast.AST, node: ast.AST) -> bool:
    """Whether `above` makes a truth value, or a choice, of the node right below it."""
    if isinstance(above, ast.Compare):
        return True
    if isinstance(above, ast.If | ast.IfExp | ast.While):
        return above.test is node
    if isinstance(above, ast.Call):
        called = above.func.attr if isinstance(above.func, ast.Attribute) else getattr(above.func, "id", "")
        return called in _COMPARED
    return False


def _only_decides(name: str, definition: Definition, tree: Tree, names: int) -> bool:
    """Whether every use of a name is one that only decides."""
    if names == 0:
        return False
    uses = [n for n in ast.walk(definition) if isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Load)]
    return bool(uses) and all(_decides(use, definition, tree, names - 1) for use in uses)
