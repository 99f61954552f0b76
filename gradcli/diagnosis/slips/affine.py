"""How the returned gradients depend on the value of one expression of backward, where that is linear plus a constant.

Backward is linear in grad_output, and most expressions in it enter linearly too. Then a few runs with that value
changed say what every other value would give, and thousands of forms can be held against the slopes of forward at once.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gradcli.backends.base import FloatArray
from gradcli.diagnosis.facts import DIRECTIONS
from gradcli.diagnosis.slips.bench import Bench
from gradcli.frozen import dataclass

MOST_ENTRIES = 160
"""Entries of a value that are changed one by one, a run of backward each."""
_LINEAR, _ADDS_UP = 1e-9, 1e-7
"""Rounding of a second difference, and of a sum of as many differences as a value has entries."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Affine:
    """Gradients along the directions = `matrix` @ value + `rest`; `value` is what the expression is now."""

    matrix: FloatArray
    rest: FloatArray
    value: FloatArray
    shape: tuple[int, ...]


def affine_at(place: int, bench: Bench, framework: Any, present: FloatArray) -> Affine | None:
    """The dependence on the value at a place; None where it has none, is not affine, or the value is too large."""
    if len(bench.seen.get(place, ())) != 1 or not framework.is_tensor(bench.seen[place][0][0]):
        return None
    original = bench.seen[place][0][0]
    array = np.asarray(framework.to_array(original))
    if array.dtype.kind != "f" or not 0 < array.size <= MOST_ENTRIES or not np.isfinite(array).all():
        return None
    value = array.astype(np.float64)

    def given(changed: NDArray[Any]) -> FloatArray:
        with bench.hooks.giving(place, framework.like(original, changed.astype(array.dtype))):
            found = bench.projected()
        return np.full(present.shape, np.nan) if found is None else found

    step = (float(np.abs(value).max()) or 1.0) * (0.5 + np.random.default_rng(place).random(value.shape))
    once, twice = given(value + step), given(value + 2 * step)
    scale = np.abs(present).max(initial=0.0) + np.abs(once).max(initial=0.0)
    if not np.abs(twice - 2 * once + present).max(initial=0.0) <= _LINEAR * scale:  # nor where it is not a number
        return None
    if not np.abs(once - present).max(initial=0.0) > _LINEAR * scale:
        return None
    matrix = _columns(value, given, present)
    if not np.abs(matrix @ step.reshape(-1) - (once - present)).max(initial=0.0) <= _ADDS_UP * scale:
        return None
    return Affine(matrix=matrix, rest=present - matrix @ value.reshape(-1), value=value, shape=value.shape)


def _columns(value: FloatArray, given: Callable[[FloatArray], FloatArray], present: FloatArray) -> FloatArray:
    """What a change of each entry by itself does."""
    size = float(np.abs(value).max()) or 1.0
    columns = []
    for number in range(value.size):
        changed = value.copy()
        changed.flat[number] += size
        columns.append((given(changed) - present) / size)
    return np.array(columns).T


@dataclass(frozen=True, slots=True)
class Hit:
    """The number of a form with the coefficient that makes the gradients right."""

    number: int
    coefficient: float


def hits(
    maps: Sequence[Affine], benches: Sequence[Bench], rows: Sequence[FloatArray], lacking: FloatArray
) -> list[Hit]:
    """The forms (one row each, at every bench) that some coefficient makes what is `lacking`."""
    reached = reached_by(maps)
    slack = np.concatenate([b.slack for b in benches])
    usable = reached & np.isfinite(slack)
    if not usable.any():
        return []
    with np.errstate(all="ignore"):
        made = np.concatenate([m.matrix @ r.T for m, r in zip(maps, rows, strict=True)])[usable]
        target, allowed = lacking[usable][:, None], slack[usable][:, None]
        coefficients = (made * target).sum(axis=0) / (made * made).sum(axis=0)
        error = np.abs(coefficients * made - target)
        fitting = (error <= allowed).all(axis=0) & np.isfinite(coefficients) & (coefficients != 0)
    return [Hit(int(n), float(coefficients[n])) for n in np.flatnonzero(fitting)]


def reached_by(maps: Sequence[Affine]) -> NDArray[np.bool_]:
    """Which of the slopes, of all benches, belong to inputs whose gradients depend on the value."""
    found = []
    for each in maps:
        depends = np.abs(each.matrix).max(axis=1, initial=0.0).reshape(-1, DIRECTIONS).max(axis=1) > 0
        found.append(np.repeat(depends, DIRECTIONS))
    return np.concatenate(found)
