"""Inputs of a lower precision: backward in that precision against backward in float64."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from gradcli.backends.base import Subject
from gradcli.backends.tensor.framework import unit_roundoff
from gradcli.checks.base import Check, Situation
from gradcli.checks.lost_precision import in_few_bits
from gradcli.checks.other_points.bounds import any_given
from gradcli.checks.reached import compared_dtypes
from gradcli.errors import UserCodeError
from gradcli.findings import FindingKind
from gradcli.numerics.wording import of_largest
from gradcli.results import Evidence

ALLOWED = {"float32": 1e-3, "complex64": 1e-3, "float16": 0.1, "bfloat16": 0.25}
"""Relative to the largest entry: what the precision's own rounding can do, with a wide margin."""
_FINE_MARGIN = 32.0
"""The safety margin in the rounding floor of 64 bits; left out in a lower precision, where it would hide mistakes."""
_LARGEST = {"float16": 65504.0}
_BODY_MARGIN = 8.0
"""Backward's error may be so many times that of the framework's own derivative in the same precision."""


@final
class PrecisionCheck(Check):
    """A Function given a lower precision is checked in float64; backward in that precision must agree with it."""

    name = "precision"
    sentence = "backward in the inputs' own lower precision agrees with backward in float64"

    def run(self, situation: Situation) -> Iterator[Evidence]:
        """Compare the gradients of both precisions."""
        subject = situation.subject
        if (own := subject.insists_on) is not None:
            wrong = f"accepted: backward is right in {own}, the inputs' dtype, and wrong only in float64"
            why = wrong if subject.is_wrong_in_64_bits else "forward or backward does not run in float64"
            yield self.passed(
                f"{why}, so the gradients were checked in {own}, where errors below the rounding of {own} cannot "
                "be detected"
            )
            return
        low = subject.in_given_precision()
        if low is None:
            yield from self._of_64_bits(situation)
            return
        dtype = max(low.low_dtypes, key=lambda name: ALLOWED.get(name, 0.0))
        worst, place = _compared(situation, low, dtype)
        if place is not None:
            yield self._differs(low, place, dtype, worst)
            return
        note = (
            f"the input is {dtype}: the gradient was checked in float64, and backward in {dtype} gives the same "
            f"gradient to within {of_largest(ALLOWED[dtype])}"
        )
        yield replace(self.passed(note), max_rel_error=worst)

    def _differs(self, low: Subject, place: int, dtype: str, error: float, where: str = "") -> Evidence:
        """The failure, measured where backward is wrong: it may run other lines in this precision."""
        name = low.arguments[low.active[place]].name
        found = self.failed(
            FindingKind.LOW_PRECISION,
            f"{name}: backward in {dtype} differs from backward in float64 by {of_largest(error)}{where}",
            input=name,
        )
        return replace(found, measured_at=low)

    def _in_compared_dtypes(self, situation: Situation) -> Iterator[Evidence]:
        """A wrong gradient in a precision that the source compares a dtype with: a formula may be for it alone.

        It is a note where the user gave the inputs, in 64 bits. What is refused in that precision says nothing.
        """
        for dtype in compared_dtypes(situation.subject.info):
            try:
                low = situation.subject.in_given_precision(dtype)
                worst, place = (0.0, None) if low is None else _compared(situation, low, dtype)
            except UserCodeError:
                continue
            if low is not None and place is not None:
                where = f", which was tried because the source compares a dtype; to see more, run with --dtype {dtype}"
                found = self._differs(low, place, dtype, worst, where)
                if found.finding is not None and any_given(situation.subject):
                    why = "; this is reported only as a note, because you gave the inputs in float64"
                    found = self.passed(found.finding.message + why)
                yield found
                return

    def _of_64_bits(self, situation: Situation) -> Iterator[Evidence]:
        """A failure for each gradient of a 64-bit input that is accurate only to float32."""
        yield from self._in_compared_dtypes(situation)
        for place, what, lost in in_few_bits(situation):
            name = situation.input_name(situation.subject.active[place])
            yield self.failed(
                FindingKind.LOW_PRECISION,
                f"{name} is {situation.subject.arguments[situation.subject.active[place]].dtype_name}, but {what}: "
                f"about {lost} of 16 digits are lost without a warning",
                input=name,
            )


def _compared(situation: Situation, low: Subject, dtype: str) -> tuple[float, int | None]:
    """The largest error of a gradient in a lower precision, and the place of an input whose error is too large."""
    cotangents = situation.cotangents()
    fine, coarse = situation.subject.backward(cotangents), low.backward(cotangents)
    worst = 0.0
    for place, (reference, got) in enumerate(zip(fine, coarse, strict=True)):
        if reference is None or got is None:
            continue
        floor = np.zeros(reference.shape)
        error = distance(reference, got, floor, dtype)
        if error > ALLOWED[dtype]:  # the floor takes some 16 backward passes, which are rarely needed
            if (np.abs(reference) <= situation.coarse_floor(cotangents)[place]).all():
                continue  # terms cancel, and only rounding is left in either precision
            roundoffs = unit_roundoff(dtype) / unit_roundoff("float64")
            floor = situation.rounding_floor(cotangents)[place] * (roundoffs / _FINE_MARGIN)
            error = distance(reference, got, floor, dtype)
        worst = max(worst, error)
        if error <= ALLOWED[dtype]:
            continue
        if not error <= _BODY_MARGIN * _of_body(low, situation.subject, place, floor, dtype):
            return error, place
    return worst, None


def _of_body(low: Subject, fine: Subject, place: int, floor: NDArray[Any], dtype: str) -> float:
    """How far the framework's own derivative is off in this precision, zero where there is none."""
    coarse, exact = low.body_map(1), fine.body_map(1)
    if coarse is None or exact is None:
        return 0.0
    cotangent = np.ones(fine.codomain.size)
    rows = [map_.domain.unflatten(map_.vjp(fine.point, cotangent))[place] for map_ in (exact, coarse)]
    return distance(rows[0], rows[1], floor, dtype)


def distance(reference: NDArray[Any], got: NDArray[Any], floor: NDArray[Any], dtype: str) -> float:
    """The largest difference beyond `floor` relative to the largest entry, without entries too large for the dtype."""
    held = np.abs(reference) <= _LARGEST.get(dtype, np.inf)
    if not held.any():
        return 0.0
    with np.errstate(all="ignore"):
        gap = np.abs(got.astype(reference.dtype)[held] - reference[held]) - floor[held]
    worst, scale = float(np.max(np.maximum(gap, 0.0))), float(np.max(np.abs(reference[held])))
    return worst / scale if scale else 0.0 if not worst else float("inf")
