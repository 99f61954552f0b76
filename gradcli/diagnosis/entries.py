"""The worst entries of a wrong gradient, for showing: what was returned, and what is right, with its bound."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gradcli.backends.base import FloatArray
from gradcli.diagnosis.facts import REAL_ROWS, Facts
from gradcli.diagnosis.table import Gradient
from gradcli.numerics.maps.space import Space
from gradcli.results import Entry, Mismatch

SHOWN = 6
_PROBED = 4
"""Entries of the first row and of the first column of a matrix are probed up to this one, without it."""
_ROUNDING = 1e-12
_FAR_LARGER = 10.0
_IMAGINARY = "; the error shows only for a grad_output with an imaginary part"
_TELLING = 1e-3
"""Relative to the largest entry. An entry of this size, wrong by a thousandth of itself, is above the significance."""


def pulled_back(mismatch: Mismatch, cotangent: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Claimed and numerical gradients of <cotangent, f>, and the bound, over the table's columns."""
    weights = cotangent[mismatch.rows]
    return weights @ mismatch.claimed, weights @ mismatch.numeric, np.abs(weights) @ mismatch.bound


def worst_entries(
    facts: Facts, place: int, mismatch: Mismatch | None, *, shape: tuple[int, ...]
) -> tuple[tuple[Entry, ...], str]:
    """Up to SHOWN entries where the returned gradient is furthest from right, and for which grad_output, as a clause.

    It is ones, without a clause, unless that shows nothing wrong and other numbers do: imaginary ones, or zeros but for
    one output, whose part of the gradient may be far smaller than the rounding of the others. Where the mismatch has no
    complete table, a few coordinates are measured. If no time is left for that, or none of them has a bound, those that
    the check has measured for one of the outputs are shown.
    """
    found, clause = _worst_entries(facts, place, mismatch, shape)
    measured = [entry for entry in found if np.isfinite(entry.bound)]
    if measured or mismatch is None:
        return (*measured, *(entry for entry in found if not np.isfinite(entry.bound))), clause
    return entries_of(mismatch, facts.subject.domain) or found, clause


def _worst_entries(
    facts: Facts, place: int, mismatch: Mismatch | None, shape: tuple[int, ...]
) -> tuple[tuple[Entry, ...], str]:
    codomain = facts.subject.codomain
    if mismatch is not None and mismatch.small_rows and len(mismatch.rows) == 1:
        (index,) = outputs_of(mismatch, codomain.blocks[mismatch.output].shape)
        return tuple(replace(each, output_index=index) for each in _entries_for(facts, place, mismatch, shape, 0)), ""
    symmetric = None if mismatch is None else symmetric_part(facts, place, mismatch, shape)
    is_folded, mismatch = symmetric is not None, symmetric or mismatch
    rows = range(len(facts.cotangents) if any(block.complex for block in codomain.blocks) else 2)
    tried = [(facts, row, _IMAGINARY if row not in REAL_ROWS else "") for row in rows]
    if mismatch is not None and len(codomain.blocks) > 1 and not mismatch.small_rows:
        alone = facts.of_output(mismatch.output)
        tried += [(alone, row, _of_output(facts, mismatch.output)) for row in rows]
    first: tuple[Entry, ...] = ()
    for there, row, clause in tried:
        found = _entries_for(there, place, mismatch, shape, row, is_folded=is_folded)
        if any(shows(entry) for entry in found):
            single = None if is_folded or mismatch is None else _of_worst_output(facts, place, mismatch, shape, found)
            return found if single is None else single, clause
        first = first or found
    return first, ""


