"""NumPy's pairs are checked at other values too, although NumPy has no autodiff to compare with."""

import numpy as np
import pytest

import gradcli
from gradcli.verdict import Verdict


def relu6(x):
    return np.clip(x, 0, 6)


def softplus(x):
    return np.log1p(np.exp(-np.abs(x))) + np.maximum(x, 0)


def huber(x, delta=1.0):
    return np.where(np.abs(x) <= delta, x * x / 2, delta * (np.abs(x) - delta / 2))


def hardswish(x):
    return x * np.clip(x + 3, 0, 6) / 6


RIGHT = {
    relu6: lambda x: ((x > 0) & (x < 6)).astype(float),
    softplus: lambda x: 1 / (1 + np.exp(-x)),
    huber: lambda x, delta=1.0: np.clip(x, -delta, delta),
    hardswish: lambda x: np.clip(x + 3, 0, 6) / 6 + x * ((x > -3) & (x < 3)) / 6,
}
WRONG = {
    relu6: lambda x: (x > 0).astype(float),
    softplus: lambda x: np.where(x > 20, 1.01, 1 / (1 + np.exp(-x))),
    huber: lambda x, delta=1.0: np.clip(x, -10 * delta, 10 * delta),
    hardswish: lambda x: np.clip(x + 3, 0, 6) / 6 + x * (x > -3) / 6,
}


def verdict_of(function, gradient):
    (case,) = gradcli.check(function, {"x": {"shape": [3, 4]}}, grad=gradient, shrink=False).cases
    return case.verdict


@pytest.mark.parametrize("function", RIGHT, ids=lambda f: f.__name__)
def test_gradients_that_are_right_everywhere_pass(function):
    assert verdict_of(function, RIGHT[function]) is Verdict.PASSED


@pytest.mark.parametrize("function", WRONG, ids=lambda f: f.__name__)
def test_gradients_that_are_wrong_at_large_values_fail(function):
    assert verdict_of(function, WRONG[function]) is Verdict.FAILED
