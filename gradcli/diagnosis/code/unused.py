"""A value that forward computes and backward alone uses: the mistake of a wrong gradient may be there."""

import ast
from dataclasses import replace

from gradcli.edits.source import written
from gradcli.findings import FindingKind
from gradcli.results import Finding, Location
from gradcli.targets import TargetInfo

_OPERATIONS = (ast.BinOp, ast.UnaryOp, ast.IfExp)


def at_unused_value(finding: Finding, info: TargetInfo) -> Finding:
    """The finding at the line of forward that computes a value that backward alone uses, and without a correction.

    backward is then probably right for what forward was meant to compute. A value that neither uses says nothing.
    """
    forward, backward = written(info.forward), written(info.backward)
    if forward is None or backward is None or finding.kind is FindingKind.MISSING_GRADIENT:
        return finding
    node = _unused_in(forward.node)
    if node is None or not _occurs(node, backward.node):
        return finding
    said = (
        f"; forward computes `{ast.unparse(node.targets[0])}` (line {node.lineno}) and never uses it: if its result is "
        "meant to depend on it, the mistake is there"
    )
    place = Location(file=forward.file.path, line=node.lineno)
    return replace(finding, message=finding.message + said, location=place, corrected=None)


def _occurs(assigned: ast.Assign, backward: ast.FunctionDef | ast.Lambda) -> bool:
    """Whether backward computes the same value, or one of the same name."""
    saved = f"{backward.args.args[0].arg}." if backward.args.args else " "
    parts = {ast.unparse(n).replace(saved, "") for n in ast.walk(backward) if isinstance(n, ast.expr)}
    return not parts.isdisjoint({ast.unparse(assigned.targets[0]), ast.unparse(assigned.value)})


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
