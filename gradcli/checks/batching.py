"""A vmap rule must give for a batch what a loop over the batch gives."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from gradcli.backends.base import Batched, Subject
from gradcli.checks.base import Check, Situation, relative_gap
from gradcli.checks.gradient import comparable
from gradcli.errors import UserCodeError
from gradcli.findings import FindingKind
from gradcli.results import Evidence

_TOLERANCE = 128 * 2.0**-24
"""Relative; a batch may reorder sums, in float32 where the user's code computes in it."""
_SIZES = (2, 5, 7, 11, 13)

Places = tuple[int | None, ...]


@final
class BatchingCheck(Check):
    """Outputs and gradients under vmap are those of a loop, for every way to place the batch."""

    name = "batching"
    sentence = "a call under vmap gives the outputs and gradients of a loop over the batch"

    def run(self, situation: Situation) -> Iterator[Evidence]:
        """Compare a batch in front, one behind, and one of each input alone with the loop.

        What the rule refuses with a NotImplementedError gives nobody a wrong number, and is a note.
        """
        subject = situation.subject
        if subject.info.vmap is None or not comparable(situation) or subject.is_random:
            return
        refusal: str | None = None
        for places in batch_axes(subject):
            try:
                problem = self._mapped(situation, places)
            except UserCodeError as error:
                if error.error_type != NotImplementedError.__name__:
                    raise
                refusal = refusal or f"not every call under vmap was checked: {error}"
                continue
            if problem is not None:
                yield problem
                return
        yield self.passed(refusal)

    def _mapped(self, situation: Situation, places: Places) -> Evidence | None:
        subject = situation.subject
        values = batch_of(subject, places)
        where = ", ".join(f"{situation.input_name(i)} {p}" for i, p in zip(subject.active, places, strict=True))
        cotangents = [np.stack([c * (1 + k / 8) for k in range(len(values))]) for c in situation.cotangents()]
        stacked = [
            values[0][n] if place is None else np.stack([each[n] for each in values], axis=place)
            for n, place in enumerate(places)
        ]
        try:
            loop = [self._single(subject, each, [c[k] for c in cotangents]) for k, each in enumerate(values)]
        except UserCodeError:
            return None  # forward refuses other values than those given, so no batch can be made
        try:
            found = subject.batched(stacked, places, cotangents)
        except UserCodeError as error:
            if error.error_type == NotImplementedError.__name__:
                raise
            return self.failed(
                FindingKind.VMAP_MISMATCH, f"a call under vmap fails (in_dims: {where}): {error}", raised=error
            )
        return None if found is None else self._compared(situation, places, found, loop, where)

    def _single(self, subject: Subject, values: Sequence[NDArray[Any]], cotangents: list[NDArray[Any]]) -> Batched:
        arguments = list(subject.arguments)
        for position, value in zip(subject.active, values, strict=True):
            arguments[position] = replace(arguments[position], value=value)
        other = subject.rebind(arguments)
        outputs = other.first_call.outputs
        return Batched(outputs=tuple(outputs[n] for n in other.output_numbers), gradients=other.backward(cotangents))

    def _compared(
        self, situation: Situation, places: Places, found: Batched, loop: Sequence[Batched], where: str
    ) -> Evidence | None:
        tolerance = max(situation.tolerance(_TOLERANCE), 32 * situation.subject.first_call.unit_roundoff)
        for n, output in enumerate(found.outputs):
            if relative_gap(output, np.stack([each.outputs[n] for each in loop])) > tolerance:
                number = situation.subject.output_numbers[n]
                return self.failed(
                    FindingKind.VMAP_MISMATCH,
                    f"output {number} under vmap differs from a loop over the batch (in_dims: {where})",
                    output=number,
                )
        for n, (gradient, place) in enumerate(zip(found.gradients, places, strict=True)):
            singles = [each.gradients[n] for each in loop]
            zeros = np.zeros_like(situation.subject.arguments[situation.subject.active[n]].value)
            rows = [zeros if single is None else single for single in singles]
            wanted = np.sum(rows, axis=0) if place is None else np.stack(rows, axis=place)
            if relative_gap(gradient, wanted) > tolerance:
                name = situation.input_name(situation.subject.active[n])
                return self.failed(
                    FindingKind.VMAP_MISMATCH,
                    f"{name}: its gradient under vmap differs from a loop over the batch (in_dims: {where})",
                    input=name,
                )
        return None


def batch_axes(subject: Subject) -> Iterator[Places]:
    """The axes on which the batch may be: first for every input, last for every input, and first for one input only."""
    count = len(subject.active)
    yield (0,) * count
    if any(subject.arguments[position].value.ndim for position in subject.active):
        yield (-1,) * count
    if count > 1:
        for alone in range(count):
            yield tuple(0 if n == alone else None for n in range(count))


def batch_of(subject: Subject, places: Places) -> list[list[NDArray[Any]]]:
    """Values of the active inputs for each place of the batch: those given, and larger ones; unbatched ones stay."""
    arrays = [subject.arguments[position].value for position in subject.active]
    taken = {size for array in arrays for size in array.shape}
    size = next(size for size in (*_SIZES, 17) if size not in taken or size == 17)
    return [
        [array if place is None else array * (1 + k / 16) for array, place in zip(arrays, places, strict=True)]
        for k in range(size)
    ]
