"""The only interface of the numerics to a user's function: a differentiable map between two spaces."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any

import numpy as np
import numpy.typing as npt

from gradcli.frozen import dataclass
from gradcli.numerics.maps.floats import Matrix, Vector
from gradcli.numerics.maps.space import Space


@dataclass(frozen=True, slots=True, kw_only=True)
class Effort:
    """How often each line of the user's code runs in one evaluation.

    Attributes:
        lines: the count of every line that runs.
        may_repeat: False only if this code has no loop, does not call itself, and no line ran twice.
        value: the value computed, if it is known.
    """

    lines: Mapping[Any, int]
    may_repeat: bool = True
    value: Vector | None = field(default=None, compare=False)


class VectorMap(ABC):
    """A map from R^n to R^m with a claimed derivative, on flat float64 vectors."""

    domain: Space
    codomain: Space
    bounds: tuple[Vector, Vector] | None = None
    """The ends of the open interval in which each coordinate of x must lie; None if they may have any value."""
    given: bool = False
    """Whether the user gave the values of x, or of some inputs: forward may not be meant for other values."""
    retains: bool = True
    """Whether several cotangents may be passed back through the graph of one evaluation, where that can be kept."""
    below: VectorMap | None = None
    """The map whose gradient this map computes; None at order 1. Its domain is the first part of this one's."""

    @property
    def is_costly(self) -> bool:
        """Whether a call takes so long that the claim is computed for a few rows only, even if the map is small."""
        return False

    @abstractmethod
    def value(self, x: Vector) -> Vector:
        """Evaluate the map at x (length n). The result has length m, and may be NaN or infinite outside the domain."""

    def values_at(self, points: Sequence[Vector]) -> list[Vector]:
        """Evaluate the map at several points; a backend that prepares each evaluation overrides this loop."""
        return [np.asarray(self.value(x), dtype=np.float64) for x in points]

    def value_noise(self, x: Vector) -> Vector | None:  # noqa: ARG002 - for those that override it
        """Return the standard deviation of each value's noise at x, beyond the value's own rounding (length m).

        None if there is no such noise: all values are as accurate as float64 allows. A map whose values may be small
        differences of large numbers, such as a gradient, overrides this.
        """
        return None

    def seen_at(self, x: Vector) -> Vector:
        """Return the value at x, to be read at once: the next evaluation may overwrite its memory."""
        return self.value(x)

    def effort(self, x: Vector) -> Effort | None:  # noqa: ARG002 - for those that override it
        """Evaluate the map at x and count how often each line of the user's code runs; None if that is not counted."""
        return None

    def depends(self, x: Vector) -> npt.NDArray[np.bool_]:  # noqa: ARG002 - for those that override it
        """Whether each output block depends on each input block by operations that the map can differentiate.

        Returns:
            An array (output blocks, input blocks). Where it is False (as after a detach), the map's derivative is zero
            for that reason, whatever the true derivative is.
        """
        return np.ones((len(self.codomain.blocks), len(self.domain.blocks)), bool)

    @abstractmethod
    def vjp(self, x: Vector, cotangent: Vector) -> Vector:
        """Return the claimed J(x)^T cotangent, a vector of length n."""

    def vjp_many(self, x: Vector, cotangents: Matrix) -> Matrix:
        """Return the claimed J^T u for every row u of `cotangents` (k, m), as a (k, n) array.

        A backend that can run forward once and backward k times overrides this loop.
        """
        rows = [np.asarray(self.vjp(x, row), dtype=np.float64) for row in cotangents]
        return np.array(rows).reshape(len(rows), self.domain.size)

    def value_and_vjps(self, x: Vector, cotangents: Matrix) -> tuple[Vector | None, Matrix]:
        """Return the value at x, or None if it would cost another evaluation, and what `vjp_many` returns."""
        return None, self.vjp_many(x, cotangents)

    def value_and_vjps_beside(
        self, other: VectorMap, x: Vector, cotangents: Matrix
    ) -> tuple[Vector | None, Matrix, Matrix | None]:
        """Return what `value_and_vjps` returns, and the gradients that another map computes (None if that raises).

        A backend that can run backward through both at once overrides this.
        """
        value, rows = self.value_and_vjps(x, cotangents)
        try:
            return value, rows, np.asarray(other.vjp_many(x, cotangents), dtype=np.float64)
        except Exception:  # the other map is a reference, which may be missing
            return value, rows, None


