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


def triplet(active):
    def loss_and_grad(anchor, positive, negative, margin=0.2):
        """anchor, positive, negative: (N, D)"""
        gap = ((anchor - positive) ** 2).sum(axis=1) - ((anchor - negative) ** 2).sum(axis=1) + margin
        scale = 2 * active(gap, margin)[:, None] / len(anchor)
        loss = np.maximum(gap, 0).sum() / len(anchor)
        return loss, (scale * (negative - positive), scale * (positive - anchor), scale * (anchor - negative))

    return loss_and_grad


def support_vectors(active):
    def loss_and_grad(w, X, y, eps=0.1):
        """w (p,), X (n, p), y (n,)"""
        r = X @ w - y
        loss = 0.5 * w @ w + np.sum(np.maximum(np.abs(r) - eps, 0))
        return loss, w + X.T @ (np.sign(r) * active(np.abs(r), eps))

    return loss_and_grad


def beyond(limit):
    """A penalty of the data's part that lies beyond a limit far above what is drawn."""

    def loss_and_grad(w, X):
        """w (p,), X (n, p)"""
        return np.sum(np.minimum(np.abs(X), 5) @ w), np.minimum(np.abs(X), limit).sum(0)

    return loss_and_grad


@pytest.mark.parametrize(
    ("made", "right", "wrong"),
    [
        (triplet, lambda gap, margin: gap > 0, lambda gap, margin: gap > margin),
        (support_vectors, lambda r, eps: r > eps, lambda r, eps: r > 0),
        (support_vectors, lambda r, eps: r > eps, lambda r, eps: r > 2 * eps),
        (beyond, 5, 500),
    ],
)
@pytest.mark.usefixtures("unexplained")
def test_a_value_with_its_gradient_is_checked_beyond_its_thresholds_too(made, right, wrong):
    for given, verdict in ((right, Verdict.PASSED), (wrong, Verdict.FAILED)):
        (case,) = gradcli.check(made(given), samples=1, shrink=False, only=("gradient", "other-inputs")).cases
        assert case.verdict is verdict, case.findings


def test_what_is_forced_is_run_and_shown():
    (case,) = gradcli.check(support_vectors(lambda r, eps: r > eps), only=("other-inputs",)).cases
    (row,) = [e for e in case.evidence if e.check == "other-inputs"]
    assert row.verdict is Verdict.PASSED


def test_the_message_names_data_that_have_to_change():
    (case,) = gradcli.check(beyond(500), shrink=False).cases
    assert "also of X" in case.findings[0].message
