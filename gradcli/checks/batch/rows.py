"""Whether the entries along an axis are independent, as the rows of a batch are."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gradcli.checks.base import relative_gap

Outputs = Sequence[NDArray[Any]]
Entries = NDArray[np.intp]
OutputsOf = Callable[[Entries], Outputs | None]
"""The outputs for a selection of entries, in that order and as often as each is named; None where forward raises."""
_SINGLE = 3
"""Forward is called with each of the first so many entries alone, and with the others together."""


def entries_stand_alone(size: int, outputs_of: OutputsOf, tolerance: float) -> bool:
    """Whether the outputs are made of those of single entries: their concatenation, mean, or sum plus a constant.

    It has to hold at another size too, with the first entry there three times: a function that reads only the first and
    the last entry looks like a sum if there are two.
    """
    parts = _parts(size)
    alone: list[tuple[int, Outputs]] = []
    for part in parts:
        found = outputs_of(part)
        if found is None:
            return False
        alone.append((len(part), found))
    whole, twice = outputs_of(np.arange(size)), outputs_of(np.array([0, 0]))
    if whole is None or twice is None or any(len(outputs) != len(whole) for outputs in (twice, *(o for _, o in alone))):
        return False
    constants = [2 * one - two if one.shape == two.shape else None for one, two in zip(alone[0][1], twice, strict=True)]
    if not _are_put_together(whole, alone, constants, tolerance):
        return False
    longer = outputs_of(np.concatenate([[0, 0], np.arange(size)]))
    longer_alone = [alone[0], alone[0], *alone]
    return longer is not None and _are_put_together(longer, longer_alone, constants, tolerance)


def entries_make_statistics(size: int, outputs_of: OutputsOf, tolerance: float) -> bool:
    """Whether the outputs depend on the distribution of the entries, as those of a normalisation do.

    They are unchanged if every entry occurs twice, in any order, and change if the first entry occurs more often,
    wherever its copies are. The largest entry is not such a statistic, nor is a function of two entries.
    """
    every, first = np.arange(size), np.zeros(size, dtype=np.intp)
    whole = outputs_of(every)
    if whole is None:
        return False
    for selection in (np.tile(every, 2), np.repeat(every, 2), np.concatenate([every[::-1], every])):
        found = outputs_of(selection)
        if found is None or not _are_the_same(found, selection, whole, size, tolerance):
            return False
    for selection in (np.concatenate([every, first]), np.concatenate([first, every])):
        found = outputs_of(selection)
        if found is None or _are_the_same(found, selection, whole, size, tolerance):
            return False
    return True


def _parts(size: int) -> list[Entries]:
    """The first entries one by one, then what is left."""
    count = min(size, _SINGLE) if size != _SINGLE + 1 else size
    parts = [np.array([entry]) for entry in range(count)]
    return [*parts, np.arange(count, size)] if count < size else parts


def _are_put_together(
    whole: Outputs,
    parts: Sequence[tuple[int, Outputs]],
    constants: Sequence[NDArray[Any] | None],
    tolerance: float,
) -> bool:
    """Whether every output is the concatenation of those of the parts, their mean, or their sum (with one constant)."""
    sizes, total = [length for length, _ in parts], sum(length for length, _ in parts)
    if len(whole) != len(constants):
        return False
    for number, (output, constant) in enumerate(zip(whole, constants, strict=True)):
        found = [outputs[number] for _, outputs in parts]
        options: list[NDArray[Any]] = []
        if [f.shape[:1] for f in found] == [(length,) for length in sizes] and len({f.shape[1:] for f in found}) == 1:
            options.append(np.concatenate(found))
        if constant is not None and {f.shape for f in found} == {output.shape}:
            options.append(np.sum(found, axis=0) - (len(found) - 1) * constant)
            options.append(np.sum([length * f for length, f in zip(sizes, found, strict=True)], axis=0) / total)
        if not any(relative_gap(option, output) <= tolerance for option in options):
            return False
    return True


def _are_the_same(found: Outputs, selection: Entries, whole: Outputs, size: int, tolerance: float) -> bool:
    """Whether outputs with the axis are the selected entries of the whole, and outputs without it are unchanged."""
    if len(found) != len(whole):
        return False
    for one, other in zip(found, whole, strict=True):
        wanted = other[selection] if other.ndim and len(other) == size else other
        if relative_gap(wanted, one) > tolerance:
            return False
    return True
