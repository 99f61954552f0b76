"""NumPy derivatives that return values for the inputs that need a gradient alone."""

import numpy as np
import pytest

import gradcli
from gradcli.verdict import Verdict
from tests.backends.numpy.test_functions import energy


def hinge(w, b, X, y, C=1.0):
    """A support vector machine with squared hinges; X and y are data."""
    return 0.5 * w @ w + C * (np.maximum(0, 1 - y * (X @ w + b)) ** 2).sum()


def hinge_gradient(w, b, X, y, C=1.0):
    m = np.maximum(0, 1 - y * (X @ w + b)) * y
    return w - 2 * C * X.T @ m, -2 * C * m.sum()


def halved(w, b, X, y, C=1.0):
    by_w, by_b = hinge_gradient(w, b, X, y, C)
    return by_w, by_b / 2


def product(data, w):
    return np.sum(data * np.sin(w))


FITTED = {"w": {"shape": [3]}, "b": {"shape": []}}
DATA = {"X": {"shape": [5, 3], "grad": False}, "y": {"shape": [5], "grad": False}}


@pytest.mark.parametrize(("gradient", "kinds"), [(hinge_gradient, []), (halved, ["wrong-factor"])])
def test_a_derivative_may_leave_out_inputs_that_need_no_gradient(gradient, kinds):
    (case,) = gradcli.check(hinge, FITTED | DATA, grad=gradient, shrink=False).cases
    assert [(f.kind.value, f.input) for f in case.findings] == [(kind, "b") for kind in kinds], case
    assert case.verdict is (Verdict.FAILED if kinds else Verdict.PASSED)


@pytest.mark.parametrize("factor", [1.0, 1.25])
@pytest.mark.parametrize("made", [lambda d: d, lambda d: (d,), lambda d: (None, d)])
def test_a_single_derivative_is_by_the_input_that_needs_one(factor, made):
    inputs = {"data": {"shape": [4], "grad": False}, "w": {"shape": [4]}}
    gradient = lambda data, w: made(factor * data * np.cos(w))  # noqa: E731
    (case,) = gradcli.check(product, inputs, grad=gradient, shrink=False).cases
    assert case.verdict is (Verdict.PASSED if factor == 1.0 else Verdict.FAILED), case
    assert all(f.input == "w" for f in case.findings)


@pytest.mark.parametrize(
    ("function", "gradient", "inputs", "advice"),
    [
        (hinge, hinge_gradient, FITTED | {"X": {"shape": [5, 3]}, "y": {"shape": [5]}},
         "if X and y need no gradient, declare them with -i X=5x3,grad=false -i y=5,grad=false"),
        (energy, lambda x, y: (np.ones(7),), {"x": {"shape": [3]}, "y": {"shape": [3]}}, "-i NAME=SHAPE,grad=false"),
        (energy, lambda x, y: (2 * np.sin(y),), {"x": {"shape": [3]}, "y": {"shape": [3]}},
         "if y needs no gradient, declare it with -i y=3,grad=false"),
    ],
)  # fmt: skip
def test_too_few_values_are_a_failure_that_says_how_to_declare_data(function, gradient, inputs, advice):
    (case,) = gradcli.check(function, inputs, grad=gradient, shrink=False).cases
    assert [f.kind.value for f in case.findings] == ["wrong-arity"]
    assert advice in case.findings[0].message
