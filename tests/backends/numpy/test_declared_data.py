"""NumPy derivatives that return values for the inputs that need a gradient alone: declared ones, or documented data."""

import numpy as np
import pytest

import gradcli
from gradcli.backends.numpy.names import data_documented, names_returned
from gradcli.verdict import Verdict
from tests.backends.numpy.test_functions import energy


def hinge(w, b, X, y, C=1.0):
    """A support vector machine with squared hinges."""
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


def rates(log_rate, scale, seen):
    """log_rate: (N,), exposure scale > 0 (scalar), seen: (N,) counts."""
    mean = scale * np.exp(log_rate)
    return np.sum(mean - seen * np.log(mean))


def rates_gradient(log_rate, scale, seen):
    return scale * np.exp(log_rate) - seen, np.sum(np.exp(log_rate)) - seen.sum() / scale


def without_counts(log_rate, scale, seen):
    by_rate, by_scale = rates_gradient(log_rate, scale, seen)
    return by_rate, by_scale + seen.sum() / scale


def without_scale(log_rate, scale, seen):
    return rates_gradient(log_rate, scale, seen)[:1]


def logistic(w, b, X, y):
    """w: (D,), b: scalar, X: (N, D), y: (N,) labels in {0, 1}."""
    z = X @ w + b
    return np.sum(np.logaddexp(0, z) - y * z)


def logistic_gradient(w, b, X, y):
    r = 1 / (1 + np.exp(-X @ w - b)) - y
    return X.T @ r, r.sum()


def twice_the_offset(w, b, X, y):
    by_w, by_b = logistic_gradient(w, b, X, y)
    return by_w, 2 * by_b


@pytest.mark.parametrize(
    ("function", "gradient", "found", "left"),
    [
        (rates, rates_gradient, [], "seen"),
        (rates, without_counts, [("missing-term", "scale")], "seen"),
        (rates, without_scale, [("wrong-arity", None)], None),
        (logistic, logistic_gradient, [], "X and y"),
        (logistic, twice_the_offset, [("wrong-factor", "b")], "X and y"),
    ],
)
def test_a_derivative_may_leave_out_what_is_documented_as_data(function, gradient, found, left):
    inputs = {name: {"shape": [3] if name != "scale" else []} for name in ("log_rate", "scale", "seen")}
    inputs["scale"]["domain"] = "positive"
    given = inputs if gradient is without_scale else None
    (case,) = gradcli.check(function, given, grad=gradient, shrink=False, samples=1).cases
    assert [(f.kind.value, f.input) for f in case.findings] == found, case
    notes = [note for note in case.notes if note.startswith("no gradient is returned")]
    whose = "its gradient was" if left == "seen" else "their gradients were"
    assert notes == ([f"no gradient is returned for {left}, so {whose} not checked"] if left else [])


@pytest.mark.parametrize(
    ("text", "data"),
    [
        ("w (D,), y (N,) class labels", {"y"}),
        ("w: (D,) weights; X and y are data.", {"X", "y"}),
        ("y : ndarray of shape (n,)\n    Target values.\nw : array\n    Weights.", {"y"}),
        ("Log likelihood of the counts y at w.", {"y"}),
        ("y: (N,) integers, w: (N,)", {"y"}),
        ("y: {-1, 1} labels", {"y"}),
        ("w: weights of the data, X: noise in the labels", set()),
        ("w: target entropy, y: label smoothing, X: data weights", set()),
        ("w (D,) maps data, fits y to targets", set()),
        ("w: not data", set()),
    ],
)
def test_data_is_what_documentation_calls_so(text, data):
    def function(w, X, y):
        return w @ X - y

    function.__doc__ = text
    assert data_documented(function, ("w", "X", "y")) == data


def test_a_gradient_with_a_penalty_added_keeps_its_name():
    def gradient(w, b):
        dw, db = w * b, w + b
        return dw + 0.1 * w, -db, (dw + db).copy(), dw * b

    assert names_returned(gradient).elements == ("dw", "db", None, None)
