"""The wrong entries of an input at several points, for finding the rule by which they are wrong."""

import ast
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gradcli.diagnosis.facts import Facts
from gradcli.diagnosis.regions.predicate import Mask, Probe, Sample
from gradcli.diagnosis.suspect import Suspect
from gradcli.diagnosis.table import SIGNIFICANCE
from gradcli.edits.source import written
from gradcli.watchdog.limit import TimeLimit

_LEAST, _MOST = 3, 7
_SECONDS = 0.5
"""Processor time for trying other inputs, and for finding the value at which entries become wrong."""
_COARSE = 1e-3
_LOOKED_AT = 24
_ASSIGNING = frozenset({"index_copy", "index_put", "put", "scatter", "set"})
"""Methods that assign to entries which an index selects."""
_ENOUGH = 1e-5
"""Points are added until the wrong entries at all of them have a smaller probability than this by accident."""


def samples_of(suspect: Suspect, mask: Mask) -> list[Sample]:
    """The wrong entries here, and at inputs whose entries are permuted, if forward accepts those."""
    found = [_sample(suspect.facts, suspect.block, mask, None)]
    for number, other in enumerate(_others(suspect)):
        table = other.part_of_table(suspect.block, looked_at(mask, number))
        if table is None:
            break
        wrong: Mask = np.any(table.wrong, axis=0).reshape(mask.shape)
        known: Mask = np.all(table.known, axis=0).reshape(mask.shape) | wrong
        found.append(_sample(other, suspect.block, wrong, known))
        if len(found) >= _LEAST and float(np.prod([sample.accident for sample in found])) < _ENOUGH:
            break
    return found


def probe_of(suspect: Suspect, mask: Mask) -> Probe:
    """How wrong the first wrong entry is at another value, all else being equal."""
    facts, place = suspect.facts, suspect.block
    position = facts.subject.active[place]
    column = int(np.flatnonzero(mask)[0])
    values = [np.asarray(facts.subject.arguments[p].value) for p in facts.subject.active]
    limit = TimeLimit(_SECONDS)

    def error_at(value: float, magnitude: bool) -> float | None:
        if limit.is_over or values[place].dtype.kind != "f":
            return None
        changed = values[place].copy()
        changed.flat[column] = abs(value) * np.sign(changed.flat[column]) if magnitude else value
        there = facts.at([*values[:place], changed, *values[place + 1 :]])
        gradient = None if there is None else there.of(position)[1]
        if there is None or gradient is None or gradient.shape != mask.shape:
            return None
        slope, bound = there.entry_slope(place, column, 1)
        gap, size = abs(float(gradient.flat[column]) - slope), float(np.abs(gradient).max(initial=abs(slope)))
        if bound > _COARSE * size:
            return None
        return 0.0 if gap <= 3 * bound else gap / (3 * bound + SIGNIFICANCE * size)

    return error_at


def looked_at(mask: Mask, number: int = 0) -> NDArray[np.intp]:
    """The entries to measure elsewhere: all if there are few, else some of the wrong ones and some of the others."""
    if mask.size <= _LOOKED_AT:
        return np.arange(mask.size)
    generator = np.random.default_rng(number)
    wrong, right = (generator.permutation(np.flatnonzero(part)) for part in (mask, ~mask))
    half = _LOOKED_AT // 2
    chosen: NDArray[np.intp] = np.sort(np.concatenate([wrong[:half], right[: _LOOKED_AT - min(half, wrong.size)]]))
    return chosen


def _others(suspect: Suspect) -> Iterator[Facts]:
    limit = TimeLimit(_SECONDS)
    for number in range(_MOST):
        if number >= _LEAST and limit.is_over:
            return
        facts = suspect.facts.rearranged(number)
        if facts is not None:
            yield facts


def _sample(facts: Facts, place: int, wrong: Mask, known: Mask | None) -> Sample:
    subject = facts.subject
    own = subject.arguments[subject.active[place]]
    numbers: Mapping[str, float] = {
        a.name: float(a.value)
        for a in subject.arguments
        if not a.is_tensor and isinstance(a.value, int | float) and not isinstance(a.value, bool) and a.value
    }
    arrays = {a.name: np.asarray(a.value) for a in subject.arguments if a.is_tensor and a is not own and not a.sparsity}
    fitting = {n: v for n, v in arrays.items() if v.dtype.kind in "fb" and _fits(v.shape, wrong.shape)}
    return Sample(
        wrong=wrong,
        known=known,
        values=np.asarray(own.value),
        others={n: np.broadcast_to(v, wrong.shape) for n, v in fitting.items()},
        indices={n: v for n, v in arrays.items() if v.dtype.kind in "iu"},
        numbers=numbers,
        assigns=_assigns(subject.info.backward),
    )


def _assigns(backward: Callable[..., Any] | None) -> bool:
    """Whether backward assigns to entries of something, or its source is not known."""
    own = written(backward)
    if own is None:
        return True
    return any(
        (isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store))
        or (isinstance(node, ast.Attribute) and node.attr.rstrip("_") in _ASSIGNING)
        for node in ast.walk(own.node)
    )


def _fits(shape: tuple[int, ...], wanted: tuple[int, ...]) -> bool:
    return (
        len(shape) > 0
        and len(shape) <= len(wanted)
        and all(a in (1, b) for a, b in zip(reversed(shape), reversed(wanted), strict=False))
    )
