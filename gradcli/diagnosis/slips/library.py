"""The slips at one place of backward whose value enters the gradients linearly: fitted forms, thousands at once."""

import ast
import itertools
import re
from bisect import insort
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import final

import numpy as np

from gradcli.backends.base import FloatArray
from gradcli.diagnosis.slips.affine import Influence, fitting
from gradcli.diagnosis.slips.forms import Form
from gradcli.diagnosis.slips.names import Names
from gradcli.diagnosis.slips.rows import Rows, products, quotients, spread, squared
from gradcli.diagnosis.slips.slip import Role, Slip
from gradcli.diagnosis.slips.stock import FEW, FEWER, Stock
from gradcli.edits.idiom import build
from gradcli.frozen import dataclass
from gradcli.watchdog.case import stop_if_late

_SHORT, _NAMES, _WITH_SUMS = 140, 7, 100
"""How many forms are combined with pairs of names, how many names form pairs, how many pairs go with sums."""
_NEAR = 1e-7
_COARSE = 1e-3
"""A coefficient that is known less accurately is taken as known to this part of it."""
_DENOMINATOR, _CHANCE = 24, 0.01
"""The largest denominator of a simple fraction; and how likely, about, a number is near one by chance at most."""
_KEPT = 4
"""For each slip that is wanted so many hits are kept, since some cannot be put into the source. Where one entry of a
gradient is far larger than the others, tens of thousands of forms fit."""
_UGLY = 5.0
"""The cost of a coefficient that is neither a fraction nor a known number."""
_LEAST = 1.0
"""The cost of a slip in addition to that of its form and its coefficient."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """An expression of backward with what is known there: how the gradients depend on its value, and the names.

    `carries` says that the value contains grad_output, `inner` that a factor there acts as one on the expression around
    it.
    """

    number: int
    node: ast.expr
    influence: Influence
    names: Names
    carries: bool
    inner: bool


def fitted(place: Place, stock: Stock, most: int, *, deep: bool) -> Iterator[Slip]:
    """The slips at a place, the `most` shortest: a factor, a term or a replacement; if `deep`, made of pairs."""
    here = place.influence
    found = _Shortest(place, most)
    for rows in _plain(place, stock, deep=deep):
        if not place.inner:
            found.add(rows, (rows.values * here.value) @ here.matrix.T, here.without, Role.FACTOR)
        if not place.carries:
            found.add_both(rows)
    if place.carries:
        for rows in _carrying(place, stock, deep=deep):
            found.add_both(rows)
    yield from found.slips()


def _plain(place: Place, stock: Stock, *, deep: bool) -> Iterator[Rows]:
    """Forms without grad_output: single ones, else their products and quotients."""
    base = spread(stock.base, place.influence.shapes)
    if not deep:
        yield spread([stock.one], place.influence.shapes)
        yield base
        return
    few = base.first(FEW)
    yield from squared(few)
    yield from quotients(few)
    names = spread(place.names.plain, place.influence.shapes).first(_NAMES)
    for pairs in squared(names):
        yield from products(pairs, base.first(_SHORT))


def _carrying(place: Place, stock: Stock, *, deep: bool) -> Iterator[Rows]:
    """Replacements for a value that contains grad_output: its products, sums of such, and matrix products."""
    shapes = place.influence.shapes
    carriers, base = spread(place.names.carriers, shapes), spread(stock.base, shapes)
    totals = spread(stock.deeper_totals if deep else stock.totals, shapes)
    yield spread(stock.deeper_matrices if deep else stock.matrices, shapes)
    if not deep:
        yield carriers
        yield from products(carriers, base)
        yield totals
        yield from products(base.first(FEWER), totals)
        return
    for rows in _plain(place, stock, deep=True):
        yield from products(carriers, rows)
    few = base.first(FEW)
    yield from products(few, totals)
    for rows in (*squared(few), *quotients(few)):
        yield from products(rows.first(_WITH_SUMS), totals)


@dataclass(frozen=True, slots=True)
class _Hit:
    """A form that is right with some coefficient, with the cost of the slip and the text of the coefficient."""

    cost: float
    role: Role
    form: Form
    coefficient: float
    text: str


@final
class _Shortest:
    """The shortest slips at a place that were found so far."""

    def __init__(self, place: Place, most: int) -> None:
        self._place, self._most = place, most
        self._found: list[_Hit] = []
        self._own = ast.unparse(place.node)
        self._replaced = sum(isinstance(n, ast.expr) for n in ast.walk(place.node)) / 3

    def add_both(self, rows: Rows) -> None:
        """Add the forms that are right as a term, and those that are right as a replacement."""
        here = self._place.influence
        made = rows.values @ here.matrix.T
        self.add(rows, made, here.lacking, Role.TERM)
        self.add(rows, made, here.without, Role.OTHER)

    def add(self, rows: Rows, made: FloatArray, lacking: FloatArray, role: Role) -> None:
        """Add the forms that some coefficient makes equal to `lacking`; `made` is the effect of each form alone."""
        stop_if_late()
        numbers, values = fitting(made, lacking, self._place.influence)
        order = np.argsort(rows.costs[numbers], kind="stable")
        for number, coefficient in zip(numbers[order], values[order], strict=True):
            if len(self._found) >= self._most and rows.costs[number] + _LEAST > self._found[self._most - 1].cost:
                return
            form = rows.spelled(int(number))
            near = _uncertainty(coefficient * made[number], lacking, self._place.influence.allowed)
            if role is Role.TERM and form.text == self._own:
                continue  # a multiple of the expression itself is a factor
            for cost, text in _spelt(float(coefficient), self._place.names, near):
                whole = cost + self._cost(form, role) + (0.6 if coefficient < 0 else 0.0)
                insort(self._found, _Hit(whole, role, form, float(coefficient), text), key=_rank)
            del self._found[_KEPT * self._most :]

    def _cost(self, form: Form, role: Role) -> float:
        more = self._replaced if role is Role.OTHER else 0.0
        return _LEAST + form.cost + more + (1.0 if _borrows(self._place, form) else 0.0)

    def slips(self) -> Iterator[Slip]:
        """The slips, the shortest first."""
        made = (_slip(self._place, hit) for hit in self._found)
        yield from itertools.islice((slip for slip in made if slip is not None), self._most)


_ORDER = {Role.FACTOR: 0, Role.TERM: 1, Role.OTHER: 2}


def _rank(hit: _Hit) -> tuple[float, int]:
    return hit.cost, _ORDER[hit.role]


def _borrows(place: Place, form: Form) -> bool:
    return bool(place.names.borrowed) and not place.names.borrowed.isdisjoint(re.findall(r"\w+", form.text))


def _uncertainty(effect: FloatArray, lacking: FloatArray, allowed: FloatArray) -> float:
    """The relative change of a coefficient with which its effect still is what is lacking, within the bounds."""
    felt = effect != 0
    spare = allowed[felt] - np.abs(effect - lacking)[felt]
    return max(_NEAR, float(np.min(spare / np.abs(effect[felt]), initial=_COARSE)))


def _simple(size: float, near: float) -> Fraction | None:
    """The fraction with the smallest denominator that differs from a positive number by a part `near` at most.

    Where that is coarse, large denominators, of which one is near any number, say nothing.
    """
    return _fraction(size, near, min(_DENOMINATOR, int((_CHANCE / near) ** 0.5)), 1000)


def _fraction(size: float, near: float, denominator: int, numerator: int) -> Fraction | None:
    """The first of the fractions, by denominator, that differs from a positive number by a part `near` at most."""
    for below in range(1, 1 + denominator):
        if (product := size * below) > numerator + 0.5:
            return None
        above = round(product)
        if above and abs(product - above) <= near * product:
            return Fraction(above, below)
    return None


def _spelt(c: float, names: Names, near_by: float = _NEAR) -> Iterator[tuple[float, str]]:
    """A coefficient as text: a fraction, a multiple of a known number or size, or else its digits; 1 is empty.

    The fraction is tried first, and rejected if it is wrong for other numbers or sizes. The coefficient is known up to
    a part `near_by`, as the noise of forward's values allows.
    """
    size = abs(c)
    near = _simple(size, near_by)
    if near is not None:
        plain = 0.0 if near == 1 else 0.8 + 0.1 * near.denominator
        yield (plain, "" if near == 1 else str(near))
        if near != 1:
            known = _multiples(size, (*names.numbers, *names.sizes), near_by)
            yield from ((plain + cost, text) for cost, text in known)
        return
    yield from _multiples(size, (*names.numbers, *names.sizes), near_by)
    yield (_UGLY, f"{size:.10g}")


def _multiples(c: float, known: Sequence[tuple[str, float]], near_by: float) -> Iterator[tuple[float, str]]:
    """A coefficient as a small fraction times a known number, its square or the inverse of one of these."""
    for text, value in known:
        for power, words in ((1, "{}"), (-1, "1/{}"), (2, "{} ** 2"), (-2, "1/{} ** 2")):
            if value in (0.0, 1.0, -1.0):
                continue
            part = _fraction(c / abs(value) ** power, near_by, 4, 4)
            if part is not None:
                times_ = "" if part == 1 else f"{part.numerator} * " if part.denominator == 1 else f"({part}) * "
                sign = "-" if value < 0 and abs(power) == 1 else ""
                yield (1.5 + (part != 1) + abs(power), times_ + sign + words.format(text))


def _slip(place: Place, hit: _Hit) -> Slip | None:
    form, coefficient, negative, role = hit.form, hit.text, hit.coefficient < 0, hit.role
    inner = "" if form.text == "1" and coefficient else form.text
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
    return Slip(
        cost=hit.cost,
        number=place.number,
        old=place.node,
        new=new,
        fixes=place.influence.inputs,
        role=role,
        part=part,
        borrowed=_borrows(place, form),
    )
