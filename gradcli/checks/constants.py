"""Number arguments at other values: a constant of 1 or 0 can hide a missing factor or term."""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, final

import numpy as np

from gradcli.backends.base import Subject
from gradcli.cases import Argument, with_defaults
from gradcli.checks.base import Check, Situation
from gradcli.checks.batch.all_sizes import shapes_of
from gradcli.checks.gradient import comparable
from gradcli.checks.iteration import reaches_its_limit
from gradcli.checks.other_points.changes import label_of
from gradcli.checks.other_points.numbers import (
    are_close,
    changes_in_order,
    chooses_an_axis,
    keeps_order,
    loops_until_satisfied,
    may_lay_out,
    padding_for,
    places_windows,
    sets_accuracy,
    values_to_try,
    with_changes,
)
from gradcli.checks.other_points.thresholds import compared_with_indices
from gradcli.checks.other_points.tuples import are_numbers, in_few_digits
from gradcli.checks.variants import variant
from gradcli.errors import UserCodeError
from gradcli.numerics.maps.vector_map import MOST_EVALUATIONS
from gradcli.results import Evidence
from gradcli.targets import TargetInfo
from gradcli.verdict import Verdict

if TYPE_CHECKING:
    from gradcli.checks.other_points.sizes_of_numbers import LongerAxis

_FOR_A_NOTE = 500
"""The evaluations of forward that another value of a number may take if what is wrong there is always excused: a right
rough function of few entries takes that many."""
_PLAIN = (bool, int, float, complex, str, type(None))
_SETS, _VERIFIED = 8, 2
"""How many sets of numbers that change together forward is called with, and how many of them are verified at most."""
_APART = 0.07
"""Each further real number that changes together with others goes that much less far, relative to its change."""
_VISIBLE = 5e-3
"""Relative. Where an iteration ends at a tolerance at which the given number passes, the error is smaller."""
_SHAPES = 6
"""With how many sets of other shapes forward is called for a number whose other values it refuses."""


