"""Higher derivatives in the precision that the inputs were given in, where those in 64 bits are wrong."""

import numpy as np

from gradcli.checks.base import Situation
from gradcli.checks.precision import ALLOWED, distance
from gradcli.errors import UserCodeError
from gradcli.results import Evidence
from gradcli.verdict import Verdict

_PRECISIONS = ("float32", "complex64")
"""Those whose allowance is narrow enough to tell a derivative that is cut from one that is not."""
_COTANGENTS = 3


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
        note=f"accepted: the derivative of order {order} is wrong in float64, but right in {dtype}, the inputs' dtype",
    )
