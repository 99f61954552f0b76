"""Sizes of the leading axis other than the one given, down to none at all."""

import itertools
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from gradcli.cases import Argument
from gradcli.checks.base import Check, Situation
from gradcli.checks.batch.all_sizes import calls_at_other_sizes, seems_wrong_there, shapes_of
from gradcli.checks.batch.coincident import Coincident, coincident_batches
from gradcli.checks.batch.parts import follows_from_given, follows_from_parts
from gradcli.checks.batch.resizing import (
    LONG,
    Batch,
    Resized,
    batches,
    call_resized,
    framework_fails_too,
    seems_wrong,
)
from gradcli.checks.batch.stacked import calls_with_a_batch
from gradcli.checks.gradient import comparable
from gradcli.checks.other_points.failing import failures, failures_in_other_orders
from gradcli.checks.other_points.proof import Undecided, Wrong, found_at, measured, note_of, simplest, wrong_at
from gradcli.checks.out_of_bounds import accesses_at
from gradcli.checks.seeding import all_finite
from gradcli.errors import OverrunError
from gradcli.findings import FindingKind
from gradcli.results import Evidence
from gradcli.verdict import Verdict

_LARGE = 5
_CONFIRMED, _MOVED = 2, 0x73697A65
"""At how many other sets of values a gradient must be wrong at a size, too; and the seed of these values."""
_ARBITRATED = 2
"""Differences decide at so many sizes at most: with a noisy forward every size seems wrong."""

_MAY_BELONG_TOGETHER = (
    "; this is reported only as a note, because another axis is as long, and the two may be meant to be; to make it a "
    "failure, give inputs in which the two differ"
)
_REPEATED = "a whole number is repeated there, and those you gave are all different"


class BatchCheck(Check):
    """A property that holds for every batch size."""

    optional = True

    def run(self, situation: Situation) -> Iterator[Evidence]:
        """Try each batch axis, once for each case, if the user wrote a backward; stop at the first mistake."""
        wanted = situation.sweep or self.name in situation.settings.only
        if not wanted or situation.subject.info.backward is None or not comparable(situation):
            return
        found: list[str | None] = []
        for each in self._each(situation):
            if isinstance(each, Evidence):
                yield each
                return
            found.append(each)
        if found:
            yield self.passed(next(filter(None, found), None))

    def _each(self, situation: Situation) -> Iterator[Evidence | str | None]:
        for batch in batches(situation):
            yield from self.along(situation, batch)
        yield from self.further(situation)

    def is_dear(self, situation: Situation) -> bool:
        """Whether another size takes a compilation, which is slow, and the check was not requested by name."""
        return situation.subject.compiles_shapes and self.name not in situation.settings.only

    @abstractmethod
    def along(self, situation: Situation, batch: Batch) -> Iterator[Evidence | str | None]:
        """What is wrong or undecided (a note) at each other size of the batch that forward accepts; None if nothing."""

    def further(self, situation: Situation) -> Iterator[Evidence | str | None]:  # noqa: ARG002
        """What is wrong at other sizes that are not a batch's; by default none are tried."""
        yield from ()


