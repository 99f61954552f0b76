"""Small expressions over the names that backward has, with their values: candidates for a missing factor or term."""

import ast
import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gradcli.edits.idiom import Idiom
from gradcli.frozen import dataclass

Array = NDArray[Any]
_SUM, _PRODUCT, _ATOM = 0, 1, 2
"""Precedence of the outermost operator in the text of a form: + or -, * or /, none."""


@dataclass(frozen=True, slots=True)
class Form:
    """An expression as text, its cost, its operator precedence, and its values at each bench."""

    cost: float
    text: str
    values: tuple[Array, ...]
    binds: int = _ATOM

    def inside(self, binds: int) -> str:
        """The text as an operand of an operator with this precedence, in parentheses if needed."""
        return self.text if self.binds >= binds else f"({self.text})"


ONE = Form(0.0, "1", (np.ones(()),))


def times(one: Form, other: Form, *, divided: bool = False) -> Form | None:
    """The product or the quotient; None if the shapes do not broadcast."""
    with np.errstate(all="ignore"):
        try:
            values = tuple(a / b if divided else a * b for a, b in zip(one.values, other.values, strict=False))
        except ValueError:
            return None
    text = f"{one.inside(_PRODUCT)} {'/' if divided else '*'} {other.inside(_ATOM if divided else _PRODUCT)}"
    if not divided and other.text.startswith("1 / "):
        text = f"{one.inside(_PRODUCT)} / {other.text[4:]}"
    if one.text == "1":
        text = f"1 / {other.inside(_ATOM)}" if divided else other.text
    return Form(one.cost + other.cost + 0.5, text, values, _PRODUCT)


def plus(one: Form, other: Form, *, minus: bool = False) -> Form | None:
    """The sum or the difference; None if the shapes do not broadcast."""
    try:
        values = tuple(a - b if minus else a + b for a, b in zip(one.values, other.values, strict=False))
    except ValueError:
        return None
    text = f"{one.text} {'-' if minus else '+'} {other.inside(_PRODUCT)}"
    return Form(one.cost + other.cost + 0.5, text, values, _SUM)


_Spelling = tuple[float, str, int, Callable[[Array], Array]]
_PLAIN: tuple[_Spelling, ...] = (
    (1.5, "1 / {a}", _PRODUCT, lambda a: 1 / a),
    (1.5, "{a} ** 2", _PRODUCT, lambda a: a * a),
    (2.0, "1 / {a} ** 2", _PRODUCT, lambda a: 1 / (a * a)),
    (2.0, "{a} ** 3", _PRODUCT, lambda a: a * a * a),
    (1.5, "1 - {p}", _SUM, lambda a: 1 - a),
    (1.5, "1 + {p}", _SUM, lambda a: 1 + a),
    (2.5, "1 - {a} ** 2", _SUM, lambda a: 1 - a * a),
    (2.5, "1 + {a} ** 2", _SUM, lambda a: 1 + a * a),
    (3.0, "1 / (1 + {a} ** 2)", _PRODUCT, lambda a: 1 / (1 + a * a)),
    (3.0, "1 / (1 + {p})", _PRODUCT, lambda a: 1 / (1 + a)),
    (3.0, "1 / (1 - {p})", _PRODUCT, lambda a: 1 / (1 - a)),
    (3.0, "{a} * (1 - {p})", _PRODUCT, lambda a: a * (1 - a)),
    (2.0, "({a} > 0)", _ATOM, lambda a: np.where(a > 0, 1.0, 0.0)),
    (2.0, "({a} < 0)", _ATOM, lambda a: np.where(a < 0, 1.0, 0.0)),
)


def _called(name: str, cost: float, function: Callable[[Array], Array]) -> _Spelling:
    return (cost, name, _ATOM, function)


_CALLED: tuple[_Spelling, ...] = (
    _called("exp", 1.5, np.exp),
    _called("log", 1.5, np.log),
    _called("sqrt", 1.5, np.sqrt),
    _called("sin", 1.5, np.sin),
    _called("cos", 1.5, np.cos),
    _called("tanh", 1.5, np.tanh),
    _called("sigmoid", 1.5, lambda a: 1 / (1 + np.exp(-a))),
    _called("sign", 1.5, np.sign),
    _called("abs", 1.5, np.abs),
    _called("sinh", 1.8, np.sinh),
    _called("cosh", 1.8, np.cosh),
    _called("log1p", 1.8, np.log1p),
)
_OF_CALLED: tuple[tuple[str, str], ...] = (
    ("tanh", "1 - {a} ** 2"),
    ("sigmoid", "{a} * (1 - {p})"),
    ("sigmoid", "1 - {p}"),
    ("sqrt", "1 / {a}"),
    ("cosh", "1 / {a}"),
    ("cos", "1 / {a} ** 2"),
    ("cos", "1 / {a}"),
    ("exp", "1 / {a}"),
)


