"""A factor or a term that a returned gradient lacks, or the whole of it, found by its values at the probes.

The forms are products of what backward has in its names, their derivatives of common functions, sums of such along
axes and matrix products. One coefficient is free. It is fitted at one probe and has to serve at the others.
"""

import ast
import itertools
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gradcli.edits.expressions import derived_factors, number
from gradcli.edits.idiom import Idiom, build
from gradcli.edits.scope import Atom, Scope
from gradcli.frozen import dataclass

Array = NDArray[Any]
_CLOSE = 1e-7
_BASE = 14
"""How many factors are combined with each other, the shortest first."""


@dataclass(frozen=True, slots=True)
class Form:
    """An expression with its length and its values at each probe."""

    cost: float
    node: ast.expr
    values: tuple[Array, ...]


@dataclass(frozen=True, slots=True)
class Fit:
    """A form with the size of its coefficient before it, and whether the coefficient is negative."""

    cost: float
    node: ast.expr
    negative: bool


class Library:
    """The forms for a backward, from its scopes at the probes."""

    def __init__(
        self, scopes: Sequence[Scope], idiom: Idiom, globals_: dict[str, Any], to_array: Any, carriers: set[str]
    ) -> None:
        self._scopes, self._idiom, self._globals, self._to_array = scopes, idiom, globals_, to_array
        carried = [a for a in scopes[0].tensors if a.text in carriers]
        given = [*scopes[0].cotangents, *carried]
        self.cotangents = [f for a in given if (f := self._form(1, a.node)) is not None]
        plain = [f for a in scopes[0].tensors if a not in carried and (f := self._form(1, a.node)) is not None]
        derived = [f for c, n in derived_factors(scopes[0], idiom) if (f := self._form(c, n)) is not None]
        inverse = [Form(f.cost + 1, build("1 / A", A=f.node), _mapped(np.reciprocal, f)) for f in plain if _floats(f)]
        self.plain = plain
        self.base = [f for f in sorted([*plain, *derived, *inverse], key=lambda f: f.cost) if _finite(f)]
        self.scalars = self._scalars()

    def _form(self, cost: float, node: ast.expr) -> Form | None:
        """What an expression is worth at every probe; None where it fails."""
        code = compile(ast.fix_missing_locations(ast.Expression(body=node)), "<form>", "eval")
        values = []
        for scope in self._scopes:
            try:
                with np.errstate(all="ignore"):
                    found = eval(code, self._globals, dict(scope.values))  # noqa: S307 - an expression made here
                    values.append(np.asarray(self._to_array(found)))
            except Exception:  # the names or the framework do not offer it
                return None
        return Form(cost, node, tuple(values)) if all(v.dtype.kind in "bfc" for v in values) else None

    def _scalars(self) -> list[tuple[float, float, ast.expr]]:
        """Numbers that a coefficient may stand for: (cost, value, expression)."""
        found: list[tuple[float, float, ast.expr]] = []
        for atom in self._scopes[0].numbers:
            value = _evaluated(atom, self._scopes[0])
            if value is not None and value not in (0.0, 1.0):
                found.append((1, value, atom.node))
        for atom in (*self._scopes[0].tensors, *self._scopes[0].cotangents):
            for axis, size in enumerate(atom.shape):
                counted = self._idiom.axis(axis, len(atom.shape))
                found.append((2.1, float(size), build(f"A.shape[{counted}]", A=atom.node)))
            if len(atom.shape) > 1:
                whole = "A.numel()" if self._idiom.by_methods else "A.size"
                found.append((2, float(np.prod(atom.shape)), build(whole, A=atom.node)))
        return found

    def factors(self) -> Iterator[Form]:
        """What a gradient may be multiplied by: a number alone, known quantities, products of two of these."""
        yield Form(0, ast.Constant(value=1), tuple(np.ones(()) for _ in self._scopes))
        yield from self.base
        yield from self._pairs(self.base[: 2 * _BASE])

    def terms(self) -> Iterator[Form]:
        """What a gradient may consist of: products with a cotangent, sums of such times known quantities, matrices."""
        for g in self.cotangents:
            products = [g, *(_times(g, f) for f in self.base)]
            yield from (p for p in products if p is not None)
            for pair in self._pairs(self.base[:_BASE]):
                if (made := _times(g, pair)) is not None:
                    yield made
            yield from self._sums([p for p in products[: _BASE + 1] if p is not None])
            yield from self._matrices([p for p in products[: _BASE + 1] if p is not None])

    def _pairs(self, base: Sequence[Form]) -> Iterator[Form]:
        for one, other in itertools.combinations_with_replacement(base, 2):
            if (made := _times(one, other)) is not None:
                yield made

    def _sums(self, products: Sequence[Form]) -> Iterator[Form]:
        for product in products:
            ranks = {v.ndim for v in product.values}
            rank = min(ranks)
            # Where the probes differ in their number of axes, only an axis counted from the last is the same at each.
            axes: list[tuple[int, ...] | None] = [
                (self._idiom.axis(n, rank) if len(ranks) == 1 else n - rank,) for n in reversed(range(rank))
            ]
            for which in [*axes, None] if rank else []:
                for keep in (True, False) if which is not None else (False,):
                    node = self._idiom.summed(product.node, which, keep=keep)
                    values = tuple(v.sum(axis=which, keepdims=keep) for v in product.values)
                    total = Form(product.cost + 2 + (0.5 if keep else 0), node, values)
                    sizes = [v.size / s.size if s.size else 0 for v, s in zip(product.values, values, strict=True)]
                    mean = self._idiom.summed(product.node, which, keep=keep, mean=True)
                    means = tuple(v / n if n else v for v, n in zip(values, sizes, strict=True))
                    for form in (total, Form(total.cost + 0.1, mean, means)):
                        yield form
                        for outer in self.base[:_BASE]:
                            if (made := _times(outer, form)) is not None:
                                yield made

    def _matrices(self, products: Sequence[Form]) -> Iterator[Form]:
        matrices = [f for f in self.plain if _is_matrix(f)]
        for product in (p for p in products if _is_matrix(p)):
            for matrix in matrices:
                for one, other in ((product, matrix), (matrix, product)):
                    for left, right in itertools.product(self._turned(one), self._turned(other)):
                        if all(a.shape[1] == b.shape[0] for a, b in zip(left.values, right.values, strict=True)):
                            node = ast.BinOp(left=left.node, op=ast.MatMult(), right=right.node)
                            values = tuple(a @ b for a, b in zip(left.values, right.values, strict=True))
                            yield Form(left.cost + right.cost + 1, node, values)

    def _turned(self, form: Form) -> list[Form]:
        turned = self._idiom.transposes(form.node, 2)
        return [form, *(Form(form.cost + 1.5, node, _mapped(np.transpose, form)) for node in turned)]

    def fitted(
        self, form: Form, wanted: Sequence[Array], beside: Sequence[Array] | None = None, *, whole: bool = False
    ) -> list[Fit]:
        """The form with the coefficients that make it what is wanted at every probe; empty where none does.

        `beside` are arrays that the form is multiplied by; a `whole` gradient has the input's shape by itself.
        """
        if whole and any(v.shape != w.shape for v, w in zip(form.values, wanted, strict=True)):
            return []
        values = form.values if beside is None else [_broadcast(v, b) for v, b in zip(form.values, beside, strict=True)]
        c: complex | None = None
        for value, right in zip(values, wanted, strict=True):
            spread = None if value is None else _spread(value, right.shape)
            if spread is None or not np.isfinite(spread).all():
                return []
            if c is None:
                square = float(np.vdot(spread, spread).real)
                if not square > 0 or not np.isfinite(square):
                    return []
                c = complex(np.vdot(spread, right)) / square
            slack = _CLOSE * max(float(np.abs(right).max(initial=0.0)), 1e-30)
            if abs(c.imag) > _CLOSE * abs(c) or not (np.abs(c.real * spread - right) <= slack).all():
                return []
        most = 24 if beside is not None else 6
        return [] if c is None or c.real == 0 else list(self._spelt(form, c.real, most))

    def _spelt(self, form: Form, c: float, most: int) -> Iterator[Fit]:
        """The coefficient as a fraction of numbers up to `most`, or one that has a number of backward as a factor.

        Of terms only short ones are likely: almost any coefficient is near some fraction.
        """
        size, negative = abs(c), c < 0
        near = Fraction(size).limit_denominator(most)
        if abs(size - near) <= _CLOSE * size and near.numerator <= most and (most > 6 or near.denominator <= 4):
            yield _with(form, near, None, negative)
        for cost, value, node in self.scalars:
            for power in (1, -1, 2, -2):
                if value <= 0:
                    continue
                rest = size / value**power
                left = Fraction(rest).limit_denominator(4)
                if left and abs(rest - left) <= _CLOSE * rest and left.numerator <= 4 and value != 1:
                    made = _with(form, left, (power, node), negative)
                    yield Fit(made.cost + cost + (abs(power) - 1) * 2, made.node, negative)


