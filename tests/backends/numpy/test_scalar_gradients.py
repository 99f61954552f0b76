"""Functions of several numbers and of data, which return a number for each number alone."""

import numpy as np
import pytest

import gradcli
from gradcli.errors import GradcliError
from gradcli.verdict import Verdict


def decay(factor):
    def nll(log_amp, log_tau, t, counts):
        """log_amp, log_tau scalars; t (n,) positive; counts (n,) positive"""
        mu = np.exp(log_amp - t / np.exp(log_tau))
        r = mu - counts
        return np.sum(mu - counts * np.log(mu)), r.sum(), factor * (r * t).sum() / np.exp(log_tau)

    return nll


@pytest.mark.parametrize(("factor", "verdict"), [(1.0, Verdict.PASSED), (1.01, Verdict.FAILED), (-1, Verdict.FAILED)])
@pytest.mark.usefixtures("unexplained")
def test_a_value_with_a_number_for_each_documented_scalar(factor, verdict):
    (case,) = gradcli.check(decay(factor), shrink=False).cases
    assert case.verdict is verdict, (case.findings, case.error)
    assert [spec.shape for spec in case.inputs[:2]] == [(), ()]


def shifted(factor):
    def value(a, b, t):
        return np.sum((t - a) ** 2 * np.exp(b))

    def gradient(a, b, t):
        return -2 * np.sum((t - a) * np.exp(b)), factor * np.sum((t - a) ** 2 * np.exp(b))

    return value, gradient


@pytest.mark.parametrize(("factor", "verdict"), [(1.0, Verdict.PASSED), (1.01, Verdict.FAILED)])
@pytest.mark.usefixtures("unexplained")
def test_a_pair_that_leaves_the_data_out(factor, verdict):
    value, gradient = shifted(factor)
    given = (np.array(0.3), np.array(-0.4), np.array([0.5, 1.5, -0.7]))
    (case,) = gradcli.check(value, given, grad=gradient, shrink=False).cases
    assert case.verdict is verdict, (case.findings, case.error)


def test_numbers_that_no_documentation_asks_for_are_no_gradients():
    def loss(x, w):
        """x (n,), w (n,)"""
        return np.sum(x * w), np.sum(x), np.sum(w)

    with pytest.raises(GradcliError, match="does not read as a value and its gradients"):
        gradcli.check(loss)


def test_a_gradient_that_is_missing_for_a_tensor_is_not_data_left_out():
    def value(a, b, w):
        return np.sum(a * w) + b

    def gradient(a, b, w):
        return w, 1.0

    given = (np.array([0.3, 0.2]), np.array(-0.4), np.array([0.5, 1.5]))
    assert gradcli.check(value, given, grad=gradient, shrink=False).verdict is Verdict.FAILED
