"""Operations on long vectors in pieces, so that a chain of operations on a piece stays in the processor's cache."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from gradcli.numerics.maps.floats import Matrix, Vector

PIECE = 16384
"""The number of entries of a piece, 128 KiB of float64."""
UNTHREADED = 8192
"""The length of a piece of a product: a power of two below 10,000, from which the linear-algebra library starts
threads."""
SUMMED = 4096
"""This many products are added up at once; longer sums are made of such parts. Rounding errors grow with the root of
the number of terms added up at once."""


def pieces(place: slice, length: int = PIECE) -> Iterator[slice]:
    """Consecutive slices of a length, the last one perhaps shorter, that make up `place`."""
    for start in range(place.start, place.stop, length):
        yield slice(start, min(start + length, place.stop))


def all_finite(values: npt.NDArray[np.float64]) -> bool:
    """Whether no value is infinite or NaN."""
    return bool(np.isfinite(values).all())


def products(rows: Matrix, v: Vector) -> Vector:
    """Compute rows @ v. Long sums are made of parts of `SUMMED` terms, which keeps their rounding error small."""
    with np.errstate(all="ignore"):
        if v.size <= UNTHREADED:
            short: Vector = rows @ v
            return short
        total = np.zeros(len(rows))
        for start in range(0, v.size, SUMMED):
            total += rows[:, start : start + SUMMED] @ v[start : start + SUMMED]
        return total


def products_of_difference(rows: Matrix, one: Vector, other: Vector) -> Vector:
    """Compute rows @ (one - other), piece by piece."""
    total = np.zeros(len(rows))
    with np.errstate(all="ignore"):
        for piece in pieces(slice(0, one.size), UNTHREADED):
            total += rows[:, piece] @ (one[piece] - other[piece])
    return total


def root_of_squares(rows: Matrix, v: Vector) -> Vector:
    """The root of the sum of (row_i v_i)² for every row."""
    total = np.zeros(len(rows))
    for piece in pieces(slice(0, v.size), UNTHREADED):
        terms = rows[:, piece] * v[piece]
        total += np.einsum("ij,ij->i", terms, terms)
    return np.sqrt(total)


def magnitudes_along(rows: Matrix, v: Vector) -> Vector:
    """The sum of |row_i v_i| for every row."""
    total = np.zeros(len(rows))
    for piece in pieces(slice(0, v.size), UNTHREADED):
        total += np.abs(rows[:, piece]) @ np.abs(v[piece])
    return total


def largest(rows: Matrix, scales: Vector | None = None) -> float:
    """The largest finite |entry|, or |entry| times the scale of its column; 0 if no entry is finite."""
    found = 0.0
    for piece in pieces(slice(0, rows.shape[1])):
        size = np.abs(rows[:, piece] if scales is None else rows[:, piece] * scales[piece])
        top = float(size.max(initial=0.0))
        if not np.isfinite(top):
            top = float(np.where(np.isfinite(size), size, 0.0).max(initial=0.0))
        found = max(found, top)
    return found


def consecutive(chosen: npt.NDArray[np.bool_]) -> slice | npt.NDArray[np.bool_]:
    """The chosen places as a slice if they are consecutive (indexing then makes no copy); otherwise the mask itself."""
    places = np.flatnonzero(chosen)
    if places.size and places[-1] - places[0] + 1 == places.size:
        return slice(int(places[0]), int(places[-1]) + 1)
    return chosen
