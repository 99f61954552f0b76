"""Whether forward and backward agree on what a saved value is, by the name that both have for it."""

import ast

from gradcli.diagnosis.slips.slip import Slip
from gradcli.edits.draft import Draft


def is_agreed(slip: Slip, draft: Draft) -> bool:
    """Whether a slip takes a name out of what is saved that backward reads it by, for one that backward has not.

    As in `cache = z` of forward and `z = cache` of backward. If backward has both names, they may have been exchanged.
    """
    if not (isinstance(slip.old, ast.Name) and isinstance(slip.new, ast.Name)) or slip.more:
        return False
    read = _names_read(draft.backward.node)
    return slip.old.id in read and slip.new.id not in read


def _names_read(backward: ast.FunctionDef | ast.Lambda) -> set[str]:
    """The names that backward gives to what it is passed, without a calculation: `x, y = ctx.saved_tensors`."""
    found: set[str] = {argument.arg for argument in backward.args.args}
    for node in ast.walk(backward):
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Name | ast.Attribute | ast.Subscript):
            for target in node.targets:
                found |= {each.id for each in ast.walk(target) if isinstance(each, ast.Name)}
    return found