class Speller:
    """Writes functions and reductions as a framework spells them."""

    def __init__(self, idiom: Idiom) -> None:
        self._idiom = idiom

    def function(self, name: str, of: Form) -> str:
        """An elementwise function of a form."""
        space = self._idiom.namespace
        if name == "sigmoid" and not self._idiom.by_methods:
            return f"(1 / (1 + {space or 'np'}.exp(-{of.inside(_ATOM)})))"
        as_method = space is None or self._idiom.only_methods
        return f"{of.inside(_ATOM)}.{name}()" if as_method else f"{space}.{name}({of.text})"

    def axis(self, axis: int, rank: int) -> int:
        """An axis of a tensor of so many axes, counted as in the file."""
        return self._idiom.axis(axis, rank)

    def reduced(self, of: Form, axis: int | None, *, mean: bool = False) -> str:
        """A sum or a mean that keeps the axis."""
        if axis is None:
            return f"{of.inside(_ATOM)}.{'mean' if mean else 'sum'}()"
        spelt = self._idiom.summed(ast.Name(id="E"), (axis,), keep=True, mean=mean)
        return f"{of.inside(_ATOM)}{ast.unparse(spelt).removeprefix('E')}"

    def transposed(self, of: Form) -> str:
        """A matrix with its axes exchanged."""
        return f"{of.inside(_ATOM)}.{'t()' if self._idiom.calls_t else 'T'}"


def functions(base: Sequence[Form], speller: Speller) -> Iterator[Form]:
    """Elementwise functions of forms, and the derivatives of common functions."""
    for form in base:
        for cost, pattern, binds, function in _PLAIN:
            yield _applied(form, cost, pattern.format(a=form.inside(_ATOM), p=form.inside(_PRODUCT)), binds, function)
        made = {}
        for cost, name, binds, function in _CALLED:
            made[name] = _applied(form, cost, speller.function(name, form), binds, function)
            yield made[name]
        plain = {pattern: (cost, binds, function) for cost, pattern, binds, function in _PLAIN}
        for name, pattern in _OF_CALLED:
            cost, binds, function = plain[pattern]
            inner = made[name]
            yield _applied(inner, cost, pattern.format(a=inner.inside(_ATOM), p=inner.text), binds, function)


def _applied(form: Form, cost: float, text: str, binds: int, function: Callable[[Array], Array]) -> Form:
    with np.errstate(all="ignore"):
        return Form(form.cost + cost, text, tuple(np.asarray(function(v)) for v in form.values), binds)


def sums(base: Iterable[Form], speller: Speller) -> Iterator[Form]:
    """Sums of forms along one axis, with keepdims, and along all."""
    for form in base:
        rank = min(v.ndim for v in form.values)
        one_rank = all(v.ndim == rank for v in form.values)
        for axis in range(-1, -rank - 1, -1):
            values = tuple(v.sum(axis=axis, keepdims=True) for v in form.values)
            written = speller.axis(axis, rank) if one_rank else axis
            yield Form(form.cost + 2, speller.reduced(form, written), values)
            means = tuple(v.mean(axis=axis, keepdims=True) if v.shape[axis] else v for v in form.values)
            yield Form(form.cost + 2.1, speller.reduced(form, written, mean=True), means)
        if rank > 1 or (rank == 1 and form.values[0].size > 1):
            values = tuple(v.sum() for v in form.values)
            yield Form(form.cost + 1.8, speller.reduced(form, None), values)


def matrix_products(carriers: Sequence[Form], others: Sequence[Form], speller: Speller) -> Iterator[Form]:
    """A matrix that carries grad_output times another, from either side, each as it is or transposed."""
    flat = [f for f in others if all(v.ndim == 2 for v in f.values)]
    for one in (f for f in carriers if all(v.ndim == 2 for v in f.values)):
        for other, swapped in itertools.product(flat, (False, True)):
            pair = (other, one) if swapped else (one, other)
            for left, right in itertools.product(*(_turns(f, speller) for f in pair)):
                if all(a.shape[1] == b.shape[0] for a, b in zip(left.values, right.values, strict=True)):
                    values = tuple(a @ b for a, b in zip(left.values, right.values, strict=True))
                    text = f"{left.inside(_PRODUCT)} @ {right.inside(_ATOM)}"
                    yield Form(left.cost + right.cost + 1, text, values, _PRODUCT)


def _turns(form: Form, speller: Speller) -> tuple[Form, Form]:
    turned = Form(form.cost + 1, speller.transposed(form), tuple(v.T for v in form.values))
    return form, turned


def distinct(forms: Iterable[Form], most: int | None = None) -> list[Form]:
    """The forms, the shortest first, without those whose values equal a shorter one's or are not finite."""
    return different(sorted(forms, key=lambda f: f.cost), most)


def different(forms: Iterable[Form], most: int | None = None) -> list[Form]:
    """The first `most` forms with distinct, finite values."""
    found: dict[tuple[Any, ...], Form] = {}
    for form in forms:
        if len(found) == most:
            break
        if all(v.dtype.kind == "f" and np.isfinite(v).all() for v in form.values):
            key = tuple((v.shape, _rounded(v)) for v in form.values)
            found.setdefault(key, form)
    return list(found.values())


def _rounded(value: Array) -> bytes:
    """Ten digits of the values: the same for the same quantity computed in two ways."""
    with np.errstate(all="ignore"):
        size = np.abs(value).max(initial=0.0) or 1.0
        return bytes(np.round(value / size, 9) + 0.0) + f"{size:.9e}".encode()
