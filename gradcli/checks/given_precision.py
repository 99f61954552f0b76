"""Derivatives in the precision that the inputs were given in, if the derivatives in 64 bits are wrong.

Code that tests whether a dtype is float32 may take a wrong branch for every other dtype, float64 included.
"""

from collections.abc import Sequence
from typing import final

import numpy as np

from gradcli.backends.base import FloatArray, Subject
from gradcli.backends.tensor.framework import unit_roundoff
from gradcli.checks.base import Situation, relative_gap
from gradcli.checks.precision import ALLOWED, distance
from gradcli.errors import UserCodeError
from gradcli.numerics.maps.vector_map import VectorMap
from gradcli.numerics.verify import Outcome, verify
from gradcli.results import Evidence
from gradcli.verdict import Verdict

_PRECISIONS = ("float32", "complex64")
"""The dtypes whose tolerance is narrow enough that a wrong derivative exceeds it."""
_COTANGENTS = 3
_ROUNDINGS = 256.0
"""The error of a sum of some hundred terms, in roundoffs of the lower precision: 1.5e-5 in float32."""
_OF_GRADIENTS = frozenset({"gradient", "linearity"})


@final
class _ClaimedAsGiven(VectorMap):
    """The values of forward in 64 bits, with the gradients that backward returns in the inputs' own precision."""

    def __init__(self, fine: VectorMap, low: VectorMap) -> None:
        self.domain, self.codomain = fine.domain, fine.codomain
        self.bounds, self.given = fine.bounds, fine.given
        self._fine, self._low = fine, low

    @property
    def is_costly(self) -> bool:
        """As forward says."""
        return self._fine.is_costly

    def value(self, x: FloatArray) -> FloatArray:
        """Forward in 64 bits."""
        return self._fine.value(x)

    def vjp(self, x: FloatArray, cotangent: FloatArray) -> FloatArray:
        """Backward in the lower precision."""
        return self._low.vjp(x, cotangent)

    def vjp_many(self, x: FloatArray, cotangents: FloatArray) -> FloatArray:
        """The same for several cotangents."""
        return self._low.vjp_many(x, cotangents)


def right_as_given(subject: Subject, evidence: Sequence[Evidence], seed: int) -> Subject | None:
    """The Function run throughout in its inputs' own precision, if the gradient is right there and wrong in 64 bits.

    None if it is right in 64 bits or wrong in both, or if the inputs' precision is too coarse to tell. The gradient in
    the lower precision is compared with differences of forward in 64 bits, so that a mistake made in both precisions is
    not taken for rounding.
    """
    if not any(e.verdict is Verdict.FAILED and e.check in _OF_GRADIENTS and e.order == 1 for e in evidence):
        return None
    if not subject.low_dtypes or any(name not in _PRECISIONS for name in subject.low_dtypes):
        return None
    try:
        low = subject.in_given_precision()
        if low is None:
            return None
        allowed = _ROUNDINGS * max(map(unit_roundoff, subject.low_dtypes))
        if not _part(subject, low, seed, allowed):
            return None
        claimed = _ClaimedAsGiven(subject.derivative_map(1), low.derivative_map(1))
        found = verify(claimed, subject.point, seed=seed, significance=allowed)
        right = all(block.outcome is Outcome.AGREES for block in found.blocks)
        return subject.in_given_precision(throughout=True) if right else None
    except UserCodeError:
        return None


def _part(subject: Subject, low: Subject, seed: int, allowed: float) -> bool:
    """Whether the gradients in the two precisions differ beyond `allowed`; one mistake in both leaves them equal."""
    cotangents = subject.codomain.unflatten(np.random.default_rng([seed, 59]).standard_normal(subject.codomain.size))
    pairs = zip(subject.backward(cotangents), low.backward(cotangents), strict=True)
    return any(
        one is None or other is None or not relative_gap(one, np.asarray(other, dtype=one.dtype)) <= allowed
        for one, other in pairs
    )


def holds_as_given(situation: Situation, order: int) -> Evidence | None:
    """Evidence that backward's derivative of this order is right in the inputs' own precision; None where it is not.

    A forward that always computes in float32 saves its own output if the inputs are float32, and a copy of it, outside
    of the graph, if they were converted to 64 bits: a second derivative is then wrong in 64 bits only.
    """
    subject = situation.subject
    low, body = subject.in_given_precision(), subject.body_map(order)
    if low is None or body is None or any(name not in _PRECISIONS for name in low.low_dtypes):
        return None
    point, dtype = subject.base_point(order, situation.seed), low.low_dtypes[0]
    rng = np.random.default_rng(situation.seed)
    try:
        map_ = low.derivative_map(order)
        for _ in range(_COTANGENTS):
            cotangent = rng.standard_normal(map_.codomain.size)
            for right, got in zip(
                body.domain.unflatten(body.vjp(point, cotangent)),
                map_.domain.unflatten(map_.vjp(point, cotangent)),
                strict=True,
            ):
                if not distance(right, got, np.zeros(right.shape), dtype) <= ALLOWED[dtype]:
                    return None
    except UserCodeError:
        return None
    return Evidence(
        check="higher-order",
        order=order,
        verdict=Verdict.PASSED,
        reference="autodiff",
        resolution=ALLOWED[dtype],
        note=(
            f"accepted: the derivative of order {order} is right in {dtype}, the inputs' dtype; it is wrong only "
            "where gradcli runs the Function in float64"
        ),
    )
