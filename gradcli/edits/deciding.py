"""Expressions that only choose a branch: a gradient depends on them through a comparison or condition alone."""

import ast

from gradcli.edits.render import Tree

Definition = ast.FunctionDef | ast.Lambda

_SIGNS = ("gt", "ge", "lt", "le", "eq", "ne")
_WORDS = ("greater", "greater_equal", "less", "less_equal", "equal", "not_equal", "isclose", "allclose")
_COMPARED = frozenset((*_SIGNS, *_WORDS, "any", "all", "isnan", "isinf", "isfinite", "signbit"))
"""Functions and methods whose results are truth values."""
_FOLLOWED = 4
"""Assignments to names through which a value is followed."""


def decides(node: ast.AST, definition: Definition, tree: Tree) -> bool:
    """Whether the value of an expression, also after assignment to a name, is used only in comparisons and conditions.

    An edit of such a value can make the condition always true or always false: that removes one branch, and corrects
    neither.
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
    """Whether `above` uses the node below it as a truth value, or to select between values."""
    if isinstance(above, ast.Compare):
        return True
    if isinstance(above, ast.If | ast.IfExp | ast.While):
        return above.test is node
    if isinstance(above, ast.Call):
        called = above.func.attr if isinstance(above.func, ast.Attribute) else getattr(above.func, "id", "")
        return called in _COMPARED
    return False


def _only_decides(name: str, definition: Definition, tree: Tree, names: int) -> bool:
    """Whether a name is used only in comparisons and conditions."""
    if names == 0:
        return False
    uses = [n for n in ast.walk(definition) if isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Load)]
    return bool(uses) and all(_decides(use, definition, tree, names - 1) for use in uses)
