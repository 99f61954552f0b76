"""A function must give the same results with and without jit, under which its Python code runs once, on tracers."""

from collections.abc import Iterator
from typing import final

from gradcli.checks.base import Check, Situation, differs, relative_gap
from gradcli.checks.gradient import comparable
from gradcli.errors import UserCodeError
from gradcli.findings import FindingKind
from gradcli.results import Evidence

_TOLERANCE = 128 * 2.0**-24
"""Relative; a compiler reorders sums, in float32 where the user's code computes in it."""
_ROUNDINGS = 32
"""Units of the coarsest roundoff inside: a compiler need not round results between two operations to it."""


@final
class CompilationCheck(Check):
    """Outputs and gradients agree under jit and without it."""

    name = "compilation"
    sentence = "outputs and gradients are the same under jit and without it"

    def run(self, situation: Situation) -> Iterator[Evidence]:
        """Compare with one call under jit, or with one without jit if the target is jitted."""
        subject = situation.subject
        if not comparable(situation):
            return
        cotangents = situation.cotangents()
        try:
            other = subject.otherwise_compiled(cotangents)
        except UserCodeError as error:
            yield self.failed(
                FindingKind.JIT_MISMATCH,
                "the function works as you gave it, but raises under jit (or, if you gave a jitted function, without "
                f"jit): {error}",
                raised=error,
            )
            return
        if other is None:
            return
        allowed = max(_TOLERANCE, _ROUNDINGS * other.roundoff)
        outputs = subject.first_call.outputs
        for number, output in zip(subject.output_numbers, other.outputs, strict=True):
            if relative_gap(outputs[number], output) > situation.tolerance(allowed):
                yield self.failed(
                    FindingKind.JIT_MISMATCH,
                    f"output {number} has other values with jit than without it",
                    output=number,
                )
                return
        gradients = subject.backward(cotangents)
        for place, (one, two) in enumerate(zip(gradients, other.gradients, strict=True)):
            if differs(situation, place, one, two, allowed):
                name = situation.input_name(subject.active[place])
                yield self.failed(
                    FindingKind.JIT_MISMATCH,
                    f"{name}: its gradient with jit differs from its gradient without jit",
                    input=name,
                )
                return
        yield self.passed()
