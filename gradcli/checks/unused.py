"""Outputs that are not used in the loss: their cotangent arrives as zeros, or as None."""

from collections.abc import Iterator, Sequence
from typing import final

import numpy as np

from gradcli.checks.base import Check, Situation, differs
from gradcli.checks.reached import may_get_none
from gradcli.checks.subsets import PLAIN, further_subsets, subsets
from gradcli.errors import UserCodeError
from gradcli.findings import FindingKind
from gradcli.results import Evidence

_TOLERANCE = 1e-9
"""Relative; backward does the same arithmetic with None as with zeros, or less."""


@final
class UnusedOutputsCheck(Check):
    """Leaving an output unused gives the gradient that a zero cotangent for it gives."""

    name = "unused-outputs"
    sentence = "leaving an output unused gives the same gradients as passing zeros as its grad_output"

    def run(self, situation: Situation) -> Iterator[Evidence]:
        """Use some outputs, once with the others left out and once with zeros for them.

        Each is used alone, and where forward asks for None, all but one and pairs too: else the framework makes zeros.
        """
        subject = situation.subject
        numbers = subject.output_numbers
        if len(numbers) < 2:
            return
        cotangents = situation.cotangents()
        for chosen in _subsets(situation, range(len(numbers))):
            used = [numbers[place] for place in chosen]
            which = f"output {used[0]} is" if len(used) == 1 else f"outputs {' and '.join(map(str, used))} are"
            alone = [c if place in chosen else None for place, c in enumerate(cotangents)]
            with_zeros = [c if place in chosen else np.zeros_like(c) for place, c in enumerate(cotangents)]
            try:
                got, wanted = subject.backward(alone), subject.backward(with_zeros)
            except UserCodeError as error:
                yield self.failed(
                    FindingKind.UNDEFINED_GRAD,
                    f"backward fails when only {which} used and the others' gradients are None: {error}",
                    output=used[0],
                    raised=error,
                )
                return
            for place, position in enumerate(subject.active):
                if differs(situation, place, got[place], wanted[place], _TOLERANCE):
                    name = situation.input_name(position)
                    yield self.failed(
                        FindingKind.UNDEFINED_GRAD,
                        f"{name}: its gradient when only {which} used differs from its gradient when the other outputs "
                        "get zeros as grad_output",
                        input=name,
                        output=used[0],
                    )
                    return
        yield self.passed()


def _subsets(situation: Situation, places: Sequence[int]) -> Iterator[tuple[int, ...]]:
    if len(places) < PLAIN or not may_get_none(situation.subject.info):
        yield from ((place,) for place in places)
        return
    yield from subsets(places)
    if len(places) > PLAIN:
        yield from further_subsets(places)