@final
class ConstantsCheck(Check):
    """The gradients stay right at other values of number arguments: 1 or 0 can hide that backward leaves one out."""

    name = "constants"
    sentence = "the gradients stay right for other values of the numeric (non-tensor) arguments"

    def run(self, situation: Situation) -> Iterator[Evidence]:
        """Verify once for another value of each number argument, defaults included, and once for all whole numbers."""
        subject = situation.subject
        if not comparable(situation):
            return
        given, costly = with_defaults(subject.arguments, subject.info), situation.map_of(subject, 1).is_costly
        taken: dict[int, Mapping[int, Any]] = {}
        is_wrong = False
        for position, argument in enumerate(given):
            if costly and sets_accuracy(argument.name):
                continue  # what sets an accuracy is always excused: not worth trying where each call is slow
            values = self._at_other_values(situation, position, given, taken)
            for evidence in itertools.chain(values, self._at_other_settings(situation, position, given)):
                is_wrong = is_wrong or evidence.verdict is Verdict.FAILED
                yield evidence
            if not costly and not is_wrong:
                yield from self._at_longer_output(situation, position, given)
        if not is_wrong:
            yield from self._together(situation, given, taken)

    def _at_other_values(
        self, situation: Situation, position: int, given: Sequence[Argument], taken: dict[int, Mapping[int, Any]]
    ) -> Iterator[Evidence]:
        """The evidence at the first other value of one argument that forward accepts.

        A further value is tried for a stride, a tuple or the like if this one changes nothing or backward refuses it.
        What was changed goes into `taken`, if it may change together with others.
        """
        subject, argument, is_refused, is_accepted = situation.subject, given[position], False, False
        for changes in _changes(position, given, subject.info):
            other = _accepted(subject, with_changes(changes, position, given), any_count=True)
            if other is None or (may_lay_out(argument) and _shapes(other) != _shapes(subject)):
                continue
            is_accepted = True
            label = label_of(changes, given, subject.info)
            evidence = list(self._tried(situation, other, argument, label, new=changes[position]))
            refuses = all(e.verdict is Verdict.PASSED and e.reference is None for e in evidence)
            is_excused = any(e.reference == self.passed().reference for e in evidence)
            if _goes_with_others(argument) and not is_excused and (_has_further_values(argument) or not refuses):
                taken.setdefault(position, changes)
            if not _has_further_values(argument):
                yield from evidence
                if refuses and chooses_an_axis(argument) and not situation.sizes_given:
                    yield from self._at_equal_lengths(situation, position, changes[position], given)
                is_idle = type(argument.value) is int and not refuses and _same_forward(subject, other)
                if is_idle and not situation.sizes_given:
                    yield from self._at_other_shapes(situation, position, given)
                return
            yield from () if refuses and is_refused else evidence
            is_refused = is_refused or refuses
            is_wrong = any(e.verdict is Verdict.FAILED for e in evidence)
            if is_wrong or not (refuses or (len(changes) == 1 and _same_forward(subject, other))):
                return
        if not is_accepted and not situation.sizes_given:
            yield from self._at_other_shapes(situation, position, given)

    def _at_other_settings(self, situation: Situation, position: int, given: Sequence[Argument]) -> Iterator[Evidence]:
        """The evidence where one of the settings that an argument holds changes."""
        subject = situation.subject
        if given[position].is_tensor or type(given[position].value) in _PLAIN:
            return
        from gradcli.checks.other_points.settings import settings_of

        for setting in settings_of(given[position]):
            for value, changed in setting.others(given):
                other = _accepted(subject, [*given[:position], changed, *given[position + 1 :]])
                if other is None or (may_lay_out(setting.entry) and _shapes(other) != _shapes(subject)):
                    continue
                label = label_of({position: changed.value}, given, subject.info)
                yield from self._tried(situation, other, setting.entry, label, new=value)
                if not setting.tries_all:
                    break

    def _at_other_shapes(self, situation: Situation, position: int, given: Sequence[Argument]) -> Iterator[Evidence]:
        """The evidence at another value of a number that forward refuses at these inputs, at inputs of other shapes.

        So it is where the number changes nothing: four columns in three pieces are two pieces again.
        Forward chooses the sizes it takes, so that what backward refuses there says nothing.
        """
        from gradcli.checks.other_points.other_shapes import at_other_shapes  # most functions have no numbers

        argument = given[position]
        values = [value for value in values_to_try(argument, given) if keeps_order({position: value}, given)]
        sets = (each for value in values for each in at_other_shapes(position, value, given))
        for arguments in itertools.islice(sets, _SHAPES):
            other = _accepted(situation.subject, arguments, any_count=True)
            if other is not None and other.active == situation.subject.active:
                label = label_of({position: arguments[position].value}, given, other.info)
                label = f"{label} and {shapes_of(arguments)}"
                yield from self._tried(situation, other, argument, label)
                return

    def _at_equal_lengths(
        self, situation: Situation, position: int, value: object, given: Sequence[Argument]
    ) -> Iterator[Evidence]:
        """Failures where the old and the new axis are equally long, for a new one that backward refuses.

        `grad.unsqueeze(-1)` for `grad.unsqueeze(dim)` is refused where lengths differ. Where they are equal, it is
        wrong without an error.
        """
        from gradcli.checks.other_points.other_shapes import at_other_shapes

        for arguments in at_other_shapes(position, value, given):
            other = _accepted(situation.subject, arguments)
            if other is not None and other.active == situation.subject.active:
                label = f"{label_of({position: value}, given, other.info)} and {shapes_of(arguments)}"
                yield from (e for e in variant(self, situation, other, label, None) if e.verdict is Verdict.FAILED)

    def _at_longer_output(self, situation: Situation, position: int, given: Sequence[Argument]) -> Iterator[Evidence]:
        """The evidence where an output, whose length is a number, is longer than the input."""
        subject, argument = situation.subject, given[position]
        if argument.is_tensor:
            return
        from gradcli.checks.other_points.output_lengths import is_output_length, longer_output

        value = longer_output(subject, argument)
        if value is None:
            return
        other = _accepted(subject, [*given[:position], replace(argument, value=value), *given[position + 1 :]])
        if other is not None and is_output_length(argument, value, subject.first_call.outputs, other):
            label = label_of({position: value}, given, subject.info)
            yield from self._tried(situation, other, argument, label)

    def _tried(
        self, situation: Situation, other: Subject, argument: Argument, label: str, *, new: object = None
    ) -> Iterator[Evidence]:
        """The evidence at another value of the argument; a note instead if a wrong gradient is excused there.

        `new` is that value. Without it, a gradient that is right if an axis is longer as well is not excused.
        """
        refusals = chooses_an_axis(argument) or _has_further_values(argument)
        budget = _FOR_A_NOTE if sets_accuracy(argument.name) else MOST_EVALUATIONS
        found = list(variant(self, situation, other, label, None, refusals=refusals, budget=budget))
        wrong = [e for e in found if e.verdict is Verdict.FAILED]
        error = max((e.max_rel_error or 0.0 for e in wrong), default=0.0)
        excuse = _excuse(situation.subject, other, argument, error) if wrong else None
        may_grow = bool(wrong) and excuse is None and new is not None and not refusals
        longer = self._axis_for(situation, other, argument, new) if may_grow else None
        if longer is not None:
            axis = longer.named(other.arguments)
            excuse = f"it is right if the length of {axis} changes by {longer.more:+d} as well"
            yield from self._others_with(situation, longer, argument)
        if excuse is None:
            yield from found
            return
        names = " and ".join(dict.fromkeys(str(e.input) for e in wrong))
        yield self.passed(f"the gradient of {names} is wrong {label}; not counted as a failure, because {excuse}")

    def _together(
        self, situation: Situation, given: Sequence[Argument], taken: Mapping[int, Mapping[int, Any]]
    ) -> Iterator[Evidence]:
        """The failures where all numbers that were `taken` one by one change together: whole ones, then real ones too.

        A rule for windows may be right for a stride alone and a dilation alone, and mix them up. A term with the
        product of two numbers is zero while one of them is.
        """
        whole = {n: changes for n, changes in taken.items() if not isinstance(given[n].value, float)}
        for group in [whole, taken] if len(whole) < len(taken) else [whole]:
            found = list(self._jointly(situation, given, group))
            yield from found
            if found:
                return

    def _jointly(
        self, situation: Situation, given: Sequence[Argument], taken: Mapping[int, Mapping[int, Any]]
    ) -> Iterator[Evidence]:
        """The failures where all of these numbers change together."""
        verified = 0
        for changes in _joint_changes(given, taken):
            other = _accepted(
                situation.subject, [replace(a, value=changes.get(n, a.value)) for n, a in enumerate(given)]
            )
            if other is None or any(_excuse(situation.subject, other, given[n]) for n in taken):
                continue
            found = list(variant(self, situation, other, label_of(changes, given, other.info), None))
            yield from (e for e in found if e.verdict is Verdict.FAILED)
            verified += 1
            if verified == _VERIFIED or any(e.reference is not None for e in found):
                return

    def _axis_for(self, situation: Situation, other: Subject, argument: Argument, value: object) -> "LongerAxis | None":
        """The axis with which the gradient is right where it changes with the number, which forward need not ask for.

        A band of 3 diagonals is stored in 3 columns, and forward may run with another number of either. Numbers that
        choose an axis or place windows are no lengths: a mistake that confuses two axes is right where both are equal.
        Where several numbers changed, the axis may be as long as their sum.
        """
        from gradcli.checks.other_points.sizes_of_numbers import axes_for

        given = with_defaults(situation.subject.arguments, situation.subject.info)
        pairs = [(b.value, a.value) for a, b in zip(given, other.arguments, strict=False) if type(a.value) is int]
        total = argument.value + sum(new - old for new, old in pairs) if type(argument.value) is int else value
        for longer in (
            each for more in dict.fromkeys((value, total)) for each in axes_for(other.arguments, argument, more)
        ):
            found = self._with_axis(situation, longer, other.arguments, "")
            if found and not any(e.verdict is Verdict.FAILED or e.reference is None for e in found):
                return longer
        return None

    def _others_with(self, situation: Situation, longer: "LongerAxis", argument: Argument) -> Iterator[Evidence]:
        """Failures where another whole number changes with the axis, which the gradient has to be right for as well."""
        given = with_defaults(situation.subject.arguments, situation.subject.info)
        for position, each in enumerate(given):
            varies = type(each.value) is int and not chooses_an_axis(each) and bool(values_to_try(each, given))
            if varies and each.name != argument.name:
                value = each.value + longer.more
                label = label_of({position: value}, given, situation.subject.info)
                label = f"{label} and {longer.more:+d} in the length of {longer.named(given)}"
                changed = [*given[:position], replace(each, value=value), *given[position + 1 :]]
                found = self._with_axis(situation, longer, changed, label)
                yield from (e for e in found if e.verdict is Verdict.FAILED)

    def _with_axis(
        self, situation: Situation, longer: "LongerAxis", arguments: Sequence[Argument], label: str
    ) -> list[Evidence]:
        """The evidence at arguments with a longer axis; none where forward refuses them."""
        both = _accepted(situation.subject, longer.of(arguments))
        fits = both is not None and both.active == situation.subject.active
        return list(variant(self, situation, both, label, None)) if both is not None and fits else []