def _with(form: Form, part: Fraction, scalar: tuple[int, ast.expr] | None, negative: bool) -> Fit:
    node, cost = form.node, form.cost
    is_one = isinstance(node, ast.Constant)
    factors: list[ast.expr] = [] if is_one else [node]
    if part.numerator != 1:
        factors.insert(0, number(part.numerator))
    divisors: list[ast.expr] = [] if part.denominator == 1 else [number(part.denominator)]
    if scalar is not None:
        power, of = scalar
        whole = of if abs(power) == 1 else build(f"A ** {abs(power)}", A=of)
        (factors if power > 0 else divisors).append(whole)
    made: ast.expr = factors[0] if factors else ast.Constant(value=1)
    for factor in factors[1:]:
        made = ast.BinOp(left=made, op=ast.Mult(), right=factor)
    for divisor in divisors:
        made = ast.BinOp(left=made, op=ast.Div(), right=divisor)
    return Fit(cost + len(factors) - (0 if is_one else 1) + len(divisors), made, negative)


def _times(one: Form | None, other: Form) -> Form | None:
    if one is None:
        return None
    values = [_broadcast(a, b) for a, b in zip(one.values, other.values, strict=True)]
    known = tuple(v for v in values if v is not None)
    if len(known) != len(values):
        return None
    if isinstance(other.node, ast.BinOp) and isinstance(other.node.op, ast.Div) and _is_one(other.node.left):
        node = ast.BinOp(left=one.node, op=ast.Div(), right=other.node.right)
        return Form(one.cost + other.cost - 1, node, known)
    return Form(one.cost + other.cost + 0.5, ast.BinOp(left=one.node, op=ast.Mult(), right=other.node), known)


def _is_one(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value == 1


def _broadcast(one: Array, other: Array) -> Array | None:
    try:
        with np.errstate(all="ignore"):
            product: Array = one * other
    except ValueError:
        return None
    return product if product.size <= 100_000 else None


def _spread(value: Array, shape: tuple[int, ...]) -> Array | None:
    """The value broadcast to a shape; None where it does not broadcast to it."""
    try:
        return np.broadcast_to(value, shape)
    except ValueError:
        return None


def _mapped(function: Any, form: Form) -> tuple[Array, ...]:
    with np.errstate(all="ignore"):
        return tuple(function(v) for v in form.values)


def _floats(form: Form) -> bool:
    return all(v.dtype.kind in "fc" for v in form.values)


def _is_matrix(form: Form) -> bool:
    return all(v.ndim == 2 for v in form.values)


def _finite(form: Form) -> bool:
    return all(bool(np.isfinite(v).all()) for v in form.values)


def _evaluated(atom: Atom, scope: Scope) -> float | None:
    try:
        return float(eval(atom.text, {}, dict(scope.values)))  # noqa: S307 - a name, or an attribute of one
    except Exception:
        return None
