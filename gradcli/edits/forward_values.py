"""Numbers and masks that forward computes, as expressions in the names that backward has: factors that it may lack."""

import ast
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from gradcli.edits.expressions import Candidate
from gradcli.edits.idiom import Idiom, build
from gradcli.edits.recomputing import one_saving, one_unpacking, renamed, saved_parameters, unpacked
from gradcli.edits.render import Change
from gradcli.edits.scope import Scope
from gradcli.edits.source import Definition, are_alike

_PURE = frozenset({"size", "numel", "len", "sqrt", "float", "int", "abs"})
"""Functions that an expression may call: they change nothing, so it can be evaluated once more."""
_DEEPEST = 3
"""How many names of forward are exchanged one after the other for what they are assigned."""


def of_forward(
    forward: Definition,
    backward: Definition,
    scope: Scope,
    known: Mapping[str, Any],
) -> tuple[list[ast.expr], list[ast.expr]]:
    """The numbers and the masks of forward that can be computed in backward; `known` are the names of its module."""
    called = _called(forward, backward)
    numbers: dict[str, ast.expr] = {}
    masks: dict[str, ast.expr] = {}
    present = {atom.text for atom in scope.atoms}
    for node in _expressions(forward):
        made = _expanded(node, called)
        text = ast.unparse(made)
        value: Any = None if text in present else _value(text, {**known, **scope.values})
        if isinstance(value, int | float) and not isinstance(value, bool) and value not in (0, 1, -1):
            numbers.setdefault(text, made)
        elif str(getattr(value, "dtype", "")).endswith("bool") and value.shape:
            masks.setdefault(text, made)
    return list(numbers.values()), list(masks.values())


def as_in_forward(
    node: ast.expr, above: ast.AST | None, forward: Definition, backward: Definition
) -> Iterator[Candidate]:
    """A value as forward computes it: that of the same name, or of a call of the same function."""
    bound = above.targets[0] if isinstance(above, ast.Assign) and above.value is node else None
    found: dict[str, tuple[float, ast.expr]] = {}
    for other in ast.walk(forward):
        own = other.targets[0] if isinstance(other, ast.Assign) else None
        if isinstance(other, ast.Assign) and isinstance(own, ast.Name) and _is_name(bound, own.id):
            found[ast.unparse(other.value)] = 1.3, other.value
        elif isinstance(other, ast.Call) and isinstance(node, ast.Call) and _name_of(other) == _name_of(node) != "":
            found.setdefault(ast.unparse(other), (1.4, other))
    called = _called(forward, backward) if found else {}
    for cost, other in found.values():
        made = _expanded(other, called)
        if not are_alike(made, node):
            yield Candidate(cost, (Change(node, made),))


def as_in_backward(nodes: Iterable[ast.expr], forward: Definition, backward: Definition) -> Iterator[ast.expr]:
    """Expressions of forward in the names of backward, such as `x.clamp(ctx.low, ctx.high)`, where these differ."""
    called = _called(forward, backward)
    for node in nodes:
        made = _expanded(node, called)
        if not are_alike(made, node):
            yield made


def _is_name(node: ast.AST | None, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def _expressions(forward: Definition) -> Iterator[ast.expr]:
    """The operations and comparisons of forward that call nothing but pure functions, the shortest first."""
    found = [n for n in ast.walk(forward) if isinstance(n, ast.BinOp | ast.Call | ast.Compare)]
    for node in sorted(found, key=lambda n: len(ast.unparse(n))):
        calls = [n for n in ast.walk(node) if isinstance(n, ast.Call)]
        if all(_name_of(call) in _PURE for call in calls):
            yield node


def _name_of(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")


def _called(forward: Definition, backward: Definition) -> dict[str, ast.expr]:
    """How backward reads the values of forward's names: unpacked, as attributes of ctx, or as they are assigned."""
    assigned = [n for n in ast.walk(forward) if isinstance(n, ast.Assign) and isinstance(n.targets[0], ast.Name)]
    names = [n.targets[0].id for n in assigned if isinstance(n.targets[0], ast.Name)]
    found = {name: n.value for name, n in zip(names, assigned, strict=True) if names.count(name) == 1}
    saving, unpacking = one_saving(forward), one_unpacking(backward)
    if saving is not None and unpacking is not None:
        pairs = zip(saving.args, unpacked(unpacking), strict=False)
        found |= {a.id: t for a, t in pairs if isinstance(a, ast.Name) and isinstance(t, ast.Name)}
    if backward.args.args:
        own = ast.Name(id=backward.args.args[0].arg, ctx=ast.Load())
        kept = saved_parameters(forward)
        found |= {name: ast.Attribute(value=own, attr=kept[name], ctx=ast.Load()) for name in kept}
    return found


def _expanded(node: ast.expr, called: Mapping[str, ast.expr]) -> ast.expr:
    for _ in range(_DEEPEST):
        made: ast.expr = renamed(node, called)
        if made is node:
            break
        node = made
    return node


def _value(text: str, names: dict[str, Any]) -> Any:
    try:
        return eval(text, {}, names)  # noqa: S307 - an expression of forward without calls that change anything
    except Exception:
        return None


def masked(node: ast.expr, masks: list[ast.expr], idiom: Idiom) -> Iterator[Candidate]:
    """The node where a mask holds and zero elsewhere, or with its sign turned where the mask holds."""
    for mask in masks:
        yield Candidate(3, (Change(node, build("E * M", E=node, M=mask)),))
        if idiom.namespace is not None:
            yield Candidate(4, (Change(node, build(f"{idiom.namespace}.where(M, -E, E)", E=node, M=mask)),))


def clipped(node: ast.expr, numbers: list[ast.expr], idiom: Idiom) -> Iterator[Candidate]:
    """The node held between a number and its negative, as the slope of a Huber loss is."""
    for bound in numbers:
        if idiom.by_methods:
            yield Candidate(4, (Change(node, build("E.clamp(-A, A)", E=node, A=bound)),))
        elif idiom.namespace is not None:
            yield Candidate(4, (Change(node, build(f"{idiom.namespace}.clip(E, -A, A)", E=node, A=bound)),))
