"""Names for a gradient that was not summed over the axes that forward broadcast, or summed over others."""

import itertools
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gradcli.diagnosis.suspect import Named, Suspect, each
from gradcli.diagnosis.table import Gradient, Table
from gradcli.findings import FindingKind


def unreduced(suspect: Suspect) -> Named | None:
    """Right after a sum over some axes."""
    block = suspect.facts.subject.domain.blocks[suspect.block]
    arrays = [g for g in suspect.gradients if g is not None]
    if len(arrays) != len(suspect.gradients) or arrays[0].ndim > 5:
        return None
    rank = arrays[0].ndim
    for count in range(1, rank + 1):
        for axes in itertools.combinations(range(rank), count):
            if suspect.proves(partial(_summed, axes=axes)):
                return (
                    FindingKind.MISSING_REDUCTION,
                    f"{suspect.name} has shape {list(block.shape)}: the returned gradient of shape "
                    f"{list(arrays[0].shape)} was not summed over {_named(axes)}",
                    {},
                )
            leading = suspect.mismatch is not None and axes == tuple(range(rank - len(suspect.shape)))
            if leading and suspect.proves(partial(_averaged, axes=axes)):
                return (
                    FindingKind.MISSING_REDUCTION,
                    f"{suspect.name} has shape {list(block.shape)}: the returned gradient of shape "
                    f"{list(arrays[0].shape)} is not reduced to it: the framework sums over {_named(axes)}, and the "
                    "sum is wrong, but the mean would be right",
                    {},
                )
    return None


def _named(axes: tuple[int, ...]) -> str:
    return f"ax{'es' if len(axes) > 1 else 'is'} {', '.join(map(str, axes))}"


def _averaged(suspect: Suspect, *, axes: tuple[int, ...]) -> list[Gradient]:
    return each(suspect, lambda g: _summed_to(g, axes, suspect.shape, mean=True))


def _summed(suspect: Suspect, *, axes: tuple[int, ...]) -> list[Gradient]:
    return each(suspect, lambda g: _summed_to(g, axes, suspect.shape))


def _summed_to(
    gradient: NDArray[Any], axes: tuple[int, ...], shape: tuple[int, ...], *, mean: bool = False
) -> Gradient:
    total: NDArray[Any] = gradient.mean(axis=axes) if mean else gradient.sum(axis=axes)
    return total.reshape(shape) if total.size == int(np.prod(shape)) else None


def wrong_axis(suspect: Suspect) -> Named | None:
    """For an input along one axis of the output: reduced to another axis of the same size, or to a single number."""
    codomain = suspect.facts.subject.codomain
    if suspect.table is None or len(codomain.blocks) > 1:
        return None
    count, shape = int(np.prod(suspect.shape)), codomain.blocks[0].shape
    if count < 2 or max(suspect.shape, default=1) != count:
        return None
    fitting = [axis for axis, size in enumerate(shape) if size == count]
    for right in fitting:
        for kept in (*(axis for axis in fitting if axis != right), None):
            if len(shape) > 1 and suspect.shows(partial(_summed_to_axis, shape=shape, right=right, kept=kept)):
                axes = "all axes" if kept is None else f"all axes except axis {kept}"
                return (
                    FindingKind.WRONG_REDUCTION,
                    f"{suspect.name} is broadcast over all axes of the output except axis {right}, so its gradient is "
                    f"a sum over them; backward sums over {axes} instead",
                    {},
                )
    return None


def _summed_to_axis(_: Suspect, table: Table, *, shape: tuple[int, ...], right: int, kept: int | None) -> bool:
    """Whether each output contributes to the entry at its index along `kept` (to all for None), not `right`."""
    columns = np.arange(table.claimed.shape[1])
    places = np.indices(shape).reshape(len(shape), -1)
    meant = places[right][:, None] == columns
    given = np.ones_like(meant) if kept is None else places[kept][:, None] == columns
    share = np.where(meant, table.numeric, 0.0).sum(axis=1)
    slack = np.where(meant, table.floor, 0.0).sum(axis=1)
    if not np.isfinite(slack).all() or (table.moves & ~meant).any() or not table.moves.any():
        return False
    return bool((np.abs(table.claimed - np.where(given, share[:, None], 0.0)) <= slack[:, None]).all())
