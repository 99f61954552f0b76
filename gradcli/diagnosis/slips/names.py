"""What an expression at a place of backward may be made of: tensors and numbers known there, and forward's."""

import ast
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from gradcli.diagnosis.slips.bench import Bench
from gradcli.diagnosis.slips.forms import Form, distinct
from gradcli.diagnosis.slips.hooks import array_of, writes
from gradcli.diagnosis.slips.standing import left_over
from gradcli.edits.draft import Draft
from gradcli.edits.expressions import size_factors
from gradcli.edits.flow import carrying, names_in
from gradcli.edits.forward_values import as_in_backward
from gradcli.edits.idiom import Idiom
from gradcli.edits.scope import Scope, scope_of
from gradcli.edits.source import Definition
from gradcli.frozen import dataclass

_MOST = 2000
"""Tensors with more entries are not used in forms."""
_MOST_TRIED, _MOST_COMPUTED = 60, 24
"""At most so many expressions of forward and backward are evaluated, and so many of these are used in forms."""
_ALIKE = 3
"""Expressions of one size that are tried: at other sizes of the inputs they differ."""
_NO_VALUES = ("save_for_backward", "save_for_forward", "mark_dirty", "mark_non_differentiable", "apply")


@dataclass(frozen=True, slots=True, kw_only=True)
class Names:
    """The forms of single names: `plain` ones and those that carry grad_output; and the `numbers` known by name.

    `borrowed` are names of forward's that backward does not have; `computed` are expressions of either function in the
    names that backward has; `sizes` are numbers of entries and lengths of axes, as expressions.
    """

    plain: tuple[Form, ...]
    carriers: tuple[Form, ...]
    numbers: tuple[tuple[str, float], ...]
    sizes: tuple[tuple[str, float], ...]
    borrowed: frozenset[str]
    computed: tuple[Form, ...] = ()


def names_at(
    place: int,
    benches: Sequence[Bench],
    definition: Definition,
    framework: Any,
    idiom: Idiom,
    borrowed_from: Sequence[str],
    computed: Sequence[tuple[ast.expr, Sequence[Any]]],
    role: str,
) -> Names:
    """The names known when the place is computed; of forward's names only those whose values backward lacks.

    `computed` are expressions with their values there, one for each bench; `role` is that of the function.
    """
    own = framework.name
    scopes = [scope_of(b.seen[place][0][1], definition, framework.is_tensor, framework=own, role=role) for b in benches]
    given = {a.text.split("[")[0] for a in scopes[0].cotangents}
    carried = carrying(definition, given) | given
    plain: list[Form] = []
    carriers: list[Form] = []
    numbers: list[tuple[str, float]] = []
    for atom in scopes[0].atoms:
        values = [_value(atom.text, scope.values) for scope in scopes]
        if not atom.is_tensor:
            if isinstance(values[0], int | float) and np.isfinite(values[0]):
                numbers.append((atom.text, float(values[0])))
            continue
        form = _form(atom.length, atom.text, values, framework)
        if form is not None:
            (carriers if names_in(atom.node) & carried else plain).append(form)
    borrowed = []
    for name in borrowed_from:
        if all(name in b.beside and name not in b.seen[place][0][1] for b in benches):
            values = [b.beside[name] for b in benches]
            form = _form(1.6, name, values, framework) if framework.is_tensor(values[0]) else None
            if form is not None:
                borrowed.append(form)
    known = distinct([*plain, *borrowed])
    texts = {f.text for f in known}
    made = [_form(_cost(node), ast.unparse(node), values, framework, whole=True) for node, values in computed]
    more = [f for f in distinct([*known, *(_bound(f) for f in made if f is not None)]) if f.text not in texts]
    return Names(
        plain=tuple(known),
        carriers=tuple(distinct(carriers)),
        numbers=tuple(numbers),
        sizes=tuple(_sizes(scopes[0], idiom)),
        borrowed=frozenset(f.text for f in borrowed if f in known),
        computed=tuple(more[:_MOST_COMPUTED]),
    )


def _sizes(scope: Scope, idiom: Idiom) -> Iterator[tuple[str, float]]:
    """The sizes of tensors as expressions, the shortest first: of those that are equal here, the first few."""
    seen: Counter[float] = Counter()
    for _, node in sorted(size_factors(scope, idiom), key=lambda found: found[0]):
        text = ast.unparse(node)
        size = float(_value(text, scope.values) or 0)
        seen[size] += 1
        if size > 1 and seen[size] <= _ALIKE:
            yield text, size


def _cost(node: ast.expr) -> float:
    """The cost of an expression: that of its names, numbers, calls and operators."""
    return 0.5 + 0.5 * sum(isinstance(n, ast.Name | ast.Constant | ast.Call | ast.BinOp) for n in ast.walk(node))


def _bound(form: Form) -> Form:
    """The form of an expression, which binds as loosely as a sum unless it is a call."""
    whole = isinstance(ast.parse(form.text, mode="eval").body, ast.Call | ast.Attribute | ast.Subscript)
    return form if whole else replace(form, binds=0)


def expressions_known(draft: Draft, carried: set[str], place: ast.expr) -> list[ast.expr]:
    """What the function to edit and forward compute without grad_output, forward's also in the names of backward.

    Nothing that reads the variable of a loop which is over at the place.
    """
    nodes = _computed_in([p.node for p in draft.parts if p.role in (draft.role, "forward")], carried)
    if draft.role == "backward" and draft.has("forward"):
        forward = draft.part("forward").node
        nodes += as_in_backward(_computed_in([forward], set()), forward, draft.backward.node)
    hidden = left_over(place, draft)
    return [node for node in nodes if not names_in(node) & hidden]


def _computed_in(definitions: Sequence[Definition], carried: set[str]) -> list[ast.expr]:
    """Calls, operations, and indices that add axes, without grad_output: each text once, the shortest first."""
    found: dict[str, ast.expr] = {}
    for definition in definitions:
        for node in ast.walk(definition):
            if not isinstance(node, ast.Call | ast.BinOp | ast.Subscript) or names_in(node) & carried or writes(node):
                continue
            if isinstance(node, ast.Subscript) and not _adds_axes(node):
                continue
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _NO_VALUES:
                continue
            found.setdefault(ast.unparse(node), node)
    return sorted(found.values(), key=_cost)[:_MOST_TRIED]


def _adds_axes(node: ast.Subscript) -> bool:
    """Whether an index is one for broadcasting, such as `counts[:, None]`."""
    parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    return any(isinstance(part, ast.Constant) and part.value is None for part in parts)


def _form(cost: float, text: str, values: Sequence[Any], framework: Any, *, whole: bool = False) -> Form | None:
    """The form of values of floats or truth values; also of whole numbers, which may be counts, if these are meant."""
    arrays = []
    for value in values:
        array = array_of(value, framework)
        if array is None or array.dtype.kind not in "bfi" or array.size > _MOST:
            return None
        arrays.append(array.astype(np.float64) if whole or array.dtype.kind != "i" else array)
    return Form(cost, text, tuple(arrays)) if all(a.dtype.kind == "f" for a in arrays) else None


def _value(text: str, names: Mapping[str, Any]) -> Any:
    try:
        return eval(text, {}, dict(names))  # noqa: S307 - a name, an attribute of ctx, or an element of a tuple
    except Exception:
        return None


def names_used(tree: ast.AST) -> frozenset[str]:
    """The names in an expression."""
    return frozenset(names_in(tree))
