"""Number arguments at other values: a constant of 1 or 0 can hide a missing factor or term."""

from collections.abc import Iterator
from dataclasses import replace
from typing import final

import numpy as np

from gradcli.backends.base import Subject
from gradcli.cases import Argument
from gradcli.checks.base import Check, Situation
from gradcli.checks.gradient import comparable
from gradcli.checks.other_points.numbers import (
    chooses_an_axis,
    indices_to_ignore,
    is_formula_constant,
    is_ignored_by_some,
    loops_until_satisfied,
    may_lay_out,
    other_axes,
    other_values,
    sets_accuracy,
)
from gradcli.checks.variants import variant
from gradcli.errors import UserCodeError
from gradcli.results import Evidence
from gradcli.verdict import Verdict


@final
class ConstantsCheck(Check):
    """The gradients stay right at other values of number arguments: 1 or 0 can hide that backward leaves one out."""

    name = "constants"
    sentence = "the gradients stay right for other values of the numeric (non-tensor) arguments"

    def run(self, situation: Situation) -> Iterator[Evidence]:
        """Verify once for another value of each number argument, defaults included, that forward accepts."""
        subject = situation.subject
        if not comparable(situation):
            return
        given, costly = with_defaults(subject), situation.map_of(subject, 1).is_costly
        for position, argument in enumerate(given):
            if not is_formula_constant(argument) or (costly and sets_accuracy(argument.name)):
                continue  # what sets an accuracy is always excused: not worth trying where each call is slow
            if is_ignored_by_some(argument, given):
                continue
            axes = other_axes(argument, given)
            for value in indices_to_ignore(argument, given) or (other_values(argument.value) if axes is None else axes):
                arguments = list(given)
                arguments[position] = replace(argument, value=value)
                other = _accepted(subject, arguments)
                if other is not None and not (may_lay_out(argument) and _shapes(other) != _shapes(subject)):
                    yield from self._tried(situation, other, argument, value)
                    break

    def _tried(self, situation: Situation, other: Subject, argument: Argument, value: object) -> Iterator[Evidence]:
        """The evidence at another value of the argument; a note instead if a wrong gradient is excused there."""
        label = f"with {argument.name}={value!r} (given: {argument.value!r})"
        found = list(variant(self, situation, other, label, None, refusals=chooses_an_axis(argument)))
        wrong = [e for e in found if e.verdict is Verdict.FAILED]
        excuse = _excuse(situation.subject, other, argument) if wrong else None
        if excuse is None:
            yield from found
            return
        names = " and ".join(dict.fromkeys(str(e.input) for e in wrong))
        yield self.passed(f"the gradient of {names} is wrong {label}; not counted as a failure, because {excuse}")


def _excuse(subject: Subject, other: Subject, argument: Argument) -> str | None:
    """Why a wrong gradient at another value of a number is not a mistake in backward; None if it is one.

    An implicit derivative is exact only in the limit of an iteration, so that its error depends on where forward stops.
    A number that only backward uses damps, scales or clips the gradient on purpose. The gradient for any other number
    has to be right at every value.
    """
    if argument.fixed and _same_forward(subject, other):
        return (
            f"you gave {argument.name} and forward does not depend on it, so backward may scale or clip the "
            "gradient by it on purpose"
        )
    if sets_accuracy(argument.name):
        return f"{argument.name} sets how accurate forward is, and so how accurate the gradient can be"
    if loops_until_satisfied(subject, other, argument.value):
        return f"{argument.name} decides how many iterations forward runs, and so how accurate the gradient can be"
    return None


def _same_forward(subject: Subject, other: Subject) -> bool:
    pairs = zip(subject.first_call.outputs, other.first_call.outputs, strict=True)
    return all(np.array_equal(one, two, equal_nan=one.dtype.kind in "fc") for one, two in pairs)


def _accepted(subject: Subject, arguments: list[Argument]) -> Subject | None:
    """The Function at these arguments, None where forward refuses them or is not finite."""
    try:
        other = subject.rebind(arguments)
        outputs = other.first_call.outputs
    except UserCodeError:
        return None
    numbers = [o for o in outputs if o.dtype.kind in "fc"]
    usable = all(o.size > 0 and bool(np.isfinite(o).all()) for o in numbers)
    return other if usable and other.output_numbers == subject.output_numbers else None


def _shapes(subject: Subject) -> list[tuple[int, ...]]:
    return [output.shape for output in subject.first_call.outputs]


def with_defaults(subject: Subject) -> list[Argument]:
    """The subject's arguments, and the defaults of those left out, by keyword if forward takes them only so."""
    given = list(subject.arguments)
    names = {argument.name for argument in given}
    left = [p for p in subject.info.parameters if p.has_default and p.name not in names]
    made = [Argument(name=p.name, value=p.default, is_tensor=False, keyword=p.keyword_only) for p in left]
    return given + made
