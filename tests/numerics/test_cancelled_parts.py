"""Parts of a gradient that are far larger than it and cancel: its digits are those of float64 at their size."""

import numpy as np
import pytest

from gradcli.numerics.verify import Outcome, verify
from tests.numerics.cases import Array, FormulaMap, space

X = np.array([0.3, -1.7, 0.9, 2.1])
PART = 1e9


class LargeParts(FormulaMap):
    """Sines. The claim adds a large part and takes it away again, which rounds it to a multiple of 1.2e-7."""

    def __init__(self, factor: float) -> None:
        self.factor = factor
        super().__init__(np.sin, lambda x: np.diag(np.cos(x)), space((X.size,)), space((X.size,)))

    def vjp(self, x: Array, cotangent: Array) -> Array:
        part = PART * cotangent
        return np.where(cotangent == 0, 0.0, (self.factor * cotangent * np.cos(x) + part) - part)

    def vjp_many(self, x: Array, cotangents: Array) -> Array:
        return np.array([self.vjp(x, row) for row in cotangents])


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(("factor", "differs"), [(1.0, False), (1.00001, True), (0.5, True)])
def test_rounding_that_is_equal_at_points_close_by_is_no_error(factor: float, differs: bool, seed: int) -> None:
    (block,) = verify(LargeParts(factor), X, seed=seed, significance=1e-9).blocks
    assert (block.outcome is Outcome.DIFFERS) is differs
