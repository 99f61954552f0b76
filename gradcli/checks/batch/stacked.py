"""The inputs of a Function with a batch in front, where backward is written for any number of leading axes."""

import re
from collections.abc import Iterator
from dataclasses import replace
from functools import partial

import numpy as np

from gradcli.backends.tensor.call_records import CallResult
from gradcli.cases import Argument
from gradcli.checks.base import Situation, relative_gap
from gradcli.checks.batch.fixed import hints_of
from gradcli.checks.batch.resizing import TOLERANCE, Resized, call_at, is_held
from gradcli.checks.other_points.bounds import bounds_of, is_drawn
from gradcli.checks.seeding import all_finite

_ANY_LEADING_AXES = re.compile(r"\[\s*\.\.\.\s*,|[\"'][^\"'\n]*\.\.\.[^\"'\n]*->")
"""As in `g[..., None]` and `einsum("...ij,...j->...i", ...)`."""
_SECOND = 1.125
"""Every other entry of a batch is the input times this, where that lies in the input's domain."""


def calls_with_a_batch(situation: Situation) -> Iterator[Resized]:
    """The Function called with two entries side by side in a new leading axis, if forward gives its outputs stacked.

    All inputs get the axis, or the first alone. Nothing is tried if backward does not show that it takes further axes:
    forward is often laxer than the whole Function. What backward refuses is skipped, as nobody gets a wrong gradient;
    there are as many entries then as in an axis of the input, with which backward may confuse the new one.
    """
    subject = situation.subject
    tensors = [n for n, a in enumerate(subject.arguments) if a.is_tensor and not is_held(subject, a)]
    if not tensors or any(a.sparsity is not None for a in subject.arguments):
        return
    if _ANY_LEADING_AXES.search(hints_of(situation).backward) is None:
        return
    shape = subject.arguments[tensors[0]].shape
    for places in dict.fromkeys((tuple(tensors), tuple(tensors[:1]))):
        for count in dict.fromkeys((2, *shape[:1])):
            stacked = tuple(_stacked(a, count) if n in places else a for n, a in enumerate(subject.arguments))
            call = call_at(situation, stacked, partial(_is_stacked, situation, count))
            if call is None:
                break
            if call.error is None:
                yield call
                return


def _stacked(argument: Argument, count: int) -> Argument:
    value, bounds = argument.value, bounds_of(argument)
    second = value
    if value.dtype.kind in "fc" and bounds is not None and is_drawn(argument):
        scaled = np.asarray(value * _SECOND, value.dtype)
        second = scaled if bool(bounds.holds(scaled).all()) else value
    return replace(argument, value=np.stack([second if n % 2 else value for n in range(count)]), own=None)


def _is_stacked(situation: Situation, count: int, result: CallResult) -> bool:
    """Whether each output has the new axis, with the output for the inputs themselves as its first entry."""
    subject = situation.subject
    given = [subject.first_call.outputs[number] for number in subject.output_numbers]
    found = [result.outputs[number] for number in result.numbers]
    if (result.numbers, result.active) != (subject.output_numbers, subject.active) or not all_finite(result.outputs):
        return False
    return all(
        other.shape == (count, *one.shape) and relative_gap(other[0], one) <= situation.tolerance(TOLERANCE)
        for one, other in zip(given, found, strict=True)
    )
