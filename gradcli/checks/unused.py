"""Outputs that are not used in the loss: their cotangent arrives as zeros, or as None."""

from collections.abc import Iterator
from typing import final

import numpy as np

from gradcli.checks.base import Check, Situation, differs
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
        """Use each output alone, once with the others left out and once with zeros for them."""
        subject = situation.subject
        numbers = subject.output_numbers
        if len(numbers) < 2:
            return
        cotangents = situation.cotangents()
        for used, number in enumerate(numbers):
            alone = [c if i == used else None for i, c in enumerate(cotangents)]
            with_zeros = [c if i == used else np.zeros_like(c) for i, c in enumerate(cotangents)]
            try:
                got, wanted = subject.backward(alone), subject.backward(with_zeros)
            except UserCodeError as error:
                yield self.failed(
                    FindingKind.UNDEFINED_GRAD,
                    f"backward fails when only output {number} is used and the others' gradients are None: {error}",
                    output=number,
                    raised=error,
                )
                return
            for place, position in enumerate(subject.active):
                if differs(situation, place, got[place], wanted[place], _TOLERANCE):
                    name = situation.input_name(position)
                    yield self.failed(
                        FindingKind.UNDEFINED_GRAD,
                        f"{name}: its gradient when only output {number} is used differs from its gradient when the "
                        "other outputs get zeros as grad_output",
                        input=name,
                        output=number,
                    )
                    return
        yield self.passed()
