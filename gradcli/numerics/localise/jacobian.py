"""The numerical Jacobian, column by column."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from gradcli.frozen import dataclass
from gradcli.numerics.differences.directional import directional_derivative
from gradcli.numerics.differences.estimate import Slopes, StatusArray
from gradcli.numerics.differences.three_pairs import BOUNDED_STEP, ThreePairs, measure_pairs
from gradcli.numerics.maps.floats import Matrix, Vector
from gradcli.numerics.maps.sizes import CERTIFIED, FINE
from gradcli.numerics.maps.vector_map import VectorMap
from gradcli.numerics.sampling.directions import entry_scales, snap, within
from gradcli.numerics.sampling.line import Function

LARGEST_TABLE = 100_000
"""The largest number of entries of a table."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NumericTable(Slopes):
    """Derivatives of some outputs (rows) by some inputs (columns), each with its error bound and status."""

    numeric: Matrix
    bound: Matrix
    status: StatusArray
    rows: npt.NDArray[np.intp]
    columns: npt.NDArray[np.intp]
    evaluations: int


def jacobian_table(
    map_: VectorMap,
    x: Vector,
    *,
    rng: np.random.Generator,
    columns: Sequence[int] | npt.NDArray[np.intp] | None = None,
    rows: Sequence[int] | npt.NDArray[np.intp] | None = None,
    claimed: Matrix | None = None,
    enough: float = FINE,
    most: int | None = None,
) -> NumericTable:
    """Differentiate the chosen outputs by the chosen inputs, one column after the other.

    Args:
        x: the point, of length n. It is rounded to the grid first, which moves an entry by at most 3e-14 of its scale.
        columns: flat input coordinates, by default all.
        rows: flat output coordinates, by default all.
        claimed: the claimed entries (rows, columns). With them, three pairs of values are tried first, and a column
            that meets its claim, or whose bound is fine enough, takes 6 evaluations instead of 16.
        enough: a bound below this part of the column's largest entry is fine enough.
        most: no column is begun after this number of evaluations; by default all are. The result has those measured.

    Returns:
        The derivatives (not scaled), with error bounds.

    Raises:
        ValueError: more than 100,000 entries are chosen.
    """
    columns_ = np.arange(map_.domain.size) if columns is None else np.asarray(columns, np.intp)
    rows_ = np.arange(map_.codomain.size) if rows is None else np.asarray(rows, np.intp)
    if rows_.size * columns_.size > LARGEST_TABLE:
        shape = f"rows={rows_.size} x columns={columns_.size}"
        raise ValueError(f"expected at most {LARGEST_TABLE} entries, got {shape}; choose some of them")
    scales = entry_scales(map_.domain, x)
    x = snap(x, scales)
    chosen = _rows_of(map_, rows_)
    with np.errstate(all="ignore"):
        f0 = chosen(x)
    measured: list[tuple[Vector, Vector, StatusArray]] = []
    largest = 0.0 if claimed is None else float((np.abs(claimed) * scales[columns_]).max(initial=0.0))
    evaluations, noise = 1, None
    for k, column in enumerate(columns_.tolist()):
        if most is not None and evaluations >= most:
            break
        size = float(scales[column])
        v = within(scales, column)
        if claimed is not None and largest > 0 and np.isfinite(f0).all():
            short = measure_pairs(chosen, x, v, f0=f0, rng=rng, start=BOUNDED_STEP)
            evaluations += short.evaluations
            limit = _limit(short, claimed[:, k] * size, largest, enough)
            if limit is not None:
                measured.append((short.value / size, limit / size, np.zeros(rows_.size, np.int8)))
                continue
        estimate = directional_derivative(chosen, x, v, rng=rng, f0=f0, noise=noise)
        noise = estimate.noise
        evaluations += estimate.evaluations
        measured.append((estimate.value / size, estimate.bound / size, estimate.status))
    return _table(measured, rows_, columns_, evaluations)


def _table(
    measured: Sequence[tuple[Vector, Vector, StatusArray]],
    rows: npt.NDArray[np.intp],
    columns: npt.NDArray[np.intp],
    evaluations: int,
) -> NumericTable:
    """The table of the measured columns, which are the first of the given ones."""
    empty = np.zeros((rows.size, 0))
    numeric, bound, status = (
        (np.column_stack(part) for part in zip(*measured, strict=True))
        if measured
        else (empty, empty, empty.astype(np.int8))
    )
    return NumericTable(
        numeric=numeric,
        bound=bound,
        status=status,
        rows=rows,
        columns=columns[: len(measured)],
        evaluations=evaluations,
    )


def _rows_of(map_: VectorMap, rows: npt.NDArray[np.intp]) -> Function:
    """The map, restricted to some outputs."""

    def chosen(point: Vector) -> Vector:
        picked: Vector = np.asarray(map_.seen_at(point), dtype=np.float64)[rows]
        return picked

    return chosen


def _limit(short: ThreePairs, along: Vector, largest: float, enough: float) -> Vector | None:
    """The error bound of three pairs of values, if they suffice; otherwise None.

    They suffice if they meet the claim to nine digits, or if their own bound is fine enough in all rows. That bound is
    not taken to be finer than nine digits, because the change by the largest step may be small by accident. An entry
    that is claimed and does not change at all may lie on a plateau of rounded values, which three pairs do not show.
    """
    if short.certifies(along, np.full(along.size, CERTIFIED * largest)).all():
        met: Vector = 4 * np.abs(short.value - along) + short.rounding
        return met
    with np.errstate(all="ignore"):
        column = float(np.abs(short.value).max(initial=0.0))
        settled: Vector = 4 * short.shift + short.rounding + np.abs(short.kink) + CERTIFIED * column
        moved = (short.value != 0) | (along == 0)
        return settled if (moved & (settled <= enough * column)).all() else None
