"""Functions in a low precision, where that holds the values still: what it hides is not called wrong."""

import numpy as np
import pytest

from gradcli.numerics.verify import Outcome, verify
from tests.numerics.cases import FormulaMap, sech2, space


def half(y):
    return y.astype(np.float16).astype(float)


def single(y):
    return y.astype(np.float32).astype(float)


def bfloat(y):
    bits = y.astype(np.float32).view(np.uint32)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) & 0xFFFF0000).astype(np.uint32).view(np.float32).astype(float)


FUNCTIONS = {
    "tanh": (np.tanh, sech2),
    "gauss": (lambda x: np.exp(-x * x), lambda x: -2 * x * np.exp(-x * x)),
    "logistic": (lambda x: 1 / (1 + np.exp(-x)), lambda x: 1 / (4 * np.cosh(x / 2) ** 2)),
}
STILL = [
    (half, "tanh", [12.33]),
    (half, "gauss", [4.62]),
    (half, "gauss", [12.33, -5.29]),
    (half, "gauss", [4.62, -0.88, -6.54, 1.7]),
    (half, "logistic", [12.33, -2.35, -17.43, 0.4]),
    (bfloat, "tanh", [12.33]),
    (bfloat, "gauss", [12.33]),
    (single, "tanh", [12.33]),
    (single, "logistic", [18.7]),
    (single, "gauss", [10.3]),
    (single, "gauss", [10.3, 0.5, -11.0]),
]


def outcomes(stored, name, x, spoil=None, witness=None):
    function, slope = FUNCTIONS[name]

    def made(wrong):
        shapes = space((len(x),)), space((len(x),))
        return FormulaMap(lambda p: stored(function(p)), lambda p: np.diag(slope(p)), *shapes, wrong)

    for seed in range(6):
        found = verify(made(spoil), np.array(x), seed=seed, witness=made(witness) if witness else None)
        yield from (block.outcome for block in found.blocks)


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("stored", "name", "x"), STILL, ids=lambda each: getattr(each, "__name__", str(each)))
def test_a_slope_that_the_format_hides_is_not_wrong(stored, name, x):
    assert Outcome.DIFFERS not in outcomes(stored, name, x)
    assert Outcome.DIFFERS not in outcomes(stored, name, x, witness=lambda j: j)


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("stored", "name", "x"), STILL, ids=lambda each: getattr(each, "__name__", str(each)))
def test_one_that_it_would_show_is_wrong(stored, name, x):
    def leaking(jacobian):
        return jacobian + np.eye(len(x))

    found = list(outcomes(stored, name, x, leaking))
    assert found.count(Outcome.DIFFERS) >= 3
    assert Outcome.AGREES not in found


def test_the_same_slopes_are_wrong_in_float64():
    def still(jacobian):
        return jacobian + 1e-6

    found = verify(
        FormulaMap(np.ones_like, lambda p: np.zeros((1, 1)), space((1,)), space((1,)), still), np.array([3.0]), seed=0
    )
    assert [block.outcome for block in found.blocks] == [Outcome.DIFFERS]
