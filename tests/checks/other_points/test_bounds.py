"""Zero gradients are compared at other points within the domains that were declared for the inputs."""

import ast

import numpy as np
import pytest

import gradcli
from gradcli import engine
from gradcli.verdict import Verdict

DOMAINS = {
    "x": {"shape": [2, 3]},
    "low": {"shape": [2, 3], "domain": "open-interval", "lo": -1.5, "hi": -0.2},
    "high": {"shape": [2, 3], "domain": "open-interval", "lo": 0.2, "hi": 1.5},
}


def clamp(swapped: bool) -> type:
    """Limits to [low, high]: the formula for the limits is right only where low is below high."""

    class Clamp(engine.autograd.Function):
        @staticmethod
        def forward(ctx, x, low, high):
            ctx.save_for_backward(x, low, high)
            return engine.minimum(engine.maximum(x, low), high)

        @staticmethod
        def backward(ctx, g):
            x, low, high = ctx.saved_tensors
            below, above = x < low, x > high
            limits = (g * below, g * above)
            return g * ~(below | above), *(reversed(limits) if swapped else limits)

    return Clamp


@pytest.mark.parametrize("seed", range(6))
def test_a_formula_that_needs_the_declared_order_of_two_inputs_is_not_compared_beyond_it(seed):
    report = gradcli.check(clamp(False), DOMAINS, seed=seed)
    assert report.verdict is Verdict.PASSED, str(report)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("seed", range(6))
def test_it_fails_within_the_domains_where_it_is_wrong(seed):
    report = gradcli.check(clamp(True), DOMAINS, seed=seed)
    assert report.verdict is Verdict.FAILED
    low, high = (ast.literal_eval(line.split(" = ")[1]) for line in report.cases[0].smallest[1:])
    assert np.all(np.array(low) < 0), report.cases[0].smallest
    assert np.all(np.array(high) > 0), report.cases[0].smallest


def logit(cut: bool) -> type:
    """The inverse of a sigmoid between two limits; the second derivative by both limits is zero."""

    class Logit(engine.autograd.Function):
        @staticmethod
        def forward(ctx, y, low, high):
            ctx.save_for_backward(y, low, high)
            return engine.log((y - low) / (high - y))

        @staticmethod
        def backward(ctx, g):
            y, low, high = ctx.saved_tensors
            below = y - (low.detach() if cut else low)
            return g * (1 / below + 1 / (high - y)), -g / below, -g / (high - y)

    return Logit


LIMITS = {
    "y": {"shape": [2, 3], "domain": "unit"},
    "low": {"shape": [2, 3], "domain": "open-interval", "lo": -2.0, "hi": -0.3},
    "high": {"shape": [2, 3], "domain": "open-interval", "lo": 1.3, "hi": 2.0},
}


@pytest.mark.sampled(1)
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.usefixtures("unexplained")
def test_a_second_derivative_of_zero_is_right_where_that_of_autodiff_is_a_rounding_error(seed):
    assert gradcli.check(logit(False), LIMITS, seed=seed).verdict is Verdict.PASSED
    assert gradcli.check(logit(True), LIMITS, seed=seed).verdict is Verdict.FAILED
