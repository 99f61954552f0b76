"""Whether forward and backward agree on what a saved value is, by the name that both have for it."""

import ast

from gradcli.diagnosis.slips.slip import Slip
from gradcli.edits.draft import Draft


def is_agreed(slip: Slip, draft: Draft) -> bool:
    """Whether a slip changes a saved value that backward reads by the name that forward has for it.

    As in `cache = z` of forward and `z = cache` of backward. If backward has another name that is saved in its place,
    the two may have been exchanged.
    """
    if not isinstance(slip.old, ast.Name) or slip.more:
        return False
    read = _names_read(draft.backward.node)
    other = slip.new.id if isinstance(slip.new, ast.Name) else None
    return slip.old.id in read and other not in read


def _names_read(backward: ast.FunctionDef | ast.Lambda) -> set[str]:
    """The names that backward gives to what it is passed, without a calculation: `x, y = ctx.saved_tensors`."""
    found: set[str] = {argument.arg for argument in backward.args.args}
    for node in ast.walk(backward):
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Name | ast.Attribute | ast.Subscript):
            for target in node.targets:
                found |= {each.id for each in ast.walk(target) if isinstance(each, ast.Name)}
    return found
