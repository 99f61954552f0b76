"""The facts at a part of long inputs, for searches that run backward hundreds of times."""

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gradcli.diagnosis.facts import Facts
from gradcli.errors import UserCodeError
from gradcli.results import Mismatch

_LONG, _KEPT = 10_000, 1_000
"""Inputs of more than `_LONG` entries in all are cut to at most `_KEPT`: below these sizes a pass of tanh takes as long
as its calls, about 0.1 ms, and no shorter at fewer entries."""


def shortened(facts: Facts, place: int, mismatch: Mismatch | None) -> Facts | None:
    """The facts at a window of each long axis, around the entry of the active input number `place` that is most wrong.

    Axes of equal size are cut alike. None for short inputs, for such as cannot be cut (sparse tensors, and indices),
    where forward refuses the parts, and where backward returns other inputs' gradients for them.
    """
    subject = facts.subject
    tensors = [a for a in subject.arguments if a.is_tensor]
    if subject.domain.size <= _LONG or (mismatch is not None and mismatch.small_rows):
        return None
    if any(a.sparsity is not None or a.value.dtype.kind not in "fc" for a in tensors):
        return None
    windows = _windows(facts, place, mismatch)
    arguments = [replace(a, value=_part(a.value, windows)) if a.is_tensor else a for a in subject.arguments]
    try:
        there = subject.rebind(tuple(arguments))
    except UserCodeError:  # inputs that gradcli chose, which forward need not accept
        return None
    if there.active != subject.active or there.output_numbers != subject.output_numbers:
        return None
    short = facts.over(there)
    return short if all(_returned(short, p) == _returned(facts, p) for p in subject.active) else None


def _returned(facts: Facts, position: int) -> bool:
    return all(gradient is not None for gradient in facts.of(position))


def _windows(facts: Facts, place: int, mismatch: Mismatch | None) -> dict[int, slice]:
    """For each size of an axis, the part of the axis that is kept; the largest sizes are halved until all fit."""
    subject = facts.subject
    shapes = [a.value.shape for a in subject.arguments if a.is_tensor]
    kept = {size: size for shape in shapes for size in shape}
    while sum(int(np.prod([kept[size] for size in shape], dtype=np.int64)) for shape in shapes) > _KEPT:
        longest = max(kept, key=lambda size: kept[size])
        if kept[longest] == 1:
            break
        kept[longest] = -(-kept[longest] // 2)
    shape, worst = subject.domain.blocks[place].shape, _worst(facts, place, mismatch)
    centres = dict(zip(shape, np.unravel_index(worst, shape), strict=True)) if shape else {}
    starts = {size: min(max(int(centres.get(size, 0)) - n // 2, 0), size - n) for size, n in kept.items()}
    return {size: slice(starts[size], starts[size] + n) for size, n in kept.items()}


def _worst(facts: Facts, place: int, mismatch: Mismatch | None) -> int:
    """The entry of an input whose gradient is furthest from right among those measured; the first if none was."""
    if mismatch is None or mismatch.input != place or not mismatch.columns.size:
        return 0
    with np.errstate(invalid="ignore"):
        error = np.nan_to_num(np.abs(mismatch.claimed - mismatch.numeric), nan=np.inf).max(axis=0, initial=0.0)
    parts = 2 if facts.subject.domain.blocks[place].complex else 1
    return int(mismatch.columns[int(np.argmax(error))]) // parts


def _part(value: NDArray[Any], windows: dict[int, slice]) -> NDArray[Any]:
    return np.array(value[tuple(windows[size] for size in value.shape)])