def _changes(position: int, given: Sequence[Argument], info: TargetInfo) -> Iterator[dict[int, Any]]:
    """The values to try for one argument, by position.

    A stride changes nothing if there is one window, and forward refuses a dilation for which the input is too short.
    They are tried with padding then, which makes room for more windows: larger ones first, since backward may be right
    for a stride of 1 alone. Numbers stay in order, as limits do.
    """
    argument = given[position]
    values = values_to_try(argument, given, argument.name in compared_with_indices(info, given))
    yield from changes_in_order(position, values, given)
    padding = padding_for(argument, given)
    if padding is not None:
        for room in values_to_try(given[padding], given):
            yield from ({position: value, padding: room} for value in reversed(values))


def _has_further_values(argument: Argument) -> bool:
    """Whether other values are tried if one changes nothing or backward refuses it."""
    return places_windows(argument) or are_numbers(argument)


def _goes_with_others(argument: Argument) -> bool:
    """Whether a number is also changed together with others: one that chooses neither an axis nor a layout."""
    if chooses_an_axis(argument) or may_lay_out(argument):
        return False
    return _has_further_values(argument) or type(argument.value) in (int, float)


def _joint_changes(given: Sequence[Argument], taken: Mapping[int, Mapping[int, Any]]) -> Iterator[Mapping[int, Any]]:
    """Sets of changes of all these arguments: first those that were taken one by one.

    Real numbers change by different factors, since equal ones would keep their ratios.
    """
    if len(taken) < 2:
        return
    room = {n: value for changes in taken.values() for n, value in changes.items()}
    values = [
        [
            in_few_digits(value - number * _APART * (value - given[position].value)) if type(value) is float else value
            for value in dict.fromkeys((changes[position], *values_to_try(given[position], given)))
        ]
        for number, (position, changes) in enumerate(taken.items())
    ]
    sets = (room | dict(zip(taken, chosen, strict=True)) for chosen in itertools.product(*values))
    yield from itertools.islice((changes for changes in sets if keeps_order(changes, given)), _SETS)


