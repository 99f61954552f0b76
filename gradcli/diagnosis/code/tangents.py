"""The line of a rule of forward mode: where the tangent of an output was last computed from that of an input."""

import ast
from collections.abc import Collection, Iterator

from gradcli.backends.base import Subject
from gradcli.diagnosis.code.ancestry import Ancestry
from gradcli.edits.flow import carrying, values_in


def line_of_tangent(
    subject: Subject,
    tree: ast.FunctionDef,
    returned: ast.expr | None,
    executed: set[int],
    *,
    name: str | None,
    outputs: Collection[int],
) -> int | None:
    """The line of the last statement that calculated the tangent which a rule has `returned`, from that of an input.

    A term of a sum that does not depend on the tangent of the input `name` does not count. Where the tangents of
    several `outputs` are wrong, it is the last statement from which all of them are calculated. None where the rule
    does not return a pair of outputs and tangents.
    """
    if not isinstance(returned, ast.Tuple) or len(returned.elts) != 2:
        return None
    own = _carrying_from(subject, tree, name)
    ancestry = Ancestry(tree, executed - {line for node in _of_others(tree, own) for line in _lines(node)})
    tangent = returned.elts[1]
    parts = tangent.elts if isinstance(tangent, ast.Tuple | ast.List) else [tangent]
    wrong = [part for n, part in enumerate(parts) if values_in(part) & own and (n in outputs or not outputs)]
    if len(wrong) > 1:
        shared = set.intersection(*(ancestry.behind_whole([part]) for part in wrong))
        return max((node.lineno for node, bound in shared if bound in own), default=tangent.lineno)
    value = _term(wrong[0] if wrong else tangent, own)
    line = value.lineno
    while (made := ancestry.source_of(value)) is not None and made.lineno < line:
        line, held = made.lineno, getattr(made, "value", None)
        term = None if held is None else _term(held, own)
        if term is None or (term is held and not isinstance(made, ast.AugAssign)):
            break
        value = term
    return line


def _carrying_from(subject: Subject, tree: ast.FunctionDef, name: str | None) -> set[str]:
    """The names that depend on the tangent of an input; on any tangent, where the rule does not unpack them."""
    given = [*tree.args.posonlyargs, *tree.args.args]
    if not given:
        return set()
    data = [a.name for a, p in zip(subject.arguments, subject.info.parameters, strict=False) if not p.static]
    tangents = given[-1].arg
    for node in ast.walk(tree):
        target = node.targets[0] if isinstance(node, ast.Assign) else None
        is_unpacked = isinstance(node, ast.Assign) and isinstance(node.value, ast.Name) and node.value.id == tangents
        if is_unpacked and isinstance(target, ast.Tuple | ast.List) and len(target.elts) == len(data) and name in data:
            part = target.elts[data.index(name)]
            return carrying(tree, {part.id}) if isinstance(part, ast.Name) else set()
    return carrying(tree, {tangents})


def _of_others(tree: ast.FunctionDef, own: set[str]) -> Iterator[ast.AugAssign]:
    """The statements that add to a value, or take from it, what does not depend on the tangent."""
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.AugAssign)
            and isinstance(node.op, ast.Add | ast.Sub)
            and not values_in(node.value) & own
        ):
            yield node


def _lines(statement: ast.stmt) -> range:
    return range(statement.lineno, (statement.end_lineno or statement.lineno) + 1)


def _term(value: ast.expr, own: set[str]) -> ast.expr:
    """The one term of a sum that depends on the tangent; the whole expression where several do."""
    while isinstance(value, ast.BinOp) and isinstance(value.op, ast.Add | ast.Sub):
        sides = [side for side in (value.left, value.right) if values_in(side) & own]
        if len(sides) != 1:
            break
        value = sides[0]
    return value
