"""backward gives the same gradient each time: repeated, and with another call in between."""

from collections.abc import Iterator
from dataclasses import replace
from typing import final

import numpy as np

from gradcli.checks.base import Check, Situation, relative_gap
from gradcli.errors import UserCodeError
from gradcli.findings import FindingKind
from gradcli.results import Evidence

REPEAT_TOLERANCE = 1e-9
"""Relative; the same code on the same numbers differs by a reordering of sums at most."""


@final
class RepeatCheck(Check):
    """Two backward passes agree, with and without another forward in between."""

    name = "repeat"
    sentence = "backward gives the same gradient when it is repeated, and when another forward runs in between"

    def run(self, situation: Situation) -> Iterator[Evidence]:
        """Compare repeated gradients."""
        subject = situation.subject
        cotangents = situation.cotangents()
        first, second = subject.backward(cotangents), subject.backward(cotangents)
        problems = []
        for position, one, other in zip(subject.active, first, second, strict=True):
            if relative_gap(one, other) > situation.tolerance(REPEAT_TOLERANCE):
                name = situation.input_name(position)
                problems.append(
                    self.failed(
                        FindingKind.NONDETERMINISTIC_BACKWARD,
                        f"{name}: two backward passes on the same input and cotangent give different gradients",
                        input=name,
                    )
                )
        yield from problems or self._interleaved(situation, first)
        if not problems:
            yield from self._twice(situation)

    def _interleaved(self, situation: Situation, reference: tuple[object, ...]) -> Iterator[Evidence]:
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
            if relative_gap(one, two) > situation.tolerance(REPEAT_TOLERANCE):  # type: ignore[arg-type]
                name = situation.input_name(position)
                yield self.failed(
                    FindingKind.STATEFUL,
                    f"{name}: its gradient changes when forward is called on other inputs before backward runs: "
                    "something is kept on the class or module instead of ctx",
                    input=name,
                )
                return
        yield self.passed()

    def _twice(self, situation: Situation) -> Iterator[Evidence]:
        """A second backward through the same graph, kept with retain_graph."""
        try:
            first, second = situation.subject.backward_twice(situation.cotangents())
        except UserCodeError as error:
            yield self.failed(
                FindingKind.SECOND_BACKWARD_FAILS,
                f"a second backward through the retained graph fails: {error}",
                raised=error,
            )
            return
        for position, one, two in zip(situation.subject.active, first, second, strict=True):
            if relative_gap(one, two) > situation.tolerance(REPEAT_TOLERANCE):
                name = situation.input_name(position)
                yield self.failed(
                    FindingKind.SECOND_BACKWARD_FAILS,
                    f"{name}: a second backward through the retained graph gives another gradient",
                    input=name,
                )
                return
