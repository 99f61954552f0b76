"""The whole Jacobian of a small Function in one input: what backward claims, and differences of forward."""

from collections.abc import Callable
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gradcli.backends.base import FloatArray, Subject
from gradcli.errors import UserCodeError
from gradcli.frozen import dataclass
from gradcli.numerics.localise.jacobian import jacobian_table
from gradcli.numerics.maps.sizes import SIGNIFICANT
from gradcli.numerics.maps.vector_map import VectorMap
from gradcli.results import Mismatch

_MOST_ROWS, _MOST_COLUMNS = 200, 128
_SECONDS = 1.0
"""A table that would take longer is not made; the time is estimated from the quickest of `_CALLS` calls."""
_CALLS = 4
_RUNS_A_COLUMN = 12
ROUNDED = 1e-11
"""An error relative to the largest entry that rounding may have caused in a table."""

SIGNIFICANCE = 1e-7

Mask = NDArray[np.bool_]
Gradient = NDArray[Any] | None
Backward = Callable[[FloatArray], tuple[Gradient, ...]]
"""What backward returns for each argument of forward, for a flat cotangent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Claimed and numerical Jacobian in one input, (outputs, entries); `bound` is infinite where f is not smooth."""

    claimed: FloatArray
    numeric: FloatArray
    bound: FloatArray

    @property
    def known(self) -> Mask:
        """Which entries of the Jacobian are known by differences."""
        return np.isfinite(self.bound)

    @property
    def residual(self) -> FloatArray:
        """The numerical Jacobian less the claimed one, zero where nothing is known."""
        return np.where(self.known, self.numeric - self.claimed, 0.0)

    @property
    def floor(self) -> FloatArray:
        """The error bound of each entry: of the differences, and of rounding."""
        scale = max(np.abs(self.claimed).max(initial=0.0), np.abs(self.numeric[self.known]).max(initial=0.0))
        return np.where(self.known, 3 * self.bound + ROUNDED * scale, np.inf)

    @property
    def wrong(self) -> Mask:
        """Which entries of the claim are wrong, as far as is known."""
        scale = np.abs(self.numeric[self.known]).max(initial=0.0)
        return np.abs(self.residual) > np.where(self.known, 3 * self.bound + SIGNIFICANCE * scale, np.inf)

    @property
    def moves(self) -> Mask:
        """Which outputs depend on which entries, by differences."""
        return self.known & (np.abs(self.numeric) > self.floor)

    @property
    def strays(self) -> Mask:
        """Where the claim has an entry and the derivative has none: this entry takes another output's grad_output."""
        return self.known & ~self.moves & (np.abs(self.claimed) > self.floor)

    @property
    def lost(self) -> Mask:
        """Where the derivative has an entry and the claim has none: this output's grad_output is left out."""
        return self.moves & (np.abs(self.claimed) <= self.floor)

    def of_rows(self, rows: slice) -> "Table":
        """The rows of some outputs."""
        return Table(claimed=self.claimed[rows], numeric=self.numeric[rows], bound=self.bound[rows])


def measured(
    subject: Subject, place: int, backward: Backward, *, seed: int, only: NDArray[np.intp] | None = None
) -> Table | None:
    """The table for the active input number `place`; None where it is complex or large, and where a call fails.

    With `only`, no other entries of the input are measured.
    """
    domain, codomain = subject.domain, subject.codomain
    count = domain.sizes[place]
    wanted = np.arange(count) if only is None else only
    if any(block.complex for block in (*domain.blocks, *codomain.blocks)):
        return None
    if codomain.size > _MOST_ROWS or count > _MOST_COLUMNS:
        return None
    map_ = subject.derivative_map(1)
    try:
        if _seconds(map_, subject.point) * (wanted.size * _RUNS_A_COLUMN + codomain.size) > _SECONDS:
            return None
        claimed = _claimed(subject, place, backward, domain.blocks[place].shape)
        if claimed is None:
            return None
        generator = np.random.default_rng([seed, 43, place])
        columns, some = wanted + domain.slices[place].start, claimed[:, wanted]
        found = jacobian_table(map_, subject.point, rng=generator, columns=columns, claimed=some, enough=SIGNIFICANT)
    except UserCodeError:  # forward or backward fails for another value or cotangent
        return None
    known = np.isfinite(found.numeric) & np.isfinite(found.bound) & found.smooth
    numeric, bound = np.zeros_like(claimed), np.full_like(claimed, np.inf)
    numeric[:, wanted], bound[:, wanted] = found.numeric, np.where(known, found.bound, np.inf)
    return Table(claimed=claimed, numeric=numeric, bound=bound)


def table_of(mismatch: Mismatch, subject: Subject) -> Table | None:
    """The table that a check made of one block; None unless it is complete, finite and real."""
    blocks = (*subject.domain.blocks, *subject.codomain.blocks)
    if not mismatch.complete or mismatch.small_rows or any(block.complex for block in blocks):
        return None
    if not np.isfinite(mismatch.claimed).all():
        return None
    known = np.isfinite(mismatch.numeric) & np.isfinite(mismatch.bound)
    known = known if mismatch.smooth is None else known & mismatch.smooth
    numeric, bound = np.where(known, mismatch.numeric, 0.0), np.where(known, mismatch.bound, np.inf)
    return Table(claimed=mismatch.claimed, numeric=numeric, bound=bound)


def _seconds(map_: VectorMap, point: FloatArray) -> float:
    """The time of the quickest of several calls, so that a name does not depend on the load of the machine."""
    spent = float("inf")
    for _ in range(_CALLS):
        began = perf_counter()
        map_.value(point)
        spent = min(spent, perf_counter() - began)
    return spent


def _claimed(subject: Subject, place: int, backward: Backward, shape: tuple[int, ...]) -> FloatArray | None:
    """What backward returns for each output alone; None where it is no finite array of the input's shape."""
    position = subject.active[place]
    rows = []
    for cotangent in np.eye(subject.codomain.size):
        row = backward(cotangent)
        gradient = row[position] if position < len(row) else None
        if gradient is None or gradient.shape != shape or not np.isfinite(gradient).all():
            return None
        rows.append(np.asarray(gradient, dtype=np.float64).reshape(-1))
    return np.array(rows)