def _of_worst_output(
    facts: Facts, place: int, mismatch: Mismatch, shape: tuple[int, ...], found: Sequence[Entry]
) -> tuple[Entry, ...] | None:
    """The derivatives of the output entry with the largest error, if it is far larger than in the entries found.

    A sum over outputs may leave a hundredth of an error that single derivatives show. Sizes are relative to the largest
    derivative, and to the largest entry.
    """
    block = facts.subject.codomain.blocks[mismatch.output]
    if mismatch.small_rows or mismatch.wide or block.complex or facts.subject.domain.blocks[place].complex:
        return None
    errors, largest = _excess(mismatch.claimed, mismatch.numeric, mismatch.bound), np.abs(mismatch.numeric).max()
    sums = np.abs(pulled_back(mismatch, np.ones(block.size))[1]).max()
    shown = max(_gap(entry) for entry in found if shows(entry))
    size = float(errors.max(initial=0.0) / largest) if np.isfinite(errors).all() and largest > 0 else 0.0
    if not sums > 0 or any(entry.returned_shape for entry in found) or size <= _FAR_LARGER * shown / sums:
        return None
    row = int(np.argmax(errors.max(axis=1)))
    table = {name: getattr(mismatch, name)[[row]] for name in ("rows", "claimed", "numeric", "bound")}
    alone = facts.of_output(mismatch.output, int(table["rows"][0]))
    (index,) = outputs_of(replace(mismatch, rows=table["rows"]), block.shape)
    made = _entries_for(alone, place, replace(mismatch, **table, small_rows=True), shape, 0)
    return tuple(replace(entry, output_index=index) for entry in made) if any(map(shows, made)) else None


def _of_output(facts: Facts, output: int) -> str:
    return (
        f"; the error is in the part of the gradient that comes from output {facts.subject.output_numbers[output]}, "
        "which is far smaller than that from the other outputs"
    )


def symmetric_part(facts: Facts, place: int, mismatch: Mismatch, shape: tuple[int, ...]) -> Mismatch | None:
    """The table for symmetric changes alone, if forward reads one triangle of a symmetric matrix; None otherwise.

    How a gradient is divided between the triangles is then a convention, and entries of it cannot be compared.
    """
    if not np.array_equal(mismatch.columns, np.arange(np.prod(shape))) or not _reads_one_triangle(facts, place, shape):
        return None

    def folded(table: FloatArray) -> FloatArray:
        return _mean_of_both(table.reshape(-1, *shape)).reshape(table.shape)

    claimed, numeric, bound = (folded(each) for each in (mismatch.claimed, mismatch.numeric, mismatch.bound))
    return replace(mismatch, claimed=claimed, numeric=numeric, bound=bound, wrong_columns=None)


def _reads_one_triangle(facts: Facts, place: int, shape: tuple[int, ...]) -> bool:
    """Whether the input is a symmetric matrix, and forward feels its first row or its first column, but not both."""
    value = facts.subject.arguments[facts.subject.active[place]].value
    if value.ndim < 2 or value.dtype.kind != "f" or shape[-1] != shape[-2] or not np.array_equal(value, _turned(value)):
        return False
    felt = []
    for column in range(1, min(shape[-1], _PROBED)):
        slopes = [facts.entry_slope(place, flat, 1) for flat in (column, column * shape[-1])]
        felt.append(tuple(not abs(slope) <= 3 * bound for slope, bound in slopes))
    return len(set(felt)) == 1 and sum(felt[0]) == 1


def _turned(value: NDArray[Any]) -> NDArray[Any]:
    return np.swapaxes(value, -1, -2)


def _mean_of_both(value: FloatArray) -> FloatArray:
    """The symmetric part of matrices."""
    mean: FloatArray = (value + _turned(value)) / 2
    return mean


