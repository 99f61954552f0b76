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


class Timed(Layer):
    """Counts its passes, and leaves them to the layer that it extends."""

    passes = 0

    def backward(self, dout):
        Timed.passes += 1
        return super().backward(dout)


class Decayed(Timed):
    """Adds to what the layer stores; a method of its own calls that of the layer by the name of its class."""

    def pulled(self, dout):
        return Layer.backward(self, dout)

    def backward(self, dout):
        pulled = self.pulled(dout)
        self.weight_grad = self.weight_grad + 0.01 * self.weight
        return pulled


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
    return gradcli.check(function, {"x": {"shape": [3, 4]}}, grad=gradient, shrink=False).cases[0]


@pytest.mark.parametrize("layer", [Layer(), Square(), Mean(), Timed(), Decayed()])
def test_a_right_layer_passes(layer):
    case = case_of(layer.forward, layer.backward)
    assert case.verdict is Verdict.PASSED, (case.findings, case.error)


@pytest.mark.parametrize("layer", [Layer(1.01), Mean(0), Mean(1), Timed(1.01), Decayed(1.01)])
def test_a_wrong_layer_fails(layer):
    case = case_of(layer.forward, layer.backward)
    assert case.verdict is Verdict.FAILED
    assert {finding.kind for finding in case.findings} == {FindingKind.WRONG_FACTOR}


@pytest.mark.parametrize(("factor", "verdict"), [(1.0, Verdict.PASSED), (1.01, Verdict.FAILED)])
def test_a_batch_is_not_made_as_long_as_the_features_of_a_layer(factor, verdict):
    layer = Layer(factor)
    layer.weight = layer.weight[:3]
    (case,) = gradcli.check(layer.forward, grad=layer.backward, shrink=False).cases
    assert case.verdict is verdict, (case.findings, case.error)
    assert [spec.shape for spec in case.inputs] == [(4, 3)]


def test_a_backward_that_reads_what_forward_does_not_write_fails():
    layer = Forgetful()
    assert case_of(layer.forward, layer.backward).verdict is Verdict.FAILED


def test_methods_that_keep_nothing_take_the_functions_argument():
    right, wrong = Problem(), Problem(1.01)
    assert case_of(right.value, right.gradient).verdict is Verdict.PASSED
    assert case_of(wrong.value, wrong.gradient).verdict is Verdict.FAILED


class Sigmoid:
    """What backward reads lies in a dict."""

    def __init__(self):
        self.cache = {}

    def forward(self, x):
        cache = self.cache
        cache["y"] = 1 / (1 + np.exp(-x))
        return cache["y"]

    def backward(self, dout):
        return dout * self.cache["y"] * (1 - self.cache["y"])


class Stack:
    """What backward reads is taken from a list."""

    def __init__(self, factor=1.0):
        self.saved, self.factor = [], factor

    def forward(self, x):
        self.saved.append(x)
        return np.log1p(x**2)

    def backward(self, g):
        x = self.saved.pop()
        return self.factor * g * 2 * x / (1 + x**2)


class Releasing(Stack):
    """What backward reads is gone afterwards."""

    def forward(self, x):
        self.x = x
        return np.log1p(x**2)

    def backward(self, g):
        x, self.x = self.x, None
        return self.factor * g * 2 * x / (1 + x**2)


class Sequential:
    def __init__(self, *layers):
        self.layers = layers

    def forward(self, x):
        for layer in self.layers:
            x = layer.forward(x)
        return x

    def backward(self, dout):
        for layer in reversed(self.layers):
            dout = layer.backward(dout)
        return dout


class Callable:
    """Layers that are called themselves."""

    def __init__(self, layer):
        self.layer = layer

    def __call__(self, x):
        return self.layer.forward(x)

    def backward(self, dout):
        return self.layer.backward(dout)


class Net:
    """Layers in attributes and in a dict, with a method of its own between them."""

    def __init__(self, factor=1.0):
        self.first, self.rest = Callable(Layer(factor)), {"act": Sigmoid()}

    def _hidden(self, x):
        return self.first(x)

    def forward(self, x):
        return self.rest["act"].forward(self._hidden(x))

    def backward(self, dout):
        return self.first.backward(self.rest["act"].backward(dout))


class Recomputing:
    """The derivative runs the network itself, at its own argument."""

    def __init__(self, factor=1.0):
        self.net, self.factor = Sequential(Layer(), Stack()), factor

    def value(self, x):
        return self.net.forward(x).sum()

    def gradient(self, theta):
        return self.factor * self.net.backward(np.ones_like(self.net.forward(theta)))


@pytest.mark.parametrize(
    "layer", [Sigmoid(), Stack(), Releasing(), Sequential(Layer(), Sigmoid()), Sequential(Square(), Square()), Net()]
)
def test_what_is_kept_in_containers_and_other_objects_is_found(layer):
    case = case_of(layer.forward, layer.backward)
    assert case.verdict is Verdict.PASSED, (case.findings, case.error)


@pytest.mark.parametrize("layer", [Stack(1.01), Releasing(1.01), Sequential(Layer(1.01), Sigmoid()), Net(1.01)])
def test_with_one_percent_more_it_fails(layer):
    case = case_of(layer.forward, layer.backward)
    assert {finding.kind for finding in case.findings} == {FindingKind.WRONG_FACTOR}


def test_a_derivative_that_runs_forward_itself_takes_the_functions_argument():
    right, wrong = Recomputing(), Recomputing(1.01)
    assert case_of(right.value, right.gradient).verdict is Verdict.PASSED
    assert case_of(wrong.value, wrong.gradient).verdict is Verdict.FAILED


class Shared:
    last = np.zeros((3, 4))


def shared_forward(x):
    Shared.last = x
    return x**2


def shared_backward(dout, x):
    return 2 * dout * Shared.last + 0 * x


def test_the_message_on_shared_state_does_not_speak_of_ctx():
    case = case_of(shared_forward, shared_backward)
    assert {finding.kind for finding in case.findings} == {FindingKind.STATEFUL}
    assert "ctx" not in case.findings[0].message
