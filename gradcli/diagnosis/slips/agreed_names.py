"""Whether forward and backward agree on what a saved value is, by the name that both have for it."""

import ast
from collections.abc import Iterator
from dataclasses import replace

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


def uses_of(slip: Slip, draft: Draft, place: int) -> Iterator[Slip]:
    """The same replacement of an agreed value where backward uses it; for the gradient of the input number `place`."""
    if not isinstance(slip.old, ast.Name) or slip.more:
        return
    for node in ast.walk(draft.backward.node):
        if isinstance(node, ast.Name) and node.id == slip.old.id and isinstance(node.ctx, ast.Load):
            yield replace(slip, number=None, old=node, fixes=frozenset({place}))


def _names_read(backward: ast.FunctionDef | ast.Lambda) -> set[str]:
    """The names that backward gives to what it is passed, without a calculation: `x, y = ctx.saved_tensors`.

    A second name for one of these, as in `z = y`, is none of them: that nothing is calculated may be the mistake.
    """
    passed = {argument.arg for argument in backward.args.args}
    found = set(passed)
    for node in ast.walk(backward):
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Name | ast.Attribute | ast.Subscript):
            if isinstance(node.value, ast.Name) and node.value.id not in passed and not _unpacks(node):
                continue
            for target in node.targets:
                found |= {each.id for each in ast.walk(target) if isinstance(each, ast.Name)}
    return found


def _unpacks(node: ast.Assign) -> bool:
    return any(isinstance(target, ast.Tuple | ast.List) for target in node.targets)
