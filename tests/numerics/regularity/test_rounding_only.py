"""Outputs of which only rounding is left count as zero, and a derivative that matters is still seen there."""

import numpy as np
import pytest

from gradcli.numerics.verify import Outcome, verify
from tests.numerics.cases import Array, FormulaMap, space

X = np.array([0.3, -1.7, 0.9, 2.1, 0.7, 1.3, -0.4])
LEFT = 1e-17


class Cancelling(FormulaMap):
    """Squares, and a sum whose terms cancel to rounding at every point but for `slope` times what x[0] moves by."""

    def __init__(self, slope: float, claimed: float) -> None:
        def function(x: Array) -> Array:
            rest = float(((x - x.mean()) * x.sum()).sum()) + slope * (x[0] - X[0])
            return np.array([*(x * x), rest])

        def jacobian(x: Array) -> Array:
            last = LEFT * np.cos(1e3 * x)
            last[0] += claimed
            return np.vstack([np.diag(2 * x), last])

        super().__init__(function, jacobian, space((X.size,)), space((X.size,), ()))

    def value_noise(self, x: Array) -> Array:
        return np.concatenate([np.zeros(x.size), [1e-14 * abs(x.sum()) * np.abs(x).max()]])


def last_block(map_: Cancelling, seed: int):
    found = verify(map_, X, seed=seed)
    return found, next(block for block in found.blocks if block.output == 1)


@pytest.mark.parametrize("seed", range(8))
def test_what_rounding_leaves_is_zero_after_few_evaluations(seed: int) -> None:
    found, block = last_block(Cancelling(slope=0.0, claimed=0.0), seed)
    assert block.outcome is Outcome.AGREES
    assert block.zero_everywhere
    assert found.evaluations < 600


@pytest.mark.sampled(4)
@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize(("slope", "claimed"), [(1e-3, 0.0), (1e-3, 2e-3), (1e-9, 0.0)])
def test_a_wrong_derivative_beside_the_rounding_differs(slope: float, claimed: float, seed: int) -> None:
    assert last_block(Cancelling(slope, claimed), seed)[1].outcome is Outcome.DIFFERS


@pytest.mark.sampled(4)
@pytest.mark.parametrize("seed", range(8))
def test_a_claim_where_only_rounding_is_left_does_not_agree(seed: int) -> None:
    assert last_block(Cancelling(slope=0.0, claimed=1e-3), seed)[1].outcome is not Outcome.AGREES


@pytest.mark.parametrize("seed", range(8))
def test_a_right_derivative_beside_the_rounding_agrees(seed: int) -> None:
    block = last_block(Cancelling(slope=1e-3, claimed=1e-3), seed)[1]
    assert block.outcome is Outcome.AGREES
    assert not block.zero_everywhere


class SmoothlyWrong(FormulaMap):
    """Values whose rounding error, of 2e-6 of them, is as smooth as they are: no change of a value shows it."""

    def __init__(self, factor: float) -> None:
        def function(x: Array) -> Array:
            return 1e-9 * np.exp(9 * x) * (1 + 2e-6 * np.sin(5 * x))

        def jacobian(x: Array) -> Array:
            return np.diag(9e-9 * factor * np.exp(9 * x))

        super().__init__(function, jacobian, space((3,)), space((3,)))

    def value_noise(self, x: Array) -> Array:
        return 2e-6 * self.value(x)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize(("factor", "differs"), [(1.0, False), (1.01, True), (0.999, True)])
def test_a_slope_is_known_no_better_than_its_value(factor: float, differs: bool, seed: int) -> None:
    (block,) = verify(SmoothlyWrong(factor), np.array([0.3, 0.7, 1.1]), seed=seed).blocks
    assert (block.outcome is Outcome.DIFFERS) == differs, block
