"""Which expressions of backward a returned gradient is computed from, and which carry grad_output."""

import ast
from collections.abc import Iterable, Sequence

from gradcli.edits.statements import returned_values

Definition = ast.FunctionDef | ast.Lambda
_INDEXING = ("scatter", "gather", "index_")
"""What is in the names of functions that take an index after an axis."""


def names_in(node: ast.AST) -> set[str]:
    """The names that are read anywhere in a node."""
    return {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}


def _assignments(definition: Definition) -> list[tuple[ast.stmt, set[str]]]:
    """Statements that assign to names or write into the tensors of names, each with these names."""
    found: list[tuple[ast.stmt, set[str]]] = []
    for node in ast.walk(definition):
        if isinstance(node, ast.Assign):
            found.append((node, set().union(*(_written(t) for t in node.targets))))
        elif isinstance(node, ast.AugAssign | ast.AnnAssign | ast.For):
            found.append((node, _written(node.target)))
        elif isinstance(node, ast.Expr):
            found.append((node, names_in(node)))
    return found


def _written(target: ast.expr) -> set[str]:
    """The names that an assignment binds, or into whose tensors it writes: `x` in `x[i]`, where `i` is only read."""
    if isinstance(target, ast.Tuple | ast.List):
        return set().union(*(_written(each) for each in target.elts))
    while isinstance(target, ast.Subscript | ast.Starred):
        target = target.value
    return names_in(target)


_NOT_VALUES = ("shape", "dtype", "device", "ndim", "size", "numel", "new_zeros", "new_ones", "new_full", "new_empty")
"""Attributes of a tensor that do not depend on its values."""


def values_in(node: ast.AST) -> set[str]:
    """The names whose values a node depends on: not those of which it only takes the shape or the dtype."""
    if isinstance(node, ast.Name):
        return {node.id}
    if isinstance(node, ast.Attribute) and node.attr in _NOT_VALUES:
        return set()
    return set().union(*(values_in(part) for part in ast.iter_child_nodes(node)))


def carrying(definition: Definition, cotangents: Iterable[str]) -> set[str]:
    """The names whose values depend on the gradients of the outputs."""
    found = set(cotangents)
    assignments = _assignments(definition)
    grown = True
    while grown:
        grown = False
        for statement, bound in assignments:
            value = getattr(statement, "value", None)
            if value is not None and not bound <= found and values_in(value) & found:
                found |= bound
                grown = True
    return found


def saved_alone(definition: Definition) -> set[ast.AST]:
    """The nodes from which a function computes what it saves for backward, but not its outputs.

    What is saved goes to ctx, or is the second of two values that are returned, as in JAX.
    """
    if isinstance(definition, ast.Lambda) or not definition.args.args:
        return set()
    saving: list[ast.AST] = [n for n in ast.walk(definition) if _saves(n, definition.args.args[0].arg)]
    assignments = [(s, bound) for s, bound in _assignments(definition) if s not in saving]
    returned = [value for _, value in returned_values(definition)]
    pairs = [value for value in returned if isinstance(value, ast.Tuple) and len(value.elts) == 2]
    if not saving and len(pairs) == len(returned):
        returned, saving = [pair.elts[0] for pair in pairs], [pair.elts[1] for pair in pairs]
    for_outputs = _slice(assignments, set().union(*(names_in(value) for value in returned)))
    for_saving = _slice(assignments, set().union(*(names_in(n) for n in saving))) - for_outputs
    return set().union(*(ast.walk(n) for n in (*saving, *for_saving)))


def _saves(node: ast.AST, context: str) -> bool:
    """Whether a statement saves tensors for backward, or sets attributes of ctx."""
    if isinstance(node, ast.Assign):
        parts = [n for target in node.targets for n in ast.walk(target)]
        return any(isinstance(n, ast.Attribute) and _is_name(n.value, context) for n in parts)
    call = node.value if isinstance(node, ast.Expr) else None
    method = call.func if isinstance(call, ast.Call) else None
    return isinstance(method, ast.Attribute) and _is_name(method.value, context) and method.attr.startswith("save_for")


def _is_name(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def _read(statement: ast.stmt) -> set[str]:
    """The names that a statement reads to compute what it assigns."""
    if isinstance(statement, ast.For):
        return names_in(statement.iter)
    if not isinstance(statement, ast.Assign):
        return names_in(statement)
    return names_in(statement.value).union(*(names_in(target) - _written(target) for target in statement.targets))


def _slice(assignments: Iterable[tuple[ast.stmt, set[str]]], wanted: set[str]) -> set[ast.stmt]:
    """The statements that the values of these names are computed by."""
    wanted = set(wanted)
    used: set[ast.stmt] = set()
    grown = True
    while grown:
        grown = False
        for statement, bound in assignments:
            if statement not in used and bound & wanted:
                used.add(statement)
                wanted |= _read(statement)
                grown = True
    return used


def relevant(definition: Definition, numbers: Sequence[int], count: int) -> set[ast.AST] | None:
    """The nodes that the values returned in these places, of `count` in all, are computed from; None where unknown."""
    if isinstance(definition, ast.Lambda):
        return None
    wanted: set[str] = set()
    kept: set[ast.AST] = set()
    for holder, value in returned_values(definition):
        if not isinstance(value, ast.Tuple) or len(value.elts) != count or max(numbers, default=0) >= count:
            return None
        for number in numbers:
            wanted |= names_in(value.elts[number])
            kept |= set(ast.walk(value.elts[number]))
        del holder
    kept = kept.union(*(ast.walk(statement) for statement in _slice(_assignments(definition), wanted)))
    conditions = [n.test for n in ast.walk(definition) if isinstance(n, ast.If | ast.IfExp | ast.While)]
    return kept.union(*(ast.walk(test) for test in conditions))


def differ_in_numbers(one: ast.AST, other: ast.AST) -> bool:
    """Whether two expressions are calls of one function that differ only in the numbers that they are given."""
    if not isinstance(one, ast.Call) or not isinstance(other, ast.Call):
        return False
    named = [[ast.dump(n) for n in ast.walk(each) if isinstance(n, ast.Name | ast.Attribute)] for each in (one, other)]
    return named[0] == named[1] and ast.dump(one.func) == ast.dump(other.func)


def only_indexes(node: ast.AST, definition: ast.AST) -> bool:
    """Whether an expression is part of an assignment to a name that is read as an index alone, also by a call."""
    made = [n for n in ast.walk(definition) if isinstance(n, ast.Assign) and any(each is node for each in ast.walk(n))]
    targets = [n.id for each in made for n in each.targets if isinstance(n, ast.Name)]
    if not targets:
        return False
    indices = [n.slice for n in ast.walk(definition) if isinstance(n, ast.Subscript)]
    for call in ast.walk(definition):
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute):
            takes = any(word in call.func.attr for word in _INDEXING)
            pairs = zip(call.args, call.args[1:], strict=False)
            indices += [each for axis, each in pairs if takes and isinstance(axis, ast.Constant | ast.UnaryOp)][:1]
    inside = {id(n) for each in indices for n in ast.walk(each)}
    read = [n for n in ast.walk(definition) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)]
    own = [n for n in read if n.id in targets]
    return bool(own) and all(id(n) in inside for n in own)
