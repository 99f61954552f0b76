"""A value that forward computes from an argument and never uses: the mistake of a wrong gradient may be there."""

import ast
from dataclasses import replace

from gradcli.edits.source import written
from gradcli.findings import FindingKind
from gradcli.results import Finding, Location
from gradcli.targets import TargetInfo

_OPERATIONS = (ast.BinOp, ast.UnaryOp, ast.IfExp)


def at_unused_value(finding: Finding, info: TargetInfo) -> Finding:
    """The finding at the line of forward that computes an unused value, where there is one, and without a correction.

    backward may be right for what forward was meant to compute; it is forward that has to be looked at first.
    """
    forward = written(info.forward)
    if forward is None or finding.kind is FindingKind.MISSING_GRADIENT:
        return finding
    node = _unused_in(forward.node)
    if node is None:
        return finding
    said = (
        f"; forward computes `{ast.unparse(node.targets[0])}` (line {node.lineno}) and never uses it: if its result is "
        "meant to depend on it, the mistake is there"
    )
    place = Location(file=forward.file.path, line=node.lineno)
    return replace(finding, message=finding.message + said, location=place, corrected=None)


def _unused_in(forward: ast.FunctionDef | ast.Lambda) -> ast.Assign | None:
    """The first assignment of an operation on an argument to a name that is not read anywhere in forward."""
    names = [n for n in ast.walk(forward) if isinstance(n, ast.Name)]
    read = {n.id for n in names if not isinstance(n.ctx, ast.Store)}
    arguments = {a.arg for a in (*forward.args.posonlyargs, *forward.args.args, *forward.args.kwonlyargs)}
    if "locals" in read:
        return None
    for node in ast.walk(forward):
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            name = node.targets[0].id
            if name not in read and not name.startswith("_") and _operands(node.value) & arguments:
                return node
    return None


def _operands(node: ast.expr) -> set[str]:
    """The names that are operands of an expression themselves, not their attributes, entries or functions of them."""
    if isinstance(node, ast.Name):
        return {node.id}
    if not isinstance(node, _OPERATIONS):
        return set()
    parts = [node.body, node.orelse] if isinstance(node, ast.IfExp) else ast.iter_child_nodes(node)
    return set().union(*(_operands(part) for part in parts if isinstance(part, ast.expr)))
