"""Rules for wrong entries by their place: rows, diagonals, borders, and what an index or a mask selects."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

Mask = NDArray[np.bool_]
_ALTERNATING = 6
"""Among fewer entries, every other one may easily be wrong by chance."""


def by_position(wrong: Mask, known: Mask) -> Iterator[tuple[str, Mask]]:
    """Slices, diagonals, borders, even and odd indices, each with its text.

    Of the many slices and ranges along an axis, only those are yielded that may be the wrong entries.

    Args:
        wrong: the entries to describe, some but not all.
        known: the entries known to be wrong or right.
    """
    shape = wrong.shape
    places: NDArray[np.intp] = np.indices(shape)
    for axis, size in enumerate(shape):
        what = {0: "row", 1: "column"}.get(axis, "slice") if len(shape) == 2 else f"index along axis {axis}"
        if size > 1:
            yield f"the last {what}", places[axis] == size - 1
            yield f"the first {what}", places[axis] == 0
            step = _only_index(wrong, axis)
            if step is not None and 0 < step < size - 1:
                yield f"index {step} along axis {axis}" if len(shape) != 2 else f"{what} {step}", places[axis] == step
    if len(shape) >= 2:
        row, column = places[-2], places[-1]
        yield "the diagonal", row == column
        yield "off the diagonal", row != column
        yield "above the diagonal", row < column
        yield "below the diagonal", row > column
        yield "on and above the diagonal", row <= column
        yield "on and below the diagonal", row >= column
    yield from _borders(shape, places)
    flat = np.arange(int(np.prod(shape))).reshape(shape)
    if flat.size >= _ALTERNATING:
        yield "even indices", flat % 2 == 0
        yield "odd indices", flat % 2 == 1
    for width in (4, 8, 16, 32):
        if 2 * width < flat.size:
            yield f"the tail after the last full block of {width}", flat >= flat.size // width * width
    yield from _ranges(wrong, known & ~wrong, places)


def _indices(chosen: Mask, axis: int) -> NDArray[np.intp]:
    """The indices along an axis at which there are chosen entries."""
    return np.flatnonzero(chosen.any(axis=tuple(other for other in range(chosen.ndim) if other != axis)))


def _only_index(chosen: Mask, axis: int) -> int | None:
    """The index along an axis that all chosen entries share."""
    found = _indices(chosen, axis)
    return int(found[0]) if found.size == 1 else None


def _ranges(wrong: Mask, right: Mask, places: NDArray[np.intp]) -> Iterator[tuple[str, Mask]]:
    """Ranges of at most half of the indices of an axis, at either end, that separate the wrong from the right."""
    for axis, size in enumerate(wrong.shape):
        bad, good = _indices(wrong, axis), _indices(right, axis)
        what = f"{('row', 'column')[axis]} {{}}" if wrong.ndim == 2 else f"index {{}} of axis {axis}"
        start = max(1, (size + 1) // 2, int(good.max()) + 1 if good.size else 1)
        if bad.size and start <= min(int(bad.min()), size - 1):
            yield f"from {what.format(start)} on", places[axis] >= start
        stop = int(bad.max()) + 1 if bad.size else 0
        if 1 <= stop < size and 2 * stop <= size:
            yield f"up to {what.format(stop - 1)}", places[axis] < stop


def _borders(shape: tuple[int, ...], places: NDArray[np.intp]) -> Iterator[tuple[str, Mask]]:
    """The border of all axes, of the last two, and of one."""
    groups = {tuple(range(len(shape))), tuple(range(len(shape)))[-2:], *((axis,) for axis in range(len(shape)))}
    for axes in sorted(groups, key=len, reverse=True):
        if all(shape[axis] > 3 for axis in axes):
            edge: Mask = np.zeros(shape, bool)
            for axis in axes:
                edge |= (places[axis] == 0) | (places[axis] == shape[axis] - 1)
            where = "" if len(axes) == len(shape) else f" along ax{'es' if len(axes) > 1 else 'is'} "
            where += "" if not where else ", ".join(map(str, axes))
            yield f"the border{where}", edge
            yield f"the interior, away from the border{where}", ~edge


def by_indices(
    shape: tuple[int, ...],
    indices: Mapping[str, NDArray[Any]],
    masks: Mapping[str, NDArray[Any]],
    *,
    assigns: bool = True,
) -> Iterator[tuple[str, Mask]]:
    """The entries where a boolean input is true, and those that an input of whole numbers selects along an axis.

    Those selected more than once come first where backward `assigns` to entries, which goes wrong there, else those of
    which nothing remains where forward does.
    """
    for name, mask in masks.items():
        yield f"the entries for which {name} is True", mask
        yield f"the entries for which {name} is False", ~mask
    places: NDArray[np.intp] = np.indices(shape)
    for name, index in indices.items():
        if not index.size or len(shape) == 0:
            continue
        for axis, size in enumerate(shape):
            if index.shape == shape[:axis] + shape[axis + 1 :] and len(shape) > 1:
                picked: Mask = places[axis] == np.expand_dims(index % size, axis)
                yield f"the entries that {name} selects along axis {axis}", picked
                yield f"the entries that {name} does not select along axis {axis}", ~picked
            counts = np.bincount((index % size).reshape(-1), minlength=size)[places[axis]]
            what = "rows" if axis == 0 else f"indices along axis {axis}"
            selected = f"the {what} that {name} selects", counts > 0
            repeated = f"the {what} that {name} selects more than once", counts > 1
            if index.shape == (size,) and not assigns:
                later = np.array([bool((index[n + 1 :] == each).any()) for n, each in enumerate(index)])
                yield f"the {what} whose number in {name} occurs again later", later[places[axis]]
            yield from (repeated, selected) if assigns else (selected, repeated)
            yield f"the {what} that {name} does not select", counts == 0