def outputs_of(mismatch: Mismatch, shape: tuple[int, ...]) -> list[tuple[int, ...]]:
    """The indices in the output of a table's rows, each once, although a complex number has two rows."""
    parts = 1 + (len(mismatch.rows) > 0 and mismatch.output_value.dtype.kind == "c")
    places = dict.fromkeys(int(row) // parts for row in mismatch.rows)
    return [tuple(int(i) for i in np.unravel_index(place, shape)) if shape else () for place in places]


def entries_of(mismatch: Mismatch, domain: Space) -> tuple[Entry, ...]:
    """The worst entries measured, for a grad_output of ones; none for a complex input or for only some of the rows."""
    block = domain.blocks[mismatch.input]
    if mismatch.rows.size != mismatch.output_value.size or block.complex:
        return ()
    claimed, numeric, bound = (np.sum(part, axis=0) for part in (mismatch.claimed, mismatch.numeric, mismatch.bound))
    error = _excess(claimed, numeric, bound)
    worst = sorted(int(i) for i in np.argsort(-error, kind="stable")[:SHOWN] if error[i] > 0)
    return tuple(
        Entry(
            index=tuple(int(i) for i in np.unravel_index(mismatch.columns[place], block.shape)) if block.shape else (),
            analytic=float(claimed[place]),
            numeric=float(numeric[place]),
            bound=float(bound[place]),
        )
        for place in worst
    )


def shows(entry: Entry) -> bool:
    """Whether an entry is wrong by more than its bound; None stands for zero."""
    if entry.analytic is None and entry.returned_shape is not None:
        return True
    return not _gap(entry) <= 3 * entry.bound + _ROUNDING * float(np.abs(entry.numeric))


def _gap(entry: Entry) -> float:
    """The error of an entry. Python's own abs may raise OverflowError for a complex NaN, after an earlier overflow."""
    return float(np.abs((entry.analytic or 0.0) - entry.numeric))


def _entries_for(
    facts: Facts, place: int, mismatch: Mismatch | None, shape: tuple[int, ...], row: int, *, is_folded: bool = False
) -> tuple[Entry, ...]:
    """The worst entries for one of the cotangents; with `is_folded`, of the symmetric parts of the gradients."""
    position = facts.subject.active[place]
    returned = _as_summed(facts.of(position)[row], shape, is_accepted=mismatch is not None)
    same_shape = returned is not None and returned.shape == shape
    if is_folded and same_shape and returned is not None:
        returned = _mean_of_both(returned)
    block = facts.subject.domain.blocks[place]
    parts = 2 if block.complex else 1
    columns = _columns(facts, place, mismatch, parts, row)
    entries = []
    for column in columns:
        measured = [_measured(facts, place, mismatch, parts * column + part, row) for part in range(parts)]
        if is_folded:
            mirrored = int(_turned(np.arange(block.size).reshape(shape)).reshape(-1)[column])
            sides = [facts.entry_slope(place, each, row) for each in (column, mirrored)]
            measured = [((sides[0][0] + sides[1][0]) / 2, (sides[0][1] + sides[1][1]) / 2)]
        numeric = complex(measured[0][0], measured[1][0]) if parts == 2 else measured[0][0]
        index = tuple(int(i) for i in np.unravel_index(column, shape)) if shape else ()
        analytic = None if not same_shape or returned is None else returned[index].item()
        bound = max(b for _, b in measured)
        other = None if same_shape or returned is None else returned.shape
        entries.append(Entry(index=index, analytic=analytic, numeric=numeric, bound=bound, returned_shape=other))
    return tuple(entries)


def _as_summed(returned: Gradient, shape: tuple[int, ...], *, is_accepted: bool) -> Gradient:
    """A gradient summed over axes that broadcasting the input would add, as the framework does where it accepts that.

    Leading axes of length 1 are always dropped; others stay as they are.
    """
    extra = 0 if returned is None else returned.ndim - len(shape)
    if returned is None or returned.shape == shape or extra < 0:
        return returned
    sizes = returned.shape[extra:]
    fits = all(own in (1, size) for own, size in zip(shape, sizes, strict=True))
    if not fits or not (is_accepted or returned.shape == (1,) * extra + shape):
        return returned
    axes = (*range(extra), *(extra + n for n, own in enumerate(shape) if own == 1))
    return np.asarray(returned.sum(axis=axes)).reshape(shape)


def _measured(facts: Facts, place: int, mismatch: Mismatch | None, column: int, row: int) -> tuple[float, float]:
    """The numerical entry of one real column and its bound; from the table if it holds all rows of the column."""
    if mismatch is None or not mismatch.complete or len(facts.subject.codomain.blocks) > 1:
        return facts.entry_slope(place, column, row)
    _, numeric, bound = pulled_back(mismatch, facts.cotangents[row])
    here = int(np.flatnonzero(mismatch.columns == column)[0])
    if not (mismatch.wide or np.isfinite(bound[here])):
        return facts.entry_slope(place, column, row)
    return float(numeric[here]), float(bound[here])


def _columns(facts: Facts, place: int, mismatch: Mismatch | None, parts: int, row: int) -> list[int]:
    """Which entries to show: the worst of the table for this cotangent, else the first few."""
    count = facts.subject.domain.blocks[place].entries
    if mismatch is None or not len(mismatch.columns):
        return list(range(min(count, SHOWN)))
    rows = facts.subject.codomain.slices[mismatch.output]
    claimed, numeric, bound = pulled_back(mismatch, facts.cotangents[row][rows])
    error = _excess(claimed, numeric, bound)
    known = mismatch.columns if mismatch.wrong_columns is None else mismatch.wrong_columns
    order = [int(mismatch.columns[i]) // parts for i in np.argsort(-error, kind="stable") if error[i] > 0]
    order = [column for column in order if mismatch.wrong_columns is None or column in known // parts]
    if not order:  # the sum over outputs is unknown if one of them is: use single derivatives
        alone = known[:0] if known is not mismatch.columns else known[_off(mismatch).any(axis=0)]
        order = [int(c) // parts for c in (alone if alone.size else _by_error_in_bounds(mismatch, known))]
    return sorted(list(dict.fromkeys(order))[:SHOWN])


def _by_error_in_bounds(mismatch: Mismatch, known: NDArray[np.intp]) -> NDArray[np.intp]:
    """The columns `known` with an error, in bounds, of at least half of the largest such error; the largest first."""
    with np.errstate(all="ignore"):
        errors = np.abs(mismatch.claimed - mismatch.numeric) / mismatch.bound
    largest = np.nan_to_num(errors, nan=0.0, posinf=np.inf).max(axis=0, initial=0.0)
    order = [i for i in np.argsort(-largest, kind="stable") if mismatch.columns[i] in known]
    chosen: NDArray[np.intp] = mismatch.columns[[i for i in order if largest[i] >= largest[order[0]] / 2]]
    return chosen


def _off(mismatch: Mismatch) -> NDArray[np.bool_]:
    """Which entries of a table are off by more than three bounds."""
    off: NDArray[np.bool_] = _excess(mismatch.claimed, mismatch.numeric, mismatch.bound) > 0
    return off


def _excess(claimed: FloatArray, numeric: FloatArray, bound: FloatArray) -> FloatArray:
    with np.errstate(all="ignore"):
        error = np.abs(claimed - numeric)
    excess: FloatArray = np.where(np.isfinite(claimed), np.maximum(error - 3 * bound, 0.0), np.inf)
    return np.where(np.isnan(excess), np.inf, excess)


def tells_of_the_right(mismatch: Mismatch, mask: NDArray[np.bool_], parts: int) -> bool:
    """Whether an entry outside the mask of wrong ones is seen to be right, and not only too small to be seen wrong.

    An entry far smaller than the largest may have a wrong factor and an error below the significance. An entry that is
    returned as zero cannot.
    """
    size = np.abs(mismatch.numeric).max(axis=0, initial=0.0)
    returned = np.abs(mismatch.claimed).max(axis=0, initial=0.0)
    right = ~mask.reshape(-1)[np.asarray(mismatch.columns) // parts]
    telling = (size > _TELLING * size.max(initial=0.0)) | (returned == 0)
    return bool((right & telling).any())


def wrong_mask(mismatch: Mismatch, shape: tuple[int, ...], parts: int, significance: float) -> NDArray[np.bool_] | None:
    """Which entries of the input have a wrong column; None without a complete table or a finished search."""
    mask = np.zeros(int(np.prod(shape)) if shape else 1, dtype=bool)
    if mismatch.wrong_columns is not None:
        mask[mismatch.wrong_columns // parts] = True
        return mask.reshape(shape)
    if not mismatch.complete:
        return None
    scale = float(np.max(np.abs(mismatch.numeric), initial=0.0))
    with np.errstate(all="ignore"):
        error = np.abs(mismatch.claimed - mismatch.numeric)
    wrong = ~(error <= 3 * mismatch.bound + significance * scale)
    columns = wrong.any(axis=0)
    np.logical_or.at(mask, np.asarray(mismatch.columns) // parts, columns)
    return mask.reshape(shape)


def indices_of(mask: NDArray[np.bool_], limit: int = 1000) -> Sequence[tuple[int, ...]]:
    """The indices that are set, at most `limit`."""
    return [tuple(int(i) for i in index) for index in np.argwhere(mask)[:limit]]
