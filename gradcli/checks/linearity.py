"""backward is a linear map of grad_output: a vector-Jacobian product and nothing else."""

from collections.abc import Iterator, Sequence
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from gradcli.checks.base import Check, Situation, relative_gap
from gradcli.findings import FindingKind
from gradcli.numerics.noise import stored_roundoff
from gradcli.results import Evidence

LINEARITY_TOLERANCE = 128 * 2.0**-24
"""Relative to |a| |backward(u)| + |b| |backward(v)|: what rounding does to a backward that computes in float32 inside.
That backward's loss of precision is judged by its values, not here."""
_COMBINATIONS = ((-3.0, 2.0), (1e4, 1e-3))
"""A change of sign and a sum; a cotangent so large that a clip shows."""

Gradients = tuple[NDArray[Any] | None, ...]
Cotangents = Sequence[NDArray[Any]]


@final
class LinearityCheck(Check):
    """backward(a·u + b·v) = a·backward(u) + b·backward(v)."""

    name = "linearity"
    sentence = "backward is linear in grad_output, and uses it"

    def run(self, situation: Situation) -> Iterator[Evidence]:
        """Compare backward on combinations of two cotangents."""
        u, v = situation.cotangents(), situation.cotangents(1)
        subject = situation.subject
        parts = situation.reference(), subject.backward(v)
        ignored = self._ignored(situation, *parts)
        mixed = [[a * p + b * q for p, q in zip(u, v, strict=True)] for a, b in _COMBINATIONS]
        got = [] if all(ignored) else [subject.backward(cotangents) for cotangents in mixed]
        broken = False
        for place, position in enumerate(subject.active):
            name = situation.input_name(position)
            if ignored[place]:
                broken = True
                yield self.failed(
                    FindingKind.IGNORES_GRAD_OUTPUT,
                    f"{name}: backward does not use grad_output: different cotangents, zero among them, give the same "
                    "gradient",
                    input=name,
                )
                continue
            tried = zip(_COMBINATIONS, mixed, got, strict=True)
            pair = next((c for c, w, g in tried if self._nonlinear(situation, place, (c, w), (u, v), parts, g)), None)
            if pair is not None:
                broken = True
                yield self.failed(
                    FindingKind.NONLINEAR_BACKWARD,
                    f"{name}: backward({pair[0]:g}·u + {pair[1]:g}·v) differs from {pair[0]:g}·backward(u) + "
                    f"{pair[1]:g}·backward(v)",
                    input=name,
                )
        if not broken:
            yield self.passed()

    def _ignored(self, situation: Situation, of_u: Gradients, of_v: Gradients) -> list[bool]:
        """For each active input, whether its gradient has nothing to do with the cotangent."""
        alike = [looks_constant(one, two) for one, two in zip(of_u, of_v, strict=True)]
        if not any(alike):
            return alike
        of_zero = situation.subject.backward([np.zeros_like(part) for part in situation.cotangents()])
        return [same and ignores_cotangent(*three) for same, *three in zip(alike, of_u, of_v, of_zero, strict=True)]

    def _tolerance(self, situation: Situation, gradient: NDArray[Any]) -> float:
        """Cotangents are rounded to the outputs' precision before backward sees them, gradients perhaps in it."""
        inside = stored_roundoff(np.concatenate([gradient.real.ravel(), gradient.imag.ravel()]))
        return max(LINEARITY_TOLERANCE, 16 * situation.subject.call().unit_roundoff, 16 * inside)

    def _nonlinear(
        self,
        situation: Situation,
        place: int,
        combination: tuple[tuple[float, float], Cotangents],
        cotangents: tuple[Cotangents, Cotangents],
        parts: tuple[Gradients, Gradients],
        got: Gradients,
    ) -> bool:
        """Whether the gradient of one input for a combination is not that of the gradients, beyond rounding."""
        of_u, of_v, of_mixed = parts[0][place], parts[1][place], got[place]
        if of_u is None or of_v is None or of_mixed is None:
            return False
        (a, b), mixed = combination
        if not departs(of_mixed, a * of_u, b * of_v):
            return False
        floor_u, floor_v, floor_mixed = (situation.rounding_floor(c)[place] for c in (*cotangents, mixed))
        floor = abs(a) * floor_u + abs(b) * floor_v + floor_mixed
        return departs(of_mixed, a * of_u, b * of_v, floor, tolerance=self._tolerance(situation, of_u))


def looks_constant(of_u: NDArray[Any] | None, of_v: NDArray[Any] | None) -> bool:
    """Whether two cotangents give one gradient that is neither zero nor all NaN."""
    if of_u is None or of_v is None or not np.any(of_u) or not np.isfinite(of_u).any():
        return False
    return relative_gap(of_u, of_v) == 0.0


def ignores_cotangent(of_u: NDArray[Any] | None, of_v: NDArray[Any] | None, of_zero: NDArray[Any] | None) -> bool:
    """Whether a gradient, neither zero nor NaN, is the same for two cotangents and for the zero cotangent."""
    return of_zero is not None and looks_constant(of_u, of_v) and relative_gap(of_u, of_zero) == 0.0


def departs(
    got: NDArray[Any],
    first: NDArray[Any],
    second: NDArray[Any],
    floor: NDArray[Any] | float = 0.0,
    *,
    tolerance: float = LINEARITY_TOLERANCE,
) -> bool:
    """Whether `got` is further from first + second than rounding allows, beyond `floor` entry by entry."""
    wanted = first + second
    if not np.isfinite(wanted).all():
        return False
    scale = float(np.max(np.abs(first) + np.abs(second), initial=0.0))
    if not np.isfinite(got).all():
        return True
    error = float(np.max(np.maximum(np.abs(got - wanted) - floor, 0.0), initial=0.0))
    return bool(error > tolerance * scale + np.finfo(float).tiny)
