"""Where an expression stands in backward: in what controls a loop, after a loop, or inside a product."""

import ast
import itertools
from collections.abc import Sequence

from gradcli.edits.draft import Draft
from gradcli.edits.flow import names_in
from gradcli.edits.render import Change


def steers(node: ast.AST, draft: Draft) -> bool:
    """Whether an expression may decide how often a loop runs: edits of it may not end."""
    above: ast.AST | None = node
    while above is not None and above is not draft.edited.node:
        over = draft.tree.parent(above)
        if isinstance(over, ast.While):
            return above is over.test or bool(names_in(over.test) & names_in(above))
        above = over
    return False


def left_over(node: ast.AST, draft: Draft) -> frozenset[str]:
    """The names that are bound only as the variables of `for` loops that are over, or have not begun, at a node.

    Their value there is that of the last pass: an edit that fits with it fits by chance.
    """
    parts = [ast.walk(part.node) for part in draft.parts if draft.tree.is_inside(node, part.node)]
    walked = list(itertools.chain.from_iterable(parts))
    loops = [each for each in walked if isinstance(each, ast.For)]
    if not loops:
        return frozenset()
    targets = [each.target for each in walked if isinstance(each, ast.For | ast.comprehension)]
    counted = {each for target in targets for each in ast.walk(target)}
    kept = {n.id for n in walked if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store) and n not in counted}
    kept |= {each.arg for each in walked if isinstance(each, ast.arg)}
    for loop in loops:
        if any(draft.tree.is_inside(node, each) for each in loop.body):
            kept |= names_in(loop.target)
    return frozenset().union(*(names_in(loop.target) for loop in loops)) - kept


def brings_left_over(changes: Sequence[Change], draft: Draft) -> bool:
    """Whether new syntax reads such a name that the syntax it replaces does not read."""
    for change in changes:
        new = change.new if isinstance(change.new, tuple) else (change.new,)
        brought = set().union(*map(names_in, new)) - names_in(change.old)
        if brought & left_over(change.old, draft):
            return True
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
