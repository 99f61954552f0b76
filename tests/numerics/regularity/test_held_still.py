"""Tails that the rounding of a float32 forward holds still: a claim below that rounding is compared at other points."""

import math

import numpy as np
import pytest

from gradcli.numerics.verify import Outcome, verify
from tests.numerics.cases import FormulaMap, space

ONE = np.float32(1)


def softplus(x):
    return np.log(ONE + np.exp(x.astype(np.float32))).astype(float)


def logistic(x):
    return 1 / (1 + np.exp(-x))


def gelu(x):
    z = x.astype(np.float32)
    lost = ONE + np.array([math.erf(v / math.sqrt(2)) for v in z.tolist()], np.float32)
    return (z / 2 * lost).astype(float)


def gelu_slope(x):
    lost = np.array([1 + math.erf(v / math.sqrt(2)) for v in x.tolist()])
    return lost / 2 + x * np.exp(-x * x / 2) / math.sqrt(2 * math.pi)


def outcome(function, slope, x, spoil=None, *, reference=True):
    def made(wrong):
        return FormulaMap(function, lambda p: np.diag(slope(p)), space((len(x),)), space((len(x),)), wrong)

    witness = made(lambda jacobian: np.where(np.abs(jacobian) < 1e-38, 0.0, jacobian)) if reference else None
    (block,) = verify(made(spoil), np.array(x), seed=0, witness=witness).blocks
    return block


FAR = [
    (softplus, logistic, [-20.0, -25.0]),
    (softplus, logistic, [-16.8]),
    (gelu, gelu_slope, [-16.0, -14.0]),
]
PARTLY = (softplus, logistic, [-20.0, -10.0])


@pytest.mark.parametrize("reference", [True, False])
@pytest.mark.parametrize(("function", "slope", "x"), FAR)
def test_a_right_claim_in_a_tail_agrees_at_other_points(function, slope, x, reference):
    block = outcome(function, slope, x, reference=reference)
    assert block.outcome is Outcome.AGREES
    assert "below rounding errors here" in block.note


@pytest.mark.parametrize("reference", [True, False])
@pytest.mark.parametrize(("function", "slope", "x"), [*FAR, PARTLY])
def test_a_claim_that_is_wrong_at_those_points_differs(function, slope, x, reference):
    assert outcome(function, slope, x, lambda j: 1.1 * j, reference=reference).outcome is Outcome.DIFFERS


@pytest.mark.parametrize("reference", [True, False])
@pytest.mark.parametrize(("function", "slope", "x"), [*FAR, PARTLY])
def test_a_claim_that_rounding_would_not_hide_differs(function, slope, x, reference):
    def leaking(jacobian):
        return jacobian + 1e-3 * np.diag(np.diag(jacobian) < 1e-3)

    assert outcome(function, slope, x, leaking, reference=reference).outcome is Outcome.DIFFERS


def test_an_output_that_still_moves_does_not_count_against_a_right_claim():
    assert outcome(*PARTLY, reference=False).outcome is Outcome.AGREES


def test_a_claim_that_is_wrong_in_an_output_that_moves_differs():
    def wrong_about_one(x):
        return logistic(x) + 1e-3 * (np.abs(x - 1) < 0.1)

    assert outcome(softplus, wrong_about_one, [1.0, -20.0], reference=False).outcome is Outcome.DIFFERS


def test_in_float64_the_same_claim_differs():
    def clipped(x):
        return np.log1p(np.where(x < -16, 0.0, np.exp(x)))

    assert outcome(clipped, logistic, [-20.0, -25.0], reference=False).outcome is Outcome.DIFFERS


def test_a_tail_that_falls_off_is_not_compared_with_the_other_side():
    """exp(x) in float32 is zero at -110, and 1e6 at 110 / 8: rounding of such values loses nothing at -110."""

    def single_exp(x):
        return np.exp(x.astype(np.float32)).astype(float)

    def wrong_far_out(x):
        return np.exp(x) + 1e-4 * (x < -100)

    assert outcome(single_exp, np.exp, [-110.0], reference=False).outcome is Outcome.AGREES
    assert outcome(single_exp, wrong_far_out, [-110.0], reference=False).outcome is Outcome.DIFFERS