@final
class SizesCheck(BatchCheck):
    """The gradients are right for other sizes of the batch and of all axes."""

    name = "sizes"
    sentence = (
        "the gradients are right for the other batch sizes that forward accepts, and for longer axes, axes of one "
        "entry, equal sizes and tall matrices in place of wide ones"
    )

    def along(self, situation: Situation, batch: Batch) -> Iterator[Evidence | str | None]:
        """Try a larger size, 2 or 3, and 1; the last only if another is accepted, since 1 may be broadcast."""
        accepted = asked = 0
        for size in self._others(situation, batch):
            if size == 1 and not accepted:
                continue
            with accesses_at(situation, batch, size) as accesses:
                follows = size == batch.size + 1 > LONG and follows_from_given(situation, batch)
                call = None if follows else call_resized(situation, batch, size)
            if (outside := accesses.problem(self)) is not None:
                yield outside
                continue
            if follows and not accesses.found:
                accepted += 1
                yield None
                continue
            if call is None or accesses.found:
                continue
            accepted += 1
            if call.error is not None:
                yield self._raised(situation, batch, size, call)
            elif asked < _ARBITRATED and seems_wrong(call) and not follows_from_parts(situation, batch, size, call):
                asked += 1
                yield self._wrong(situation, batch, size, call)
            else:
                yield None

    def _others(self, situation: Situation, batch: Batch) -> tuple[int, ...]:
        """Sizes to try, the given one aside: only a larger one if a size is costly, or if no output has the axis."""
        size = batch.size
        larger = _LARGE if size < _LARGE else size + 1
        if self.is_dear(situation) or not batch.is_axis_of_any(_outputs(situation)):
            return (larger,)
        return tuple(other for other in (larger, 3 if size == 2 else 2, 1) if other != size)

    def further(self, situation: Situation) -> Iterator[Evidence | str | None]:
        """Try other sizes along all axes, and a batch in front; a wrong gradient there is a failure.

        It is a note if the user gave the sizes. Batch axes that are as long as other axes are tried as well.
        """
        asked, dear = 0, self.is_dear(situation)
        coincident = [] if dear else list(coincident_batches(situation))
        for found in [each for each in coincident if each.is_sure]:
            yield from self._along_coincident(situation, found)
        for call in itertools.chain(calls_at_other_sizes(situation, few=dear), calls_with_a_batch(situation)):
            if asked < _ARBITRATED and seems_wrong_there(situation, call):
                asked += 1
                yield from self._at_all_sizes(situation, call.arguments)
            yield None
        for found in [each for each in coincident if not each.is_sure]:
            yield from self._along_coincident(situation, found)

    def _along_coincident(self, situation: Situation, found: Coincident) -> Iterator[Evidence | str | None]:
        """What is wrong at two other sizes of an axis as long as another one; what backward refuses is skipped.

        It is a note where the axes may be meant to have the same size.
        """
        batch = found.batch
        for size in self._others(situation, batch)[:2]:
            call = call_resized(situation, batch, size)
            if call is None or call.error is not None:
                continue
            if not seems_wrong(call) or follows_from_parts(situation, batch, size, call):
                yield None
                continue
            wrong = self._wrong(situation, batch, size, call)
            if isinstance(wrong, Evidence) and wrong.finding is not None and not found.is_sure:
                wrong = self.passed(wrong.finding.message + _MAY_BELONG_TOGETHER)
            yield wrong
            return

    def _at_all_sizes(self, situation: Situation, arguments: Sequence[Argument]) -> Iterator[Evidence | str | None]:
        wrong = found_at(situation, arguments)
        if isinstance(wrong, Undecided):
            yield _undecided(situation, wrong, arguments)
        if not isinstance(wrong, Wrong) or not is_about_the_size(situation, arguments):
            return
        if situation.sizes_given:
            arguments, wrong = simplest(situation, arguments, wrong)
            why = f"you gave the sizes, and these are others ({shapes_of(arguments)})"
            yield self.passed(note_of(arguments, wrong, why))
            return
        label = (
            f"with {shapes_of(arguments)}, sizes that gradcli tried in addition to the inferred ones; if such sizes "
            "cannot occur in your program, give the sizes that can, which makes this a note"
        )
        yield from failures(self.name, situation, arguments, label)

    def _raised(self, situation: Situation, batch: Batch, size: int, call: Resized) -> Evidence:
        situation.reference()  # raises if backward fails at the given size, too
        return self.failed(
            FindingKind.BATCH_SIZE,
            f"forward accepts {size} as the size of the leading axis of {batch.name} (given: {batch.size}), but "
            f"backward fails: {call.error}",
            input=batch.name,
            raised=call.error,
        )

    def _wrong(self, situation: Situation, batch: Batch, size: int, call: Resized) -> Evidence | str | None:
        wrong = _proven(situation, call)
        if isinstance(wrong, Undecided):
            return _undecided(situation, wrong, call.arguments)
        if wrong is None:
            return None
        # If the gradient check was left out, the gradient may be wrong at the given size, too: not a matter of sizes.
        if not situation.settings.wants("gradient") and wrong_at(situation, situation.subject.arguments) is not None:
            return None
        if in_other_orders := failures_in_other_orders(self.name, situation):
            return in_other_orders[0]
        repeated = batch.with_repetition(situation.subject, call.arguments)
        if repeated is not None and (there := wrong_at(situation, repeated)) is not None:
            return self.passed(note_of(*simplest(situation, repeated, there), _REPEATED))
        return self.failed(
            FindingKind.BATCH_SIZE,
            f"the gradient of {wrong.input} is wrong when the leading axis of {batch.name} has size {size}, not "
            f"{batch.size}{measured(wrong)}",
            input=wrong.input,
        )


