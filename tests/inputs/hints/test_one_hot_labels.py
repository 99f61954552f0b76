"""Labels of which forward takes the argmax, where it is said that they are one-hot."""

import numpy as np
import pytest

import gradcli
from gradcli.inputs.hints.one_hot_labels import one_hot_labels
from gradcli.verdict import Verdict


def softmax(x):
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def cross_entropy(y, t):
    # if t is one-hot, convert to the index of the label
    if t.size == y.size:
        t = t.argmax(axis=1)
    return -np.sum(np.log(y[np.arange(len(y)), t])) / len(y)


class SoftmaxWithLoss:
    def __init__(self, factor=1.0):
        self.factor = factor

    def forward(self, x, t):
        self.t = t
        self.y = softmax(x)
        return cross_entropy(self.y, self.t)

    def backward(self, dout=1):
        if self.t.size == self.y.size:
            return self.factor * (self.y - self.t) / len(self.t)
        dx = self.y.copy()
        dx[np.arange(len(self.t)), self.t] -= 1
        return self.factor * dx / len(self.t)


@pytest.mark.parametrize(("factor", "verdict"), [(1.0, Verdict.PASSED), (1.01, Verdict.FAILED)])
@pytest.mark.usefixtures("unexplained")
def test_a_loss_of_one_hot_labels(factor, verdict):
    layer = SoftmaxWithLoss(factor)
    (case,) = gradcli.check(layer.forward, grad=layer.backward, shrink=False).cases
    assert case.verdict is verdict, (case.findings, case.error, case.inputs)


def unsaid(y, t):
    return y[np.arange(len(y)), t.argmax(axis=1)]


def denied(y, t):
    """t is not one-hot."""
    return y[np.arange(len(y)), t.argmax(axis=1)]


def first_is_data(t, y):
    """t is one-hot."""
    return y[np.arange(len(y)), np.argmax(t, axis=1)]


def plain(y, t):
    """t: one-hot rows"""
    return y[np.arange(len(y)), np.argmax(t, axis=1)]


def test_what_is_said_and_done_decides():
    assert one_hot_labels(SoftmaxWithLoss.forward, ("x", "t")) == {"t"}
    assert one_hot_labels(plain, ("y", "t")) == {"t"}
    assert not one_hot_labels(unsaid, ("y", "t"))
    assert not one_hot_labels(denied, ("y", "t"))
    assert not one_hot_labels(first_is_data, ("t", "y"))
