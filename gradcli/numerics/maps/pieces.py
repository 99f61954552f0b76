"""Long vectors a piece at a time: a chain of operations on a piece stays in the processor's cache."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from gradcli.numerics.maps.floats import Matrix
from gradcli.numerics.maps.space import Vector

PIECE = 16384
"""Entries of a piece, 128 KiB of float64."""
THREADED = 10_000
"""For products of more entries the linear-algebra library starts threads."""
UNTHREADED = 8192
SUMMED = 4096
"""Entries whose products are added up in one go."""


def pieces(place: slice, length: int = PIECE) -> Iterator[slice]:
    """Consecutive slices of a length, the last one perhaps shorter, that make up `place`."""
    for start in range(place.start, place.stop, length):
        yield slice(start, min(start + length, place.stop))


def all_finite(values: npt.NDArray[np.float64]) -> bool:
    """Whether no value is infinite or not a number."""
    flat = values.reshape(-1)
    with np.errstate(all="ignore"):
        return all(_finite(flat[piece]) for piece in pieces(slice(0, flat.size), UNTHREADED))


def moves_beside(direction: Vector, place: slice) -> bool:
    """Whether a direction moves any entry other than those at `place`."""
    beside = (slice(0, place.start), slice(place.stop, direction.size))
    return any(bool(direction[piece].any()) for part in beside for piece in pieces(part))


def _finite(piece: npt.NDArray[np.float64]) -> bool:
    # One that is not finite would show in the sum of squares, which is cheap, and may overflow without.
    return math.isfinite(np.dot(piece, piece)) or bool(np.isfinite(piece).all())


def products(rows: Matrix, v: Vector) -> Vector:
    """rows @ v. Long sums are taken in parts: rounding grows with the root of how much is added up at once."""
    with np.errstate(all="ignore"):
        if v.size <= UNTHREADED:
            short: Vector = rows @ v
            return short
        total = np.zeros(len(rows))
        for start in range(0, v.size, SUMMED):
            total += rows[:, start : start + SUMMED] @ v[start : start + SUMMED]
        return total


def dot(u: Vector, v: Vector) -> float:
    """The sum of u_i v_i, taken in parts as `products` takes it."""
    if v.size <= THREADED:
        return float(u @ v)
    return float(sum(u[start : start + SUMMED] @ v[start : start + SUMMED] for start in range(0, v.size, SUMMED)))


def magnitudes_along(rows: Matrix, v: Vector) -> Vector:
    """The sum of |row_i v_i| for every row."""
    total = np.zeros(len(rows))
    for piece in pieces(slice(0, v.size), UNTHREADED):
        total += np.abs(rows[:, piece]) @ np.abs(v[piece])
    return total


def largest(rows: Matrix, scales: Vector | None = None) -> float:
    """The largest finite |row_i|, or |row_i scales_i|; 0 where there is none."""
    found = 0.0
    for piece in pieces(slice(0, rows.shape[1])):
        size = np.abs(rows[:, piece] if scales is None else rows[:, piece] * scales[piece])
        top = float(size.max(initial=0.0))
        if not np.isfinite(top):
            top = float(np.where(np.isfinite(size), size, 0.0).max(initial=0.0))
        found = max(found, top)
    return found


def consecutive(chosen: npt.NDArray[np.bool_]) -> slice | npt.NDArray[np.bool_]:
    """The slice of the places chosen where they follow one another (a view, not a copy), else the mask itself."""
    places = np.flatnonzero(chosen)
    if places.size and places[-1] - places[0] + 1 == places.size:
        return slice(int(places[0]), int(places[-1]) + 1)
    return chosen
