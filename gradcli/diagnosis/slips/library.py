"""The slips at one place of backward whose value enters the gradients linearly: fitted forms, thousands at once."""

import ast
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from gradcli.backends.base import FloatArray
from gradcli.diagnosis.facts import DIRECTIONS
from gradcli.diagnosis.slips.affine import Affine, hits, reached_by
from gradcli.diagnosis.slips.bench import Bench
from gradcli.diagnosis.slips.forms import (
    ONE,
    Form,
    Speller,
    distinct,
    functions,
    matrix_products,
    plus,
    sums,
    times,
)
from gradcli.diagnosis.slips.names import Names, names_used
from gradcli.diagnosis.slips.slip import Role, Slip
from gradcli.edits.idiom import build
from gradcli.frozen import dataclass

_BASE, _SHORT, _FEW, _NAMES = 240, 140, 40, 7
"""Forms that are combined with a value, with two names, with each other; and names for that."""
_NEAR = 1e-7
_UGLY = 5.0
"""What a coefficient costs that is no fraction and no known number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A place with what is known there: how the gradients depend on it, at each bench, and the names."""

    number: int
    node: ast.expr
    maps: tuple[Affine, ...]
    benches: tuple[Bench, ...]
    present: tuple[FloatArray, ...]
    names: Names
    carries: bool
    inner: bool

    @property
    def mends(self) -> frozenset[int]:
        """The inputs whose gradients depend on the value: what is fitted makes all of them right."""
        reached = reached_by(self.maps).reshape(-1, DIRECTIONS)[:, 0].reshape(len(self.maps), -1).any(axis=0)
        return frozenset(int(n) for n in np.flatnonzero(reached))


def base_forms(names: Names, speller: Speller) -> list[Form]:
    """What is not grad_output: names, their functions, and sums along axes, the shortest first."""
    plain = list(names.plain)
    made = distinct([*plain, *functions(plain, speller)])
    several = [f for a in plain for b in plain if a is not b and (f := plus(a, b, minus=True)) is not None]
    squares = [f for a in plain[:8] if (f := times(a, a)) is not None]
    return distinct([*made, *sums([*plain, *squares], speller), *several])[:_BASE]


def fitted(place: Place, base: Sequence[Form], speller: Speller, *, deep: bool) -> Iterator[Slip]:
    """The slips at a place: a factor, a term or another whole; `deep` ones are made of pairs of forms."""
    wanted = np.concatenate([b.wanted for b in place.benches])
    rest = np.concatenate([m.rest for m in place.maps])
    present = np.concatenate(place.present)
    if not place.inner:
        factors = [ONE, *base] if not deep else [*_pairs(base[:_FEW]), *_triples(place.names, base)]
        scaled = [tuple(m.value for m in place.maps)] * len(factors)
        yield from _matched(place, factors, wanted - rest, Role.FACTOR, scaled)
    others = list(_others(place, base, speller, deep=deep))
    yield from _matched(place, others, wanted - present, Role.TERM)
    yield from _matched(place, others, wanted - rest, Role.OTHER)


def _others(place: Place, base: Sequence[Form], speller: Speller, *, deep: bool) -> Iterator[Form]:
    """What may stand at a place: of what carries grad_output, products with it, sums of such, and matrix products."""
    if not place.carries:
        yield from (ONE, *base) if not deep else (*_pairs(base[:_FEW]), *_triples(place.names, base))
        return
    carriers = place.names.carriers
    several = base[: _FEW if deep else 12]
    products = [f for c in carriers for b in (ONE, *base) if (f := _product(c, b)) is not None]
    if not deep:
        yield from products
        yield from matrix_products(carriers, place.names.plain, speller)
        totals = sums([f for c in carriers for b in (ONE, *several) if (f := _product(c, b)) is not None], speller)
        for total in totals:
            yield total
            yield from (f for b in several if (f := times(b, total)) is not None)
    else:
        pairs = [*_pairs(several), *_triples(place.names, base)]
        yield from (f for c in carriers for b in pairs if (f := times(c, b)) is not None)
        yield from matrix_products(distinct(products)[:_FEW], place.names.plain, speller)
        for total in sums(distinct(products)[:_FEW], speller):
            yield from (f for b in (*several, *pairs[:200]) if (f := times(b, total)) is not None)


def _triples(names: Names, base: Sequence[Form]) -> list[Form]:
    """Products of two names and a form."""
    few, found = names.plain[:_NAMES], []
    for number, one in enumerate(few):
        for other in few[number:]:
            pair = times(one, other)
            found += [f for third in base[:_SHORT] if pair is not None and (f := times(pair, third)) is not None]
    return found


def _product(carrier: Form, other: Form) -> Form | None:
    return carrier if other is ONE else times(carrier, other)


