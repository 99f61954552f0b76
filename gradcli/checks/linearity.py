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
_COMBINATIONS = ((1.0, 2.0), (-3.0, 1e-3), (1e4, 1.0))

Gradients = tuple[NDArray[Any] | None, ...]


@final
class LinearityCheck(Check):
    """backward(a·u + b·v) = a·backward(u) + b·backward(v)."""

    name = "linearity"
    sentence = "backward is linear in grad_output, and uses it"

    def run(self, situation: Situation) -> Iterator[Evidence]:
        """Compare backward on combinations of two cotangents."""
        u, v = situation.cotangents(1), situation.cotangents(2)
        subject = situation.subject
        of_u, of_v = subject.backward(u), subject.backward(v)
        of_zero = subject.backward([np.zeros_like(part) for part in u])
        broken = False
        for place, position in enumerate(subject.active):
            name = situation.input_name(position)
            if ignores_cotangent(of_u[place], of_v[place], of_zero[place]):
                broken = True
                yield self.failed(
                    FindingKind.IGNORES_GRAD_OUTPUT,
                    f"{name}: backward does not use grad_output: different cotangents, zero among them, give the same "
                    "gradient",
                    input=name,
                )
            elif (pair := self._nonlinear(situation, place, (u, v), (of_u[place], of_v[place]))) is not None:
                broken = True
                yield self.failed(
                    FindingKind.NONLINEAR_BACKWARD,
                    f"{name}: backward({pair[0]:g}·u + {pair[1]:g}·v) differs from {pair[0]:g}·backward(u) + "
                    f"{pair[1]:g}·backward(v)",
                    input=name,
                )
        if not broken:
            yield self.passed()

    def _tolerance(self, situation: Situation, gradient: NDArray[Any]) -> float:
        """Cotangents are rounded to the outputs' precision before backward sees them, gradients perhaps in it."""
        inside = stored_roundoff(np.concatenate([gradient.real.ravel(), gradient.imag.ravel()]))
        return max(LINEARITY_TOLERANCE, 16 * situation.subject.call().unit_roundoff, 16 * inside)

    def _nonlinear(
        self,
        situation: Situation,
        place: int,
        cotangents: tuple[Sequence[NDArray[Any]], Sequence[NDArray[Any]]],
        parts: tuple[NDArray[Any] | None, NDArray[Any] | None],
    ) -> tuple[float, float] | None:
        """The first combination that backward does not respect."""
        if parts[0] is None or parts[1] is None:
            return None
        for a, b in _COMBINATIONS:
            mixed = [a * p + b * q for p, q in zip(*cotangents, strict=True)]
            got = situation.subject.backward(mixed)[place]
            if got is None or not departs(got, a * parts[0], b * parts[1]):
                continue
            floor_u, floor_v, floor_mixed = (situation.rounding_floor(c)[place] for c in (*cotangents, mixed))
            floor = abs(a) * floor_u + abs(b) * floor_v + floor_mixed
            if departs(got, a * parts[0], b * parts[1], floor, tolerance=self._tolerance(situation, parts[0])):
                return a, b
        return None


def ignores_cotangent(of_u: NDArray[Any] | None, of_v: NDArray[Any] | None, of_zero: NDArray[Any] | None) -> bool:
    """Whether a gradient, neither zero nor NaN, is the same for two cotangents and for the zero cotangent."""
    if of_u is None or of_v is None or of_zero is None or not np.any(of_u) or not np.isfinite(of_u).any():
        return False
    return relative_gap(of_u, of_v) == 0.0 and relative_gap(of_u, of_zero) == 0.0


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
