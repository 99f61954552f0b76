"""A wrong gradient under diagnosis, and what counts as a proof of an explanation."""

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from gradcli.diagnosis.entries import symmetric_part
from gradcli.diagnosis.facts import Facts
from gradcli.diagnosis.table import Gradient, Table, table_of
from gradcli.errors import UserCodeError
from gradcli.findings import FindingKind
from gradcli.frozen import dataclass
from gradcli.numerics.wording import of_largest
from gradcli.results import Evidence, Mismatch

_PERMUTED = 2
"""At so many inputs with permuted entries, backward has to make the same mistake."""
Named = tuple[FindingKind, str, dict[str, Any]]
"""A name, its sentence, and further fields of the finding."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Suspect:
    """A wrong gradient: that of input block `block`, what was returned for it, and the evidence against it."""

    facts: Facts
    block: int
    gradients: tuple[Gradient, ...]
    mismatch: Mismatch | None
    evidence: tuple[Evidence, ...]

    @property
    def name(self) -> str:
        """The input's name."""
        return name_of(self.facts, self.block)

    @property
    def shape(self) -> tuple[int, ...]:
        """The input's shape."""
        return self.facts.subject.domain.blocks[self.block].shape

    @property
    def table(self) -> Table | None:
        """The whole Jacobian for this input, if it is small and real."""
        table = self.facts.table(self.block)
        alone = table is None and len(self.facts.subject.codomain.blocks) == 1
        return self.table_of_output(0) if alone else table

    @property
    def output(self) -> int | None:
        """The number of the one output through which the gradient is wrong; None for several, or where unknown."""
        if len(self.facts.subject.codomain.blocks) == 1:
            return 0
        wrong = {None if e.mismatch is None else e.mismatch.output for e in self.evidence}
        return wrong.pop() if len(wrong) == 1 else None

    def table_of_output(self, output: int) -> Table | None:
        """The Jacobian of one output; where forward is too slow to measure it again, as the check measured it."""
        table, codomain = self.facts.table(self.block), self.facts.subject.codomain
        if table is not None:
            return table.of_rows(codomain.slices[output])
        found = self.mismatch
        fits = found is not None and found.output == output and found.rows.size == codomain.sizes[output]
        return None if found is None or not fits else table_of(found, self.facts.subject)

    def shows(self, form: "Callable[[Suspect, Table], bool]") -> bool:
        """Whether the Jacobian has a form, here and at nearby inputs, as far as that can be decided there."""
        table = self.table
        if table is None or not form(self, table):
            return False
        other = self.elsewhere
        there = None if other is None else other.table
        return other is None or there is None or form(other, there)

    @property
    def is_beyond_slopes(self) -> bool:
        """Whether the slopes do not show the error (of one entry in ten thousand, say): they then prove nothing."""
        return self.facts.explains(self.block, self.gradients)

    def at(self, facts: Facts | None, *, right: bool = False) -> "Suspect | None":
        """The same suspect at other facts; None if backward fails, or its gradient is right there unless `right`."""
        if facts is None:
            return None
        try:
            there = replace(self, facts=facts, gradients=facts.of(facts.subject.active[self.block]), mismatch=None)
            return None if not right and there.is_beyond_slopes else there
        except UserCodeError:  # a failure at inputs that gradcli chose refutes nothing
            return None

    @property
    def elsewhere(self) -> "Suspect | None":
        """The same suspect at nearby inputs, where an explanation has to hold too; None if none is wrong there."""
        return self.at(self.facts.elsewhere)

    def proves(
        self,
        fix: "Callable[[Suspect], Sequence[Gradient] | None]",
        *,
        rows: Sequence[int] | None = None,
        orders: bool = False,
    ) -> bool:
        """Whether the gradient changed by `fix` is right, here and at nearby inputs.

        A fix that `orders` entries anew has to hold with the entries of the inputs permuted too, also where the
        gradient is right without it: an index among the inputs, or the order of their values, may happen to be the one
        that the fix undoes.
        """
        if self._judged(fix, rows) is not True:
            return False
        others = itertools.chain([self.elsewhere], self.rearranged(right=True) if orders else ())
        return all(other is None or other._judged(fix, rows) is not False for other in others)

    def rearranged(self, *, right: bool = False) -> "Iterator[Suspect]":
        """The same suspect at inputs with permuted entries; where its gradient is `right` only if this is asked for."""
        for number in range(_PERMUTED):
            there = self.at(self.facts.rearranged(number), right=right)
            if there is not None:
                yield there

    def _judged(self, fix: "Callable[[Suspect], Sequence[Gradient] | None]", rows: Sequence[int] | None) -> bool | None:
        fixed = fix(self)
        return False if fixed is None else self.facts.judged(self.block, fixed, rows=rows)


def name_of(facts: Facts, place: int) -> str:
    """The name of the active input number `place`."""
    return facts.subject.arguments[facts.subject.active[place]].name


def each(suspect: Suspect, change: Callable[[Any], Gradient]) -> list[Gradient]:
    """The returned gradients, changed one by one; None stays None."""
    return [None if g is None else change(g) for g in suspect.gradients]


def error_size(suspect: Suspect) -> str:
    """How wrong the gradient is, as a clause; empty if that is not known.

    Where only symmetric changes can be compared, it is how wrong it is for these.
    """
    errors = [e.max_rel_error for e in suspect.evidence if e.max_rel_error is not None and np.isfinite(e.max_rel_error)]
    mismatch = suspect.mismatch
    folded = None if mismatch is None else symmetric_part(suspect.facts, suspect.block, mismatch, suspect.shape)
    if folded is not None and errors and np.any(folded.numeric):
        errors = [float(np.abs(folded.claimed - folded.numeric).max() / np.abs(folded.numeric).max())]
    return f" by up to {of_largest(max(errors))}" if errors else ""
