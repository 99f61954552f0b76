"""The forms that can be made of the names at a place, each kind made once for all places with the same names."""

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import final

from gradcli.diagnosis.slips.forms import (
    ONE,
    Form,
    Speller,
    different,
    distinct,
    functions,
    matrix_products,
    plus,
    sums,
    times,
)
from gradcli.diagnosis.slips.names import Names

_BASE, _SQUARED = 240, 8
"""How many forms without grad_output are kept, and how many names are squared before they are summed."""
FEW, FEWER = 40, 12
"""How many forms are combined with each other, and how many with sums at first."""


@final
class Stock:
    """The forms of some names; those of `base` have no grad_output in them."""

    def __init__(self, names: Names, speller: Speller) -> None:
        self.names = names
        self._speller = speller
        benches = {len(form.values) for form in (*names.plain, *names.carriers)}
        self.one = Form(ONE.cost, ONE.text, ONE.values * max(benches, default=1))

    @cached_property
    def base(self) -> list[Form]:
        """Names, their functions, sums along axes, and differences, the shortest first."""
        plain = self.names.plain
        squares = [f for a in plain[:_SQUARED] if (f := times(a, a)) is not None]
        several = [f for a in plain for b in plain if a is not b and (f := plus(a, b, minus=True)) is not None]
        made = (*plain, *functions(plain, self._speller), *sums([*plain, *squares], self._speller), *several)
        computed = self.names.computed
        inverse = [f for a in computed if (f := times(self.one, a, divided=True)) is not None]
        return distinct((*made, *computed, *inverse, *sums(computed, self._speller)), _BASE)

    @cached_property
    def matrices(self) -> list[Form]:
        """Matrix products of forms that contain grad_output."""
        return list(matrix_products(self.names.carriers, self.names.plain, self._speller))

    @cached_property
    def deeper_matrices(self) -> list[Form]:
        """Matrix products of products."""
        return list(matrix_products(self._products, self.names.plain, self._speller))

    @cached_property
    def totals(self) -> list[Form]:
        """Sums of forms with grad_output, perhaps times another form; and forms with grad_output less such a sum."""
        few = [self.one, *self.base[:FEWER]]
        found = list(sums(_products(self.names.carriers, few), self._speller))
        less = (plus(carrier, total, minus=True) for carrier in self.names.carriers for total in found)
        return [*found, *(form for form in less if form is not None)]

    @cached_property
    def deeper_totals(self) -> list[Form]:
        """Sums of products that cost more."""
        return list(sums(self._products, self._speller))

    @cached_property
    def _products(self) -> list[Form]:
        return different(_products(self.names.carriers, [self.one, *self.base]), FEW)


def _products(carriers: Sequence[Form], forms: Sequence[Form]) -> Iterator[Form]:
    """Each carrier times each form, the shortest first."""
    pairs = sorted(((c, f) for c in carriers for f in forms), key=lambda p: p[0].cost + p[1].cost)
    for carrier, form in pairs:
        made = carrier if form.text == ONE.text else times(carrier, form)
        if made is not None:
            yield made
