"""Whether the gradients of a batch of another size are those of its parts, each a batch of the size that was given.

If the entries of a batch are independent, the gradients at another size follow from those at the given size, and are as
right as those. This holds even where finite differences cannot decide (at kinks, or if an iteration stops early), and
takes a few calls where a proof by differences takes hundreds of forwards.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gradcli.backends.tensor.call_records import CallResult
from gradcli.checks.base import Situation, relative_gap
from gradcli.checks.batch.resizing import TOLERANCE, Batch, Resized
from gradcli.checks.seeding import all_finite, signed_cotangents
from gradcli.errors import UserCodeError

Arrays = Sequence[NDArray[Any]]


def follows_from_parts(situation: Situation, batch: Batch, size: int, call: Resized) -> bool:
    """Whether outputs and gradients of a call at another size are those of its parts; False if that is unknown.

    The call is cut into pieces of the given size; the last one is filled up with entries whose outputs get no
    cotangent.
    """
    outputs = [call.result.outputs[number] for number in call.result.numbers]
    gradients = call.result.gradients
    if gradients is None or size == 0 or any(output.shape[:1] != (size,) for output in outputs):
        return False
    cotangents = signed_cotangents(outputs)
    total = [None if g is None else np.zeros_like(g) for g in gradients]
    for entries, count in _parts(size, batch.size):
        part = _called(situation, batch, call, entries, count, cotangents)
        if part is None or not _repeats(situation, outputs, part, entries, call.result):
            return False
        for place, position in enumerate(call.result.active):
            whole, piece = total[place], (part.gradients or ())[place]
            if whole is None or piece is None:
                if whole is not piece:
                    return False
            elif batch.is_in(situation.subject, situation.subject.arguments[position]):
                whole[entries[:count]] += piece[:count]
            else:
                whole += piece
    tolerance = situation.tolerance(TOLERANCE)
    return all_finite(total) and all(
        relative_gap(whole, gradient) <= tolerance for whole, gradient in zip(total, gradients, strict=True)
    )


def follows_from_given(situation: Situation, batch: Batch) -> bool:
    """Whether a batch with one more entry, a copy of the last, has the outputs and gradients of the given batch.

    The gradients at that size are then as right as those at the given size, entry by entry, and no difference has to be
    measured. False if that is unknown: where an input or output has no batch axis.
    """
    subject, tolerance = situation.subject, situation.tolerance(TOLERANCE)
    outputs = [subject.first_call.outputs[number] for number in subject.output_numbers]
    inside = [batch.is_in(subject, argument) for argument in subject.arguments]
    if not batch.is_axis_of_all(outputs) or not all(inside[position] for position in subject.active):
        return False
    arguments = [
        replace(a, value=_with_one_more(a.value)) if there else a
        for a, there in zip(subject.arguments, inside, strict=True)
    ]
    cotangents = situation.cotangents()
    try:
        found = subject.call_at(arguments, lambda _: [_with_one_more(cotangent) for cotangent in cotangents])
    except UserCodeError:
        return False
    if (found.numbers, found.active) != (subject.output_numbers, subject.active) or found.gradients is None:
        return False
    wanted = [*outputs, *situation.reference()]
    got = [*(found.outputs[number] for number in found.numbers), *found.gradients]
    return all(_has_one_more(one, other, tolerance) for one, other in zip(wanted, got, strict=True))


def _with_one_more(array: NDArray[Any]) -> NDArray[Any]:
    return np.concatenate([array, array[-1:]])


def _has_one_more(array: NDArray[Any] | None, longer: NDArray[Any] | None, tolerance: float) -> bool:
    """Whether the second array is the first with its last entry twice; also if both are None."""
    if array is None or longer is None:
        return array is longer
    if longer.shape != (len(array) + 1, *array.shape[1:]) or not all_finite([longer]):
        return False
    return relative_gap(array, longer[:-1]) <= tolerance and relative_gap(array[-1], longer[-1]) <= tolerance


def _parts(size: int, given: int) -> Iterator[tuple[NDArray[np.intp], int]]:
    """The entries of each part, and how many of them, from the first, are new; others fill up the last part."""
    for start in range(0, size, given):
        count = min(given, size - start)
        yield np.concatenate([np.arange(start, start + count), np.arange(given - count) % size]), count


def _called(
    situation: Situation, batch: Batch, call: Resized, entries: NDArray[np.intp], count: int, cotangents: Arrays
) -> CallResult | None:
    """The Function at some entries of a call, with their cotangents; None where it raises."""
    subject = situation.subject
    arguments = [
        replace(there, value=np.ascontiguousarray(there.value[entries])) if batch.is_in(subject, given) else there
        for there, given in zip(call.arguments, subject.arguments, strict=True)
    ]

    def seeds(outputs: Arrays) -> list[NDArray[Any]]:
        made = [np.zeros(output.shape, cotangent.dtype) for output, cotangent in zip(outputs, cotangents, strict=True)]
        for array, cotangent in zip(made, cotangents, strict=True):
            array[:count] = cotangent[entries[:count]]
        return made

    try:
        return subject.call_at(arguments, seeds)
    except (UserCodeError, ValueError, IndexError):  # the outputs are not a batch of this size
        return None


def _repeats(
    situation: Situation, outputs: Arrays, part: CallResult, entries: NDArray[np.intp], whole: CallResult
) -> bool:
    """Whether a part has the same outputs and active inputs as the whole, with the same values at its entries."""
    if (part.numbers, part.active) != (whole.numbers, whole.active) or part.gradients is None:
        return False
    tolerance = situation.tolerance(TOLERANCE)
    return all(
        relative_gap(output[entries], part.outputs[number]) <= tolerance
        for output, number in zip(outputs, part.numbers, strict=True)
    )
