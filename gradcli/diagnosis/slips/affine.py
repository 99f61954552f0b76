"""How the returned gradients depend on the value of one expression of backward, if that dependence is affine.

Backward is linear in grad_output, and most expressions in it enter linearly too. Then a few runs with that value
changed give the result for every other value, and thousands of forms can be compared with the slopes of forward at
once.
"""

from collections.abc import Callable, Sequence
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from gradcli.backends.base import FloatArray
from gradcli.diagnosis.facts import DIRECTIONS
from gradcli.diagnosis.slips.bench import Bench
from gradcli.diagnosis.slips.hooks import array_of
from gradcli.frozen import dataclass

MOST_ENTRIES = 160
"""Values with more entries are not tried: each entry is changed alone, which takes a run of backward."""
_LINEAR, _ADDS_UP = 1e-9, 1e-7
"""Relative rounding errors: of a second difference, and of a sum of differences over all entries of a value."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Affine:
    """Gradients along the directions = `matrix` @ value + `rest`; `value` is what the expression is now."""

    matrix: FloatArray
    rest: FloatArray
    value: FloatArray
    shape: tuple[int, ...]


def affine_at(place: int, bench: Bench, framework: Any, present: FloatArray) -> Affine | None:
    """The dependence on the value at a place; None if there is none, it is not affine, or the value is too large."""
    if len(bench.seen.get(place, ())) != 1 or not framework.is_tensor(bench.seen[place][0][0]):
        return None
    original = bench.seen[place][0][0]
    array = array_of(original, framework)
    if array is None or array.dtype.kind != "f" or not 0 < array.size <= MOST_ENTRIES or not np.isfinite(array).all():
        return None
    value = array.astype(np.float64)

    def given(changed: NDArray[Any]) -> FloatArray:
        with bench.hooks.giving(place, lambda: framework.like(original, changed.astype(array.dtype))):
            found = bench.projected()
        return np.full(present.shape, np.nan) if found is None else found

    step = (float(np.abs(value).max()) or 1.0) * (0.5 + np.random.default_rng(place).random(value.shape))
    once, twice = given(value + step), given(value + 2 * step)
    scale = np.abs(present).max(initial=0.0) + np.abs(once).max(initial=0.0)
    if not np.abs(twice - 2 * once + present).max(initial=0.0) <= _LINEAR * scale:  # also if NaN
        return None
    if not np.abs(once - present).max(initial=0.0) > _LINEAR * scale:
        return None
    matrix = _columns(value, given, present)
    if not np.abs(matrix @ step.reshape(-1) - (once - present)).max(initial=0.0) <= _ADDS_UP * scale:
        return None
    return Affine(matrix=matrix, rest=present - matrix @ value.reshape(-1), value=value, shape=value.shape)


def _columns(value: FloatArray, given: Callable[[FloatArray], FloatArray], present: FloatArray) -> FloatArray:
    """The effect of changing each entry alone."""
    size = float(np.abs(value).max()) or 1.0
    columns = []
    for number in range(value.size):
        changed = value.copy()
        changed.flat[number] += size
        columns.append((given(changed) - present) / size)
    return np.array(columns).T


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Influence:
    """The effect of the value at one place on the slopes of all benches, concatenated: `matrix` @ value + the rest.

    It holds only slopes of inputs that the value reaches, the inputs with the numbers `owners`. `value` holds the
    entries at all benches, of the `shapes`; `lacking` is what the slopes lack now, `without` what they would lack if
    the value were zero, and `allowed` the error bounds.
    """

    matrix: FloatArray
    value: FloatArray
    shapes: tuple[tuple[int, ...], ...]
    lacking: FloatArray
    without: FloatArray
    allowed: FloatArray
    owners: NDArray[np.intp]

    @property
    def inputs(self) -> frozenset[int]:
        """The inputs that the value reaches."""
        return frozenset(map(int, self.owners))

    def fixed_by(self, value: FloatArray, wrong: frozenset[int]) -> frozenset[int]:
        """Which of the `wrong` gradients another value makes right; none if it makes a right one wrong."""
        off = ~(np.abs(self.matrix @ value - self.without) <= self.allowed)  # NaN is off, too
        left = frozenset(map(int, self.owners[off]))
        return (wrong & self.inputs) - left if left <= wrong else frozenset()

    @property
    def can_fix(self) -> bool:
        """Whether some value at the place makes everything that it reaches right, within the allowed errors."""
        if not len(self.lacking):
            return False
        matrix, target = self.matrix / self.allowed[:, None], self.lacking / self.allowed
        with np.errstate(all="ignore"):
            best = np.linalg.lstsq(matrix, target)[0]
            left = matrix @ best - target
        return bool(np.linalg.norm(left) <= np.sqrt(len(target)) + _ADDS_UP * np.linalg.norm(target))


def influence_of(maps: Sequence[Affine], benches: Sequence[Bench], present: Sequence[FloatArray]) -> Influence:
    """The combined influence from the affine maps at several benches."""
    reached = [np.abs(each.matrix).max(axis=1, initial=0.0).reshape(-1, DIRECTIONS).max(axis=1) > 0 for each in maps]
    slack = np.concatenate([b.slack for b in benches])
    usable = np.repeat(np.concatenate(reached), DIRECTIONS) & np.isfinite(slack)
    whole = np.zeros((len(slack), sum(each.value.size for each in maps)))
    row = column = 0
    for each in maps:
        rows, columns = each.matrix.shape
        whole[row : row + rows, column : column + columns] = each.matrix
        row, column = row + rows, column + columns
    wanted = np.concatenate([b.wanted for b in benches])
    return Influence(
        matrix=whole[usable],
        value=np.concatenate([each.value.reshape(-1) for each in maps]),
        shapes=tuple(each.shape for each in maps),
        lacking=(wanted - np.concatenate(present))[usable],
        without=(wanted - np.concatenate([each.rest for each in maps]))[usable],
        allowed=slack[usable],
        owners=np.concatenate([np.repeat(np.arange(len(each)), DIRECTIONS) for each in reached])[usable],
    )


def fitting(made: FloatArray, lacking: FloatArray, influence: Influence) -> tuple[NDArray[np.intp], FloatArray]:
    """The numbers of the rows of `made` that are `lacking` divided by some coefficient, and the coefficients."""
    if not len(lacking):
        return np.zeros(0, dtype=np.intp), np.zeros(0)
    with np.errstate(all="ignore"):
        values = (made @ lacking) / (made * made).sum(axis=1)
        error = np.abs(values[:, None] * made - lacking)
        good = (error <= influence.allowed).all(axis=1) & np.isfinite(values) & (values != 0)
    numbers = np.flatnonzero(good)
    return numbers, values[numbers]