def _pairs(base: Sequence[Form]) -> list[Form]:
    found = []
    for number, one in enumerate(base):
        for other in base[number:]:
            if (made := times(one, other)) is not None:
                found.append(made)
        for other in base:
            if other is not one and (made := times(one, other, divided=True)) is not None:
                found.append(made)
    return found


def _matched(
    place: Place,
    forms: Sequence[Form],
    lacking: FloatArray,
    role: Role,
    scaled: Sequence[tuple[FloatArray, ...]] = (),
) -> Iterator[Slip]:
    fitting, rows = _rows(place, forms, bool(scaled))
    for hit in hits(place.maps, place.benches, rows, lacking) if fitting else ():
        form = fitting[hit.number]
        for cost, text in _spelt(hit.coefficient, place.names.numbers):
            slip = _slip(place, form, text, cost, hit.coefficient < 0, role)
            if slip is not None:
                yield slip


def _rows(place: Place, forms: Sequence[Form], scaled: bool) -> tuple[list[Form], list[FloatArray]]:
    """The forms that have the place's shape at every bench, with their values times that at the place if `scaled`."""
    fitting: list[Form] = []
    values: list[list[FloatArray]] = [[] for _ in place.maps]
    for form in forms:
        try:
            spread = [np.broadcast_to(v, m.shape) for v, m in zip(_each(form, place), place.maps, strict=True)]
        except ValueError:
            continue
        fitting.append(form)
        for kept, v, m in zip(values, spread, place.maps, strict=True):
            kept.append((v * m.value if scaled else v).reshape(-1))
    if not fitting:
        return [], []
    arrays = [np.array(v) for v in values]
    finite = np.all([np.isfinite(a).all(axis=1) for a in arrays], axis=0)
    return [f for f, good in zip(fitting, finite, strict=True) if good], [a[finite] for a in arrays]


def _each(form: Form, place: Place) -> tuple[Any, ...]:
    return form.values * len(place.maps) if form is ONE else form.values


def _spelt(c: float, numbers: Sequence[tuple[str, float]]) -> Iterator[tuple[float, str]]:
    """The size of a coefficient as a fraction, by a known number, or else as it is; empty text for 1."""
    size = abs(c)
    near = Fraction(size).limit_denominator(24)
    if near and abs(size - near) <= _NEAR * size and near.numerator <= 1000:
        yield (0.0 if near == 1 else 0.8 + 0.1 * near.denominator, "" if near == 1 else str(near))
        return
    for text, value in numbers:
        for power, words in ((1, "{}"), (-1, "1/{}"), (2, "{} ** 2"), (-2, "1/{} ** 2")):
            if value in (0.0, 1.0, -1.0):
                continue
            part = Fraction(size / abs(value) ** power).limit_denominator(4)
            if part and part.numerator <= 4 and abs(size - part * abs(value) ** power) <= _NEAR * size:
                times_ = "" if part == 1 else f"{part.numerator} * " if part.denominator == 1 else f"({part}) * "
                sign = "-" if value < 0 and abs(power) == 1 else ""
                yield (1.5 + (part != 1) + abs(power), times_ + sign + words.format(text))
    yield (_UGLY, f"{size:.10g}")


def _slip(place: Place, form: Form, coefficient: str, cost: float, negative: bool, role: Role) -> Slip | None:
    inner = "" if form is ONE and coefficient else form.text
    if coefficient.startswith("1/"):
        part = f"{inner or '1'} / {coefficient[2:]}" if not inner or form.binds else f"({inner}) / {coefficient[2:]}"
    else:
        part = " * ".join(p for p in (coefficient, form.inside(1) if coefficient and inner else inner) if p)
    sign = "-" if negative else ""
    if role is Role.FACTOR:
        pattern = f"{sign}(OLD / ({part[4:]}))" if part.startswith("1 / ") else f"{sign}(OLD * ({part}))"
        if part == "1":
            pattern = f"{sign}OLD"
        part = f"-({part})" if negative and part != "1" else f"{sign}{part}"
    elif role is Role.TERM:
        pattern = f"OLD {'-' if negative else '+'} ({part})"
        part = f"{sign}{part}" if form.binds or coefficient else f"{sign}({part})"
    else:
        pattern = f"{sign}({part})"
    try:
        new = build(pattern, OLD=place.node)
    except SyntaxError:
        return None
    used = names_used(ast.parse(form.text, mode="eval"))
    whole = cost + form.cost + (0.6 if negative else 0.0) + 1.0
    if role is Role.OTHER:
        whole += sum(isinstance(n, ast.expr) for n in ast.walk(place.node)) / 3
    return Slip(
        cost=whole + (1.0 if used & place.names.borrowed else 0.0),
        place=place.number,
        old=place.node,
        new=new,
        mends=place.mends,
        role=role,
        part=part,
        borrowed=bool(used & place.names.borrowed),
    )


def with_cost(slips: Iterator[Slip], most: int) -> list[Slip]:
    """The cheapest of the slips."""
    return sorted(slips, key=lambda s: s.cost)[:most]
