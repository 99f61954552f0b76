"""What forward and its helpers demand of arguments: `assert b.shape == (B, N - 1)`, `assert alpha > 0`."""

import ast
import re
from collections.abc import Collection, Iterable, Iterator, Sequence

from gradcli.inputs.hints.documented_shapes import Axis
from gradcli.sources import nodes_of, tree_of

Axes = tuple[Axis, ...]


def asserted_shapes(sources: Sequence[str], names: Collection[str]) -> tuple[dict[str, Axes], dict[str, Axes]]:
    """The axes of arguments whose whole shape is demanded, and of those whose sizes such a demand names.

    Only what is demanded on every call counts: statements of a function's body itself.

    Args:
        sources: of forward and its helpers, with forward's names for its arguments.
        names: the arguments.
    """
    demanded: dict[str, Axes] = {}
    named: dict[str, Axes] = {}
    trees = [tree for tree in map(tree_of, sources) if tree is not None]
    functions = [node for tree in trees for node in tree.body if isinstance(node, ast.FunctionDef)]
    for number, function in enumerate(functions):
        stored = {node.id for node in nodes_of(function) if isinstance(node, ast.Name) and _is_stored(node)}
        own = frozenset(names) - stored
        found = dict(pair for each in function.body for pair in _demanded(each, own))
        used = {word for axes in found.values() for axis in axes for word in re.findall(r"[A-Za-z_]\w*", str(axis))}
        unpacked = dict(pair for each in function.body for pair in _unpacked(each, own))
        for shapes, kept in ((found, demanded), (unpacked, named)):
            for name, axes in shapes.items():
                if shapes is found or used.intersection(map(str, axes)):
                    kept.setdefault(name, tuple(_apart(axis, number, names) for axis in axes))
    return demanded, named


def compared_with_numbers(trees: Iterable[ast.Module | None]) -> frozenset[str]:
    """The variables that a branch or an assertion compares with a number: only one entry has a truth value."""
    branches = (ast.Assert, ast.If, ast.IfExp, ast.While)
    tests = [n.test for tree in trees if tree is not None for n in nodes_of(tree) if isinstance(n, branches)]
    parts = [part for test in tests for part in (test.values if isinstance(test, ast.BoolOp) else [test])]
    return frozenset(name for part in parts for name, _, _ in _comparisons(part))


def demanded_positive(trees: Iterable[ast.Module | None]) -> frozenset[str]:
    """The variables that forward requires to be positive, in all entries."""
    found: set[str] = set()
    above: tuple[type[ast.cmpop], ...]
    for node in (each for tree in trees if tree is not None for each in nodes_of(tree)):
        match node:
            case ast.Assert(test=test):
                tests, above = _joined(test, ast.And), (ast.Gt, ast.GtE)
            case ast.If(test=test, body=[ast.Raise(), *_]):
                tests, above = _joined(test, ast.Or), (ast.Lt, ast.LtE)
            case _:
                continue
        parts = [pair for each in tests for pair in _comparisons(_entries_of(each))]
        found.update(name for name, operator, number in parts if number == 0 and isinstance(operator, above))
    return frozenset(found)


def _comparisons(node: ast.expr) -> Iterator[tuple[str, ast.cmpop, float]]:
    """The name, operator and number of `name > 0`."""
    match node:
        case ast.Compare(
            left=ast.Name(id=name), ops=[operator], comparators=[ast.Constant(value=int() | float() as n)]
        ):
            yield name, operator, n


def _entries_of(node: ast.expr) -> ast.expr:
    """The comparison within `(x > 0).all()` and `torch.all(x > 0)`, and any other expression itself."""
    match node:
        case ast.Call(func=ast.Attribute(value=ast.Compare() as inner, attr="all" | "any"), args=[]):
            return inner
        case ast.Call(func=ast.Attribute(attr="all" | "any"), args=[ast.Compare() as inner]):
            return inner
    return node


def _unpacked(statement: ast.stmt, names: Collection[str]) -> Iterator[tuple[str, Axes]]:
    match statement:
        case ast.Assign(targets=[ast.Tuple(elts=parts)], value=value) if (name := _shaped(value)) in names:
            words = [part.id for part in parts if isinstance(part, ast.Name)]
            if name is not None and len(words) == len(parts):
                yield name, tuple(f"{name}_{place}" if word == "_" else word for place, word in enumerate(words))


def _demanded(statement: ast.stmt, names: Collection[str]) -> Iterator[tuple[str, Axes]]:
    tests: list[ast.expr] = []
    operator: type[ast.cmpop] = ast.Eq
    match statement:
        case ast.Assert(test=test):
            tests = _joined(test, ast.And)
        case ast.If(test=test, body=[ast.Raise(), *_]):
            tests, operator = _joined(test, ast.Or), ast.NotEq
    for each in tests:
        match each:
            case ast.Compare(left=left, ops=[op], comparators=[right]) if isinstance(op, operator):
                for shape, wanted in ((left, right), (right, left)):
                    axes, name = _axes(wanted), _shaped(shape)
                    if axes is not None and name is not None and name in names:
                        yield name, axes


def _joined(test: ast.expr, operator: type[ast.boolop]) -> list[ast.expr]:
    return test.values if isinstance(test, ast.BoolOp) and isinstance(test.op, operator) else [test]


def _shaped(node: ast.expr) -> str | None:
    """The name whose whole shape an expression is."""
    match node:
        case ast.Attribute(value=ast.Name(id=name), attr="shape"):
            return name
        case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="size"), args=[]):
            return name
        case ast.Call(func=ast.Name(id="tuple"), args=[inner]):
            return _shaped(inner)
    return None


def _axes(node: ast.expr) -> Axes | None:
    """The axes in a tuple of names, numbers, and sums, differences, products or quotients of them."""
    match node:
        case ast.Call(func=ast.Attribute(attr="Size"), args=[inner]):
            return _axes(inner)
        case ast.Tuple(elts=parts) | ast.List(elts=parts) if all(map(_is_size, parts)):
            texts = map(ast.unparse, parts)
            return tuple(int(text) if text.isdigit() else text for text in texts)
    return None


def _is_size(node: ast.expr) -> bool:
    match node:
        case ast.Name():
            return True
        case ast.Constant(value=value):
            return type(value) is int
        case ast.BinOp(left=left, op=ast.Add() | ast.Sub() | ast.Mult() | ast.FloorDiv(), right=right):
            return _is_size(left) and _is_size(right)
    return False


def _apart(axis: Axis, number: int, names: Collection[str]) -> Axis:
    """An axis with names that say of which function they are: those of forward itself, and arguments, stay."""
    if isinstance(axis, int) or not number:
        return axis
    return re.sub(r"[A-Za-z_]\w*", lambda found: found[0] if found[0] in names else f"{found[0]}_{number}", axis)


def _is_stored(node: ast.Name) -> bool:
    return isinstance(node.ctx, ast.Store)
