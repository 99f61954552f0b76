"""Numbers called as limits, of which forward takes positive ones only."""

import math

import pytest

import gradcli
from gradcli.engine.autograd import Function
from gradcli.verdict import Verdict


def log_of_power_law(wrong):
    """The logarithm of an integral from low to high: powers of negative numbers are NaN."""

    class LogOfPowerLaw(Function):
        @staticmethod
        def forward(ctx, alpha, low, high):
            ctx.save_for_backward(alpha)
            ctx.ends = low, high
            return ((high ** (1 + alpha) - low ** (1 + alpha)) / (1 + alpha)).log()

        @staticmethod
        def backward(ctx, g):
            (alpha,) = ctx.saved_tensors
            low, high = ctx.ends
            upper, lower = high ** (1 + alpha), low ** (1 + alpha)
            of_ends = upper * math.log(high) - (0 if wrong else 1) * lower * math.log(low)
            return g * (of_ends / (upper - lower) - 1 / (1 + alpha)), None, None

    return LogOfPowerLaw


@pytest.mark.parametrize("wrong", [False, True])
def test_numbers_below_and_above_are_positive_where_forward_needs_that(wrong):
    (case,) = gradcli.check(log_of_power_law(wrong), order=1, shrink=False).cases
    low, high = (spec.value for spec in case.inputs if spec.kind == "value")
    assert 0 < low < high
    assert not isinstance(low, bool)
    assert case.verdict is (Verdict.FAILED if wrong else Verdict.PASSED), case
