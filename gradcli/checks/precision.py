"""Inputs of a lower precision: backward in that precision against backward in float64."""

from collections.abc import Iterator
from typing import final

import numpy as np

from gradcli.backends.bound import BoundFunction
from gradcli.checks.base import Check, Situation
from gradcli.findings import FindingKind
from gradcli.results import Evidence

_TOLERANCE = {"float32": 1e-3, "complex64": 1e-3, "float16": 0.1}
"""Relative to the largest entry: what the precision's own rounding can do, with a wide margin."""


@final
class PrecisionCheck(Check):
    """A Function given float32 is judged in float64, and its float32 backward must follow."""

    name = "precision"
    sentence = "backward in the inputs' own lower precision agrees with backward in float64"

    def run(self, situation: Situation) -> Iterator[Evidence]:
        """Compare the gradients of both precisions."""
        subject = situation.subject
        low = subject.in_given_precision() if isinstance(subject, BoundFunction) else None
        if low is None:
            return
        dtype = next(str(a.value.dtype) for a in low.arguments if a.is_tensor and str(a.value.dtype) in _TOLERANCE)
        cotangents = situation.cotangents()
        fine, coarse = subject.backward(cotangents), low.backward(cotangents)
        for position, reference, got in zip(subject.active, fine, coarse, strict=True):
            if reference is None or got is None or not reference.size:
                continue
            scale = float(np.max(np.abs(reference)))
            error = float(np.max(np.abs(got.astype(reference.dtype) - reference)))
            if scale and not error <= _TOLERANCE[dtype] * scale:
                name = situation.input_name(position)
                yield self.failed(
                    FindingKind.LOW_PRECISION,
                    f"{name}: backward in {dtype} is {error / scale:.1e} away from backward in float64",
                    input=name,
                )
                return
        yield self.passed(f"the input is {dtype}: judged in float64, and backward in {dtype} agrees with it")
