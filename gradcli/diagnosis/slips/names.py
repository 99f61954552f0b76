"""What an expression at a place of backward may be made of: the tensors and numbers known there, and forward's."""

import ast
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from gradcli.diagnosis.slips.bench import Bench
from gradcli.diagnosis.slips.forms import Array, Form, distinct
from gradcli.edits.flow import carrying, names_in
from gradcli.edits.scope import scope_of
from gradcli.edits.source import Definition
from gradcli.frozen import dataclass

_MOST = 2000
"""Entries of a tensor that is used in forms."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Names:
    """Forms of single names: `plain` ones, those that carry grad_output, numbers; and which are not backward's own.

    `borrowed` are names of forward's that backward does not have.
    """

    plain: tuple[Form, ...]
    carriers: tuple[Form, ...]
    numbers: tuple[tuple[str, float], ...]
    borrowed: frozenset[str]


def names_at(
    place: int, benches: Sequence[Bench], definition: Definition, framework: Any, borrowed_from: Sequence[str]
) -> Names:
    """The names known when the place is computed; of forward's only values that backward has under no name."""
    scopes = [scope_of(b.seen[place][0][1], definition, framework.is_tensor, framework=framework.name) for b in benches]
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
        form = _form(1.0, atom.text, values, framework.to_array)
        if form is not None:
            (carriers if names_in(atom.node) & carried else plain).append(form)
    borrowed = []
    for name in borrowed_from:
        if all(name in b.beside and name not in b.seen[place][0][1] for b in benches):
            values = [b.beside[name] for b in benches]
            form = _form(1.6, name, values, framework.to_array) if framework.is_tensor(values[0]) else None
            if form is not None:
                borrowed.append(form)
    known = distinct([*plain, *borrowed])
    return Names(
        plain=tuple(known),
        carriers=tuple(distinct(carriers)),
        numbers=tuple(numbers),
        borrowed=frozenset(f.text for f in borrowed if f in known),
    )


def _form(cost: float, text: str, values: Sequence[Any], to_array: Callable[[Any], Array]) -> Form | None:
    arrays = []
    for value in values:
        try:
            array = np.asarray(to_array(value))
        except Exception:  # released, or of a kind that NumPy has not
            return None
        if array.dtype.kind not in "bfi" or array.size > _MOST:
            return None
        arrays.append(array.astype(np.float64) if array.dtype.kind != "i" else array)
    return Form(cost, text, tuple(arrays)) if all(a.dtype.kind == "f" for a in arrays) else None


def _value(text: str, names: Mapping[str, Any]) -> Any:
    try:
        return eval(text, {}, dict(names))  # noqa: S307 - a name, an attribute of ctx, or an element of a tuple
    except Exception:
        return None


def names_used(tree: ast.AST) -> frozenset[str]:
    """The names in an expression."""
    return frozenset(names_in(tree))
