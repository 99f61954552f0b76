"""backward is linear in grad_output, since it computes a vector-Jacobian product."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from gradcli.backends.base import Gradients
from gradcli.checks.base import FACTORS, LARGE, Check, Situation, combined, relative_gap
from gradcli.findings import FindingKind
from gradcli.numerics.differences.formats import stored_roundoff
from gradcli.results import Evidence

LINEARITY_TOLERANCE = 128 * 2.0**-24
"""Relative to |a| |backward(u)| + |b| |backward(v)|: what rounding does to a backward that computes in float32 inside.
Whether it may lose that precision is decided by other checks, which compare values."""
_A, _B = FACTORS[0], FACTORS[1] / LARGE

Cotangents = Sequence[NDArray[Any]]


@final
class LinearityCheck(Check):
    """backward(a·u + b·v) = a·backward(u) + b·backward(v)."""

    name = "linearity"
    sentence = "backward is linear in grad_output, and uses it"

    def run(self, situation: Situation) -> Iterator[Evidence]:
        """Compare the gradient for a combination of two cotangents with the combination of their gradients."""
        if situation.together() is not None:
            yield self.passed()
            return
        u, v = situation.cotangents(), situation.constant_cotangents()
        subject, combination = situation.subject, combined(u, v)
        parts = situation.reference(), situation.of_constant()
        ignored = self._ignored(situation, *parts)
        got = subject.backward(combination)
        broken = False
        for place, position in enumerate(subject.active):
            name = situation.input_name(position)
            if ignored[place]:
                broken = True
                yield self.failed(
                    FindingKind.IGNORES_GRAD_OUTPUT,
                    f"{name}: backward does not use grad_output: it returns the same gradient for two different values "
                    "of grad_output and for a grad_output of zeros",
                    input=name,
                )
            elif self._nonlinear(situation, place, (u, v, combination), (*parts, got)):
                broken = True
                what = self._added(situation, place, (parts[0][place], parts[1][place], got[place])) or (
                    f"for two values u and v of grad_output, backward({_A:g}·u + {_B:g}·v) differs from "
                    f"{_A:g}·backward(u) + {_B:g}·backward(v)"
                )
                message = f"{name}: backward is not linear in grad_output: {what}"
                yield self.failed(FindingKind.NONLINEAR_BACKWARD, message, input=name)
        if not broken:
            yield self.passed()

    def _added(self, situation: Situation, place: int, gradients: tuple[NDArray[Any] | None, ...]) -> str | None:
        """What backward adds to the gradient of an active input whatever grad_output is; None if that is not all."""
        subject = situation.subject
        zero = subject.backward([np.zeros_like(part) for part in situation.cotangents()])[place]
        if zero is None or not np.isfinite(zero).all() or not np.any(zero):
            return None
        of_u, of_v, got = (each - zero for each in gradients if each is not None)
        scale = float(np.max(np.abs(zero), initial=0.0))
        tolerance = self._tolerance(situation, of_u, got)
        if departs(got, _A * of_u, _B * of_v, 8 * tolerance * scale, tolerance=tolerance):
            return None
        known = {a.name: np.asarray(a.value) for a in subject.arguments if np.shape(a.value) == zero.shape}
        return f"it adds {added(zero, known)}, whatever grad_output is"

    def _ignored(self, situation: Situation, of_u: Gradients, of_v: Gradients) -> list[bool]:
        """For each active input, whether its gradient does not depend on the cotangent."""
        alike = [looks_constant(one, two) for one, two in zip(of_u, of_v, strict=True)]
        if not any(alike):
            return alike
        of_zero = situation.subject.backward([np.zeros_like(part) for part in situation.cotangents()])
        return [same and ignores_cotangent(*three) for same, *three in zip(alike, of_u, of_v, of_zero, strict=True)]

    def _tolerance(self, situation: Situation, *gradients: NDArray[Any]) -> float:
        """The relative tolerance: cotangents are rounded to the outputs' precision, and gradients may be rounded."""
        inside = stored_roundoff(np.concatenate([part.ravel() for g in gradients for part in (g.real, g.imag)]))
        return max(LINEARITY_TOLERANCE, 16 * situation.subject.first_call.unit_roundoff, 16 * inside)

    def _nonlinear(
        self,
        situation: Situation,
        place: int,
        cotangents: tuple[Cotangents, Cotangents, Cotangents],
        gradients: tuple[Gradients, Gradients, Gradients],
    ) -> bool:
        """Whether the gradient for the combined cotangents differs from the combined gradients, beyond rounding."""
        of_u, of_v, of_combination = (each[place] for each in gradients)
        if of_u is None or of_v is None or of_combination is None:
            return False
        if not departs(of_combination, _A * of_u, _B * of_v):
            return False
        for known in (situation.value_floor, situation.rounding_floor, situation.coarse_floor):
            floor_u, floor_v, floor_combination = (known(c)[place] for c in cotangents)
            floor = abs(_A) * floor_u + abs(_B) * floor_v + floor_combination
            tolerance = self._tolerance(situation, of_u, of_combination)
            if not departs(of_combination, _A * of_u, _B * of_v, floor, tolerance=tolerance):
                return False
        return True


