"""Where an expression is used in backward: in what controls a loop, or inside a product."""

import ast

from gradcli.edits.draft import Draft
from gradcli.edits.flow import names_in


def steers(node: ast.AST, draft: Draft) -> bool:
    """Whether an expression may decide how often a loop runs: edits of it may not end."""
    above: ast.AST | None = node
    while above is not None and above is not draft.edited.node:
        over = draft.tree.parent(above)
        if isinstance(over, ast.While):
            return above is over.test or bool(names_in(over.test) & names_in(above))
        above = over
    return False


def is_scaled_above(draft: Draft, node: ast.expr) -> bool:
    """Whether a factor at this expression acts as a factor on the expression around it."""
    parent = draft.tree.parent(node)
    if isinstance(parent, ast.UnaryOp):
        return True
    if not isinstance(parent, ast.BinOp):
        return False
    return isinstance(parent.op, ast.Mult) or (isinstance(parent.op, ast.Div) and parent.left is node)


def applies_another(draft: Draft) -> bool:
    """Whether the edited function applies a Function, which has a backward of its own."""
    calls = [node.func for node in ast.walk(draft.edited.node) if isinstance(node, ast.Call)]
    return any(isinstance(each, ast.Attribute) and each.attr == "apply" for each in calls)