@final
class EmptyCheck(BatchCheck):
    """Gradients of empty inputs are right."""

    name = "empty"
    sentence = "where forward accepts an empty batch, backward returns gradients of the right shape and value"

    def along(self, situation: Situation, batch: Batch) -> Iterator[Evidence | None]:
        """Try a batch of size 0."""
        if self.is_dear(situation):
            backend = situation.subject.info.backend
            note = (
                f"left out, because {backend} compiles the function again for another size; to run this check, give "
                f"--only {self.name}"
            )
            yield Evidence(check=self.name, verdict=Verdict.SKIPPED, note=note)
            return
        kept = batch.is_axis_of_any(_outputs(situation))
        call = call_resized(situation, batch, 0, steps=False) if kept else None
        if call is not None:
            yield self._problem(situation, batch, call)

    def _problem(self, situation: Situation, batch: Batch, call: Resized) -> Evidence | None:
        where = f"when the leading axis of {batch.name} has size 0"
        nothing_there = not any(call.result.outputs[n].size for n in call.result.numbers)
        if call.error is not None:
            # These outputs reduce over no entries, as a product of no factors does: backward may raise there.
            if not nothing_there:
                return None
            if isinstance(call.error, OverrunError):
                raise call.error
            return self.passed(
                f"backward raises {where}, which forward accepts; this is reported only as a note, because no wrong "
                f"gradient is returned: {call.error}"
            )
        return self._misshapen(situation, call, where) or self._wrong(situation, batch, call, where)

    def _misshapen(self, situation: Situation, call: Resized, where: str) -> Evidence | None:
        """The failure for a gradient of a wrong shape, one not finite, or one that is not zero for empty outputs."""
        nothing_there = not any(call.result.outputs[n].size for n in call.result.numbers)
        for position, gradient in zip(call.result.active, call.result.gradients or (), strict=True):
            shape, problem = call.arguments[position].shape, None
            if gradient is None:
                continue
            if gradient.shape != shape:
                problem = f"has shape {gradient.shape}, expected {shape}"
            elif not all_finite([gradient]) and not framework_fails_too(situation, call.arguments):
                problem = "is not finite"
            elif nothing_there and bool(np.any(np.isfinite(gradient) & (gradient != 0))):
                problem = "is not zero, although the output is empty"
            if problem is not None:
                name = situation.input_name(position)
                return self.failed(FindingKind.ZERO_SIZE, f"the gradient of {name} {problem} {where}", input=name)
        return None

    def _wrong(self, situation: Situation, batch: Batch, call: Resized, where: str) -> Evidence | None:
        """A wrong gradient of a nonempty input through nonempty outputs."""
        inputs = any(call.arguments[position].value.size for position in call.result.active)
        outputs = any(call.result.outputs[number].size for number in call.result.numbers)
        again = call_resized(situation, batch, 0) if inputs and outputs else None
        wrong = _proven(situation, again) if again is not None and seems_wrong(again) else None
        if not isinstance(wrong, Wrong):
            return None
        message = f"the gradient of {wrong.input} is wrong {where}{measured(wrong)}"
        return self.failed(FindingKind.ZERO_SIZE, message, input=wrong.input)


def _outputs(situation: Situation) -> list[NDArray[Any]]:
    subject = situation.subject
    return [subject.first_call.outputs[number] for number in subject.output_numbers]


def _undecided(situation: Situation, found: Undecided, arguments: Sequence[Argument]) -> str | None:
    """The note about sizes at which a gradient is left undecided; None if it is so at the sizes given as well."""
    if isinstance(found_at(situation, situation.subject.arguments), Undecided):
        return None
    why = "" if found.note is None else f": {found.note}"
    return (
        f"with {shapes_of(arguments)}, sizes that gradcli chose, the gradient of {found.input} is neither proven wrong "
        f"nor found right{why}; to check such sizes, give inputs that have them"
    )


def _proven(situation: Situation, call: Resized) -> Wrong | Undecided | None:
    """What differences find at another size; None if that is right, or the framework's own derivative fails too.

    A gradient that is wrong at a single point only is not reported: the values were chosen by this check.
    """
    gradients = call.result.gradients or ()
    if not all_finite(gradients) and framework_fails_too(situation, call.arguments):
        return None
    wrong = found_at(situation, call.arguments)
    if isinstance(wrong, Wrong) and (wrong.at_one_point or not is_about_the_size(situation, call.arguments)):
        return None
    return wrong


def is_about_the_size(situation: Situation, arguments: Sequence[Argument]) -> bool:
    """Whether a gradient is wrong at other sizes for other values as well, and all are right at the sizes given.

    Cut or stretched values may form a singular matrix, or lie where forward is not smooth: the mistake then does not
    depend on the size. It may be the gradient of another input that is wrong for other values.
    """
    for number in range(_CONFIRMED):
        again = wrong_at(situation, _moved(arguments, number))
        if again is None or again.at_one_point:
            return False
    return wrong_at(situation, _moved(situation.subject.arguments, 0)) is None


def _moved(arguments: Sequence[Argument], number: int) -> tuple[Argument, ...]:
    """The arguments with every entry that gets a gradient changed by up to an eighth, differently in each call."""
    rng = np.random.default_rng([_MOVED, number])
    return tuple(
        replace(a, value=a.value * (1 + rng.uniform(-0.125, 0.125, a.value.shape)).astype(a.value.real.dtype))
        if a.is_tensor and a.requires_grad
        else a
        for a in arguments
    )