def added(zero: NDArray[Any], known: Mapping[str, NDArray[Any]]) -> str:
    """What backward returns for a grad_output of zeros, in words; `known` are arguments of its shape by name."""
    places = np.argwhere(zero)
    first = zero[tuple(places[0])]
    if zero.ndim == 0:
        return f"{first:.6g} to the gradient"
    if len(places) == 1:
        return f"{first:.6g} to entry {places[0].tolist()} of the gradient"
    every = len(places) == zero.size
    where = "every entry of the gradient" if every else f"entries of the gradient ({len(places)} of {zero.size})"
    if relative_gap(zero[zero != 0], np.full(len(places), first)) <= LINEARITY_TOLERANCE:
        return f"{first:.6g} to {where}"
    for name, value in known.items():
        factor = first / value[tuple(places[0])] if value.dtype.kind in "fc" and np.all(value) else np.nan
        if np.isfinite(factor) and relative_gap(zero, factor * value) <= LINEARITY_TOLERANCE:
            return f"{factor:.6g}·{name} to the gradient"
    return f"values up to {np.max(np.abs(zero)):.2g} to {where}"


def looks_constant(of_u: NDArray[Any] | None, of_v: NDArray[Any] | None) -> bool:
    """Whether two cotangents give one gradient that is neither zero nor all NaN: its finite entries are compared.

    Beside an infinite entry, any difference of the others is relatively none.
    """
    if of_u is None or of_v is None:
        return False
    finite = np.isfinite(of_u) & np.isfinite(of_v)
    return bool(np.any(of_u[finite])) and relative_gap(of_u[finite], of_v[finite]) == 0.0


def ignores_cotangent(of_u: NDArray[Any] | None, of_v: NDArray[Any] | None, of_zero: NDArray[Any] | None) -> bool:
    """Whether a gradient, neither zero nor NaN, is the same for two cotangents and for the zero cotangent."""
    return looks_constant(of_u, of_v) and looks_constant(of_u, of_zero)


def departs(
    got: NDArray[Any],
    first: NDArray[Any],
    second: NDArray[Any],
    floor: NDArray[Any] | float = 0.0,
    *,
    tolerance: float = LINEARITY_TOLERANCE,
) -> bool:
    """Whether `got` is further from first + second than rounding allows, beyond `floor` entry by entry."""
    with np.errstate(all="ignore"):
        wanted = first + second
    if not np.isfinite(wanted).all():
        return False
    scale = float(np.max(np.abs(first) + np.abs(second), initial=0.0))
    if not np.isfinite(got).all():
        return True
    error = float(np.max(np.maximum(np.abs(got - wanted) - floor, 0.0), initial=0.0))
    return bool(error > tolerance * scale + np.finfo(float).tiny)
