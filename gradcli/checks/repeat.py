"""backward gives the same gradient each time: repeated, and with another call in between."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from gradcli.checks.base import Check, Situation, relative_gap
from gradcli.errors import UserCodeError
from gradcli.findings import FindingKind
from gradcli.results import Evidence

REPEAT_TOLERANCE = 1e-9
"""Relative; the same code on the same numbers differs by a reordering of sums at most."""

Gradients = tuple[NDArray[Any] | None, ...]


@final
class RepeatCheck(Check):
    """Two backward passes agree, with and without another forward in between."""

    name = "repeat"
    sentence = "backward gives the same gradient when it is repeated, and when another forward runs in between"

    def run(self, situation: Situation) -> Iterator[Evidence]:
        """Compare gradients: a second pass, a third through the graph of the second, and an interleaved one."""
        subject, reference = situation.subject, situation.reference()
        failed: UserCodeError | None = None
        try:
            second, third = subject.backward_twice(situation.cotangents())
        except UserCodeError as error:
            failed, second = error, subject.backward(situation.cotangents())
            third = second
        problems = []
        for position, one, other in zip(subject.active, reference, second, strict=True):
            if relative_gap(one, other) > situation.tolerance(REPEAT_TOLERANCE):
                name = situation.input_name(position)
                problems.append(
                    self.failed(
                        FindingKind.NONDETERMINISTIC_BACKWARD,
                        f"{name}: two backward passes on the same input and cotangent give different gradients",
                        input=name,
                    )
                )
        yield from problems or self._interleaved(situation, reference)
        if not problems:
            yield from self._twice(situation, failed, second, third)

    def _interleaved(self, situation: Situation, reference: Gradients) -> Iterator[Evidence]:
        """Another forward, on other values, between forward and backward."""
        subject = situation.subject
        other = [
            replace(a, value=a.value * (1 + 2.0**-4) + 2.0**-6)
            if a.is_tensor and a.requires_grad and np.size(a.value)
            else a
            for a in subject.arguments
        ]
        gradients = subject.backward_interleaved(situation.cotangents(), other)
        if gradients is None:
            return
        for position, one, two in zip(subject.active, reference, gradients, strict=True):
            if relative_gap(one, two) > situation.tolerance(REPEAT_TOLERANCE):
                name = situation.input_name(position)
                yield self.failed(
                    FindingKind.STATEFUL,
                    f"{name}: its gradient changes when forward is called on other inputs before backward runs: "
                    "something is kept on the class or module instead of ctx",
                    input=name,
                )
                return
        yield self.passed()

    def _twice(
        self, situation: Situation, failed: UserCodeError | None, second: Gradients, third: Gradients
    ) -> Iterator[Evidence]:
        """What came of a backward pass through a graph that an earlier one kept with retain_graph."""
        if failed is not None:
            yield self.failed(
                FindingKind.SECOND_BACKWARD_FAILS,
                f"a second backward through the retained graph fails: {failed}",
                raised=failed,
            )
            return
        for position, one, two in zip(situation.subject.active, second, third, strict=True):
            if relative_gap(one, two) > situation.tolerance(REPEAT_TOLERANCE):
                name = situation.input_name(position)
                yield self.failed(
                    FindingKind.SECOND_BACKWARD_FAILS,
                    f"{name}: a second backward through the retained graph gives another gradient",
                    input=name,
                )
                return
