"""Layers that keep on their object what backward needs: it takes the cotangent alone, for the last call of forward."""

import numpy as np
import pytest

import gradcli
from gradcli.findings import FindingKind
from gradcli.verdict import Verdict


class Layer:
    """tanh of an affine function."""

    def __init__(self, factor=1.0):
        rng = np.random.default_rng(0)
        self.weight, self.bias, self.factor = rng.normal(size=(4, 2)), rng.normal(size=2), factor

    def forward(self, x):
        self.x = x
        self.y = np.tanh(x @ self.weight + self.bias)
        return self.y

    def backward(self, dout):
        d = self.factor * dout * (1 - self.y**2)
        self.weight_grad, self.bias_grad = self.x.T @ d, d.sum(0)
        return d @ self.weight.T


class Square:
    """A cotangent under a name of its own."""

    def forward(self, x):
        self.x = x
        return x**2

    def backward(self, upstream):
        return 2 * upstream * self.x


class Forgetful(Square):
    """What backward reads is there before forward is called."""

    x = np.zeros((3, 4))

    def forward(self, x):
        self.last = x
        return x**2


class Mean:
    """A loss whose backward takes nothing."""

    def __init__(self, axis=None):
        self.axis = axis

    def forward(self, x):
        self.x = x
        return np.mean(x**2)

    def backward(self):
        return 2 * self.x / (self.x.size if self.axis is None else self.x.shape[self.axis])


class Problem:
    """Methods that keep nothing: the derivative takes the function's argument under another name."""

    def __init__(self, factor=1.0):
        self.factor = factor

    def value(self, x):
        return np.sum(x**3)

    def gradient(self, theta):
        return self.factor * 3 * theta**2


def case_of(function, gradient):
    return gradcli.check(function, {"x": {"shape": [3, 4]}}, grad=gradient).cases[0]


@pytest.mark.parametrize("layer", [Layer(), Square(), Mean()])
def test_a_right_layer_passes(layer):
    case = case_of(layer.forward, layer.backward)
    assert case.verdict is Verdict.PASSED, (case.findings, case.error)


@pytest.mark.parametrize("layer", [Layer(1.01), Mean(0), Mean(1)])
def test_a_wrong_layer_fails(layer):
    case = case_of(layer.forward, layer.backward)
    assert case.verdict is Verdict.FAILED
    assert {finding.kind for finding in case.findings} == {FindingKind.WRONG_FACTOR}


def test_a_backward_that_reads_what_forward_does_not_write_fails():
    layer = Forgetful()
    assert case_of(layer.forward, layer.backward).verdict is Verdict.FAILED


def test_methods_that_keep_nothing_take_the_functions_argument():
    right, wrong = Problem(), Problem(1.01)
    assert case_of(right.value, right.gradient).verdict is Verdict.PASSED
    assert case_of(wrong.value, wrong.gradient).verdict is Verdict.FAILED