MOST_EVALUATIONS = 100_000
"""The number of evaluations of forward that a verification may take by default: a limit for slow functions only, since
ordinary ones take some hundred at most."""


class BudgetExceededError(Exception):
    """The evaluations allowed for one verification are used up."""


class CountedMap(VectorMap):
    """A wrapper that counts how often a map is evaluated and differentiated, of `budget` evaluations that are allowed.

    `jumping` stores, for every pair of an input and an output block, which entries of the output were found to have
    large jumps (`regularity.step_functions`). That is a property of the map, and need not be found again elsewhere.
    """

    def __init__(self, inner: VectorMap, budget: int = MOST_EVALUATIONS) -> None:
        self.inner, self.budget = inner, budget
        self.domain = inner.domain
        self.codomain = inner.codomain
        self.bounds, self.given = inner.bounds, inner.given
        self.below = inner.below
        self.values = 0
        self.vjps = 0
        self.jumping: dict[tuple[int, int], set[int]] = {}

    @property
    def left(self) -> int:
        """The evaluations that are left of the budget, at least one."""
        return max(1, self.budget - self.values)

    def require_budget(self) -> None:
        """Before a direction is measured: some evaluations must be left.

        Raises:
            BudgetExceededError: the evaluations allowed are used up.
        """
        if self.values >= self.budget:
            raise BudgetExceededError

    @property
    def is_costly(self) -> bool:
        """Whether a call of the wrapped map takes long."""
        return self.inner.is_costly

    def value(self, x: Vector) -> Vector:
        """Evaluate the wrapped map and count the evaluation."""
        self.values += 1
        return self.inner.value(x)

    def seen_at(self, x: Vector) -> Vector:
        """Evaluate the wrapped map and count the evaluation."""
        self.values += 1
        return self.inner.seen_at(x)

    def values_at(self, points: Sequence[Vector]) -> list[Vector]:
        """Evaluate the wrapped map and count an evaluation for each point."""
        self.values += len(points)
        return self.inner.values_at(points)

    def value_noise(self, x: Vector) -> Vector | None:
        """Return the noise that the wrapped map gives; not counted."""
        return self.inner.value_noise(x)

    def effort(self, x: Vector) -> Effort | None:
        """Return the wrapped map's effort, and count the evaluation."""
        self.values += 1
        return self.inner.effort(x)

    def depends(self, x: Vector) -> npt.NDArray[np.bool_]:
        """Return the dependencies that the wrapped map gives; not counted."""
        return self.inner.depends(x)

    def vjp(self, x: Vector, cotangent: Vector) -> Vector:
        """Run the wrapped vjp and count it."""
        self.vjps += 1
        return self.inner.vjp(x, cotangent)

    def vjp_many(self, x: Vector, cotangents: Matrix) -> Matrix:
        """Run the wrapped vjp for every row and count each."""
        self.vjps += len(cotangents)
        return self.inner.vjp_many(x, cotangents)

    def value_and_vjps(self, x: Vector, cotangents: Matrix) -> tuple[Vector | None, Matrix]:
        """Run the wrapped map for both and count them."""
        self.vjps += len(cotangents)
        value, rows = self.inner.value_and_vjps(x, cotangents)
        self.values += value is not None
        return value, rows

    def value_and_vjps_beside(
        self, other: VectorMap, x: Vector, cotangents: Matrix
    ) -> tuple[Vector | None, Matrix, Matrix | None]:
        """Run the wrapped map's method, and count its own gradients (not those of the other map)."""
        self.vjps += len(cotangents)
        value, rows, reference = self.inner.value_and_vjps_beside(other, x, cotangents)
        self.values += value is not None
        return value, rows, reference
