"""Measurements that a report draws, if one is asked for; no verdict depends on them."""

import math
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from gradcli.backends.base import Subject
from gradcli.errors import UserCodeError
from gradcli.figures import ErrorCurve, Figures, JacobianBlock, Rows
from gradcli.numerics.differences.directional import directional_derivative
from gradcli.numerics.maps.floats import Matrix, Vector
from gradcli.numerics.maps.vector_map import VectorMap
from gradcli.numerics.sampling.directions import entry_scales, random_direction, signed_cotangents, snap
from gradcli.numerics.sampling.line import point_along
from gradcli.results import Evidence, Mismatch

_LARGEST = 64
"""Rows and columns that are drawn at most: more cells would be smaller than four pixels on a page."""
_STEPS = tuple(2.0**-k for k in range(1, 46, 2))
"""From half of the inputs' size to 3e-14 of it, where rounding is all that is left of a difference."""


def figures_of(subject: Subject, evidence: Iterable[Evidence], *, seed: int) -> Figures:
    """The blocks that differ, and the curve of one directional derivative over all inputs."""
    names = [block.name for block in subject.domain.blocks]
    mismatches = [each.mismatch for each in evidence if each.mismatch is not None and each.mismatch.order == 1]
    blocks = tuple(_block(names[mismatch.input], mismatch) for mismatch in mismatches)
    return Figures(blocks=blocks, curve=error_curve(subject, seed=seed))


def error_curve(subject: Subject, *, seed: int) -> ErrorCurve | None:
    """Differences along one random direction for one random cotangent; None where nothing finite can be compared.

    Runs forward about 65 times.
    """
    map_ = subject.derivative_map(1)
    if not map_.domain.size or not map_.codomain.size:
        return None
    generator = np.random.default_rng([seed, 29])
    scales = entry_scales(map_.domain, subject.point)
    x, v = snap(subject.point, scales), random_direction(generator, scales)
    u = signed_cotangents(generator, map_.codomain.size, 1)[0]
    try:
        best = directional_derivative(map_.value, x, v, rng=generator)
        claimed = float(map_.vjp(x, u) @ v)
    except UserCodeError:
        return None
    reference, bound = float(best.value @ u), float(best.bound @ np.abs(u))
    if not np.isfinite([reference, claimed]).all():
        return None
    slopes = tuple(_slope(map_, x, v, u, step) for step in _STEPS)
    return ErrorCurve(steps=_STEPS, slopes=slopes, reference=reference, bound=bound, claimed=claimed)


def _slope(map_: VectorMap, x: Vector, v: Vector, u: Vector, step: float) -> float:
    """The central difference of one step; NaN where forward raises or is not finite."""
    try:
        right, left = map_.values_at([point_along(x, v, step), point_along(x, v, -step)])
    except UserCodeError:
        return math.nan
    with np.errstate(all="ignore"):
        return float(u @ (right - left)) / (2 * step)


def _block(name: str, mismatch: Mismatch) -> JacobianBlock:
    """The part of a table that is drawn: all of a small one, else the rows and columns with the largest errors."""
    error = np.abs(np.nan_to_num(mismatch.claimed - mismatch.numeric, nan=np.inf))
    rows, columns = (_worst(error.max(axis=axis, initial=0.0)) for axis in (1, 0))
    part = np.ix_(rows, columns)
    return JacobianBlock(
        input=name,
        output=mismatch.output,
        order=mismatch.order,
        rows=tuple(mismatch.rows[rows].tolist()),
        columns=tuple(mismatch.columns[columns].tolist()),
        claimed=_numbers(mismatch.claimed[part]),
        numeric=_numbers(mismatch.numeric[part]),
        bound=_numbers(np.broadcast_to(mismatch.bound, error.shape)[part]),
    )


def _worst(errors: Vector) -> NDArray[np.intp]:
    """The places of the largest errors, as many as are drawn, in their own order."""
    return np.sort(np.argsort(-errors, kind="stable")[:_LARGEST])


def _numbers(table: Matrix) -> Rows:
    return tuple(tuple(row) for row in table.tolist())
