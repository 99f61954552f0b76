"""Fixed points whose entries share one stopping rule: the slowest entry decides, so that the number of steps is the
same close by although the iteration stops early.
"""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from gradcli.numerics.verify import Outcome, verify
from tests.numerics.cases import Array, Case, elementwise

SHARE = 0.35


def solved(x: Array, tolerance: float) -> tuple[Array, int]:
    """z = tanh(x + 0.35 z), as in a layer that is a fixed point, and the number of steps."""
    z, step, count = np.zeros_like(x), np.full_like(x, np.inf), 0
    while np.abs(step).max() >= tolerance:
        step = np.tanh(x + SHARE * z) - z
        z, count = z + step, count + 1
    return z, count


def implicit(z: Array) -> Array:
    return (1 - z * z) / (1 - SHARE * (1 - z * z))


def one_step(z: Array) -> Array:
    return 1 - z * z


def ten_percent(z: Array) -> Array:
    return 1.1 * implicit(z)


def fixed_point(slope: Callable[[Array], Array], x: Array, tolerance: float = 1e-5) -> Case:
    case = elementwise("fixed point", lambda x: solved(x, tolerance)[0], lambda x: slope(solved(x, tolerance)[0]), x)
    return replace(case, steps=lambda x: solved(x, tolerance)[1])


def drawn(seed: int) -> Array:
    return np.random.default_rng(seed).normal(size=12)


SAME_FAR_AROUND, SAME_CLOSE_BY = 12, 7
"""Seeds at which the number of steps is the same up to 32 and up to four magnitudes away."""


def test_the_number_of_steps_is_the_same_around_these_points() -> None:
    x = drawn(SAME_FAR_AROUND)
    assert len({solved(t * x, 1e-5)[1] for t in (-32.0, -4.0, 0.5, 1.0, 2.0, 8.0, 32.0)}) == 1


@pytest.mark.sampled(6)
@pytest.mark.parametrize("seed", [0, SAME_CLOSE_BY, 11, SAME_FAR_AROUND, 20])
@pytest.mark.parametrize("tolerance", [1e-5, 1e-7])
def test_the_implicit_derivative_agrees(seed: int, tolerance: float) -> None:
    x = drawn(seed)
    assert verify(fixed_point(implicit, x, tolerance).map(), x, seed=seed).blocks[0].outcome is Outcome.AGREES


@pytest.mark.parametrize("seed", [0, SAME_CLOSE_BY, 11, SAME_FAR_AROUND, 20])
@pytest.mark.parametrize("slope", [one_step, ten_percent])
def test_a_wrong_one_differs(slope: Callable[[Array], Array], seed: int) -> None:
    x = drawn(seed)
    assert verify(fixed_point(slope, x).map(), x, seed=seed).blocks[0].outcome is Outcome.DIFFERS