def _excuse(subject: Subject, other: Subject, argument: Argument, error: float = 0.0) -> str | None:
    """Why a wrong gradient at another value of a number is not a mistake in backward; None if it is one.

    An implicit derivative is exact only in the limit of an iteration, so that its error depends on where forward stops.
    A number that only backward uses damps, scales or clips the gradient on purpose. The gradient for any other number
    has to be right at every value. So has it for a real number that changes what the iteration converges to, as a bound
    of its solution does: the number of iterations then differs with the solution.
    """
    if argument.fixed and _same_forward(subject, other):
        return (
            f"you gave {argument.name} and forward does not depend on it, so backward may scale or clip the "
            "gradient by it on purpose"
        )
    if sets_accuracy(argument.name):
        return f"{argument.name} sets how accurate forward is, and so how accurate the gradient can be"
    changes_result = error > _VISIBLE and isinstance(argument.value, float) and not are_close(subject, other)
    if changes_result and not reaches_its_limit(subject, other.arguments):
        return None
    if loops_until_satisfied(subject, _of_twice_the_steps(subject, other, argument), argument.value):
        return f"{argument.name} decides how many iterations forward runs, and so how accurate the gradient can be"
    return None


def _of_twice_the_steps(subject: Subject, other: Subject, argument: Argument) -> Subject:
    """The Function with twice the whole number, or `other` where forward refuses that.

    An iteration that has converged changes as little in many steps as in one; a scheme in time changes more in each.
    """
    if type(argument.value) is not int or argument.value < 1:
        return other
    more = 2 * argument.value + 1  # odd: an iteration may go back and forth between two values
    given = [replace(a, value=more) if a.name == argument.name else a for a in other.arguments]
    return _accepted(subject, given) or other


def _same_forward(subject: Subject, other: Subject) -> bool:
    if len(subject.first_call.outputs) != len(other.first_call.outputs):
        return False
    pairs = zip(subject.first_call.outputs, other.first_call.outputs, strict=True)
    return all(np.array_equal(one, two, equal_nan=one.dtype.kind in "fc") for one, two in pairs)


def _accepted(subject: Subject, arguments: list[Argument], *, any_count: bool = False) -> Subject | None:
    """The Function at these arguments, None where forward refuses them or is not finite.

    Its differentiable outputs are the same ones, or of `any_count` where they are all outputs.
    """
    try:
        other = subject.rebind(arguments)
        outputs = other.first_call.outputs
    except UserCodeError:
        return None
    numbers = [o for o in outputs if o.dtype.kind in "fc"]
    usable = all(o.size > 0 and bool(np.isfinite(o).all()) for o in numbers)
    same = other.output_numbers == subject.output_numbers or (any_count and _has_all(subject) and _has_all(other))
    return other if usable and same else None


def _has_all(subject: Subject) -> bool:
    """Whether all outputs are differentiable."""
    return tuple(subject.output_numbers) == tuple(range(len(subject.first_call.outputs)))


def _shapes(subject: Subject) -> list[tuple[int, ...]]:
    return [output.shape for output in subject.first_call.outputs]
