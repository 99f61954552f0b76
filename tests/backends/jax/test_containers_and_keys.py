"""Pytrees and random keys among the arguments of JAX functions: inferred from the source, and checked leaf by leaf."""

from typing import NamedTuple

import numpy as np
import pytest

import gradcli
from gradcli.backends.registry import backend_named
from gradcli.cases import InputSpec
from gradcli.inputs.flags import parse_input
from gradcli.inputs.hints.reading import read_hints
from gradcli.verdict import Verdict


class Affine(NamedTuple):
    w: object
    b: object


def of_dict(factor):
    """An affine map of parameters in a dict."""
    jax = pytest.importorskip("jax")

    @jax.custom_vjp
    def function(params, x):
        return jax.numpy.tanh(x @ params["W"] + params["b"])

    def backward(residuals, g):
        params, x, y = residuals
        d = g * (1 - y**2)
        return {"W": x.T @ d, "b": factor * d.sum(0)}, d @ params["W"].T

    function.defvjp(lambda params, x: ((y := function.fun(params, x)), (params, x, y)), backward)
    return function, "params['b']"


def of_layers(factor):
    """A network of layers in a list of tuples."""
    jax = pytest.importorskip("jax")

    @jax.custom_vjp
    def function(params, x):
        for W, b in params[:-1]:
            x = jax.numpy.tanh(x @ W + b)
        W, b = params[-1]
        return x @ W + b

    def forward(params, x):
        inputs = [x]
        for w, b in params[:-1]:
            inputs.append(jax.numpy.tanh(inputs[-1] @ w + b))
        return inputs[-1] @ params[-1][0] + params[-1][1], (params, inputs)

    def backward(residuals, g):
        params, inputs = residuals
        found = []
        for place in reversed(range(len(params))):
            found.append((inputs[place].T @ g, factor * g.sum(0)))
            g = g @ params[place][0].T
            g = g * (1 - inputs[place] ** 2) if place else g
        return found[::-1], g

    function.defvjp(forward, backward)
    return function, "params[1][1]"


def of_named_tuple(factor):
    """An affine map of parameters in a named tuple."""
    jax = pytest.importorskip("jax")

    @jax.custom_vjp
    def function(params: Affine, x):
        return x @ params.w + params.b

    def backward(residuals, g):
        params, x = residuals
        return Affine(x.T @ g, factor * g.sum(0)), g @ params.w.T

    function.defvjp(lambda params, x: (function.fun(params, x), (params, x)), backward)
    return function, "params.b"


def of_carry(factor):
    """A cell whose carry is a tuple."""
    jax = pytest.importorskip("jax")

    @jax.custom_vjp
    def function(carry, x):
        h, c = carry
        return jax.numpy.tanh(h) * c + x

    def backward(residuals, g):
        h, c = residuals
        t = jax.numpy.tanh(h)
        return (g * c * (1 - t**2), factor * g * t), g

    function.defvjp(lambda carry, x: (function.fun(carry, x), carry), backward)
    return function, "carry[1]"


@pytest.mark.sampled(2)
@pytest.mark.parametrize("make", [of_dict, of_layers, of_named_tuple, of_carry])
@pytest.mark.usefixtures("unexplained")
def test_every_leaf_of_a_container_is_inferred_and_checked(make):
    function, _ = make(1.0)
    (case,) = gradcli.check(function, order=1, samples=1, only=["gradient"]).cases
    assert case.verdict is Verdict.PASSED
    function, leaf = make(1.01)
    (case,) = gradcli.check(function, order=1, samples=1, shrink=False, only=["gradient"]).cases
    assert case.verdict is Verdict.FAILED
    assert leaf in {e.input for e in case.evidence if e.verdict is Verdict.FAILED}


@pytest.mark.parametrize("name", ["params['W1']", "params[0][1]", "params.w", 'params["W1"]'])
def test_a_leaf_is_given_by_a_flag(name):
    spec = parse_input(f"{name}=3x4")
    assert spec == InputSpec(name=name.replace('"', "'"), shape=(3, 4))
    assert parse_input(spec.as_flag().removeprefix("-i ").strip("'\"")) == spec


def dropout(factor, *, typed):
    """Dropout by a key; where it is `typed`, one that jax.random.key has made."""
    jax = pytest.importorskip("jax")

    @jax.custom_vjp
    def function(key, x):
        if typed:  # prng_key
            assert jax.numpy.issubdtype(key.dtype, jax.dtypes.prng_key)
        return jax.numpy.where(jax.random.bernoulli(key, 0.5, x.shape), 2 * x, 0.0)

    def forward(key, x):
        return function.fun(key, x), (key, jax.random.bernoulli(key, 0.5, x.shape))

    def backward(residuals, g):
        key, kept = residuals
        return np.zeros(key.shape, jax.dtypes.float0), jax.numpy.where(kept, factor * 2 * g, 0.0)

    function.defvjp(forward, backward)
    return function


@pytest.mark.sampled(1)
@pytest.mark.parametrize("typed", [False, True])
@pytest.mark.usefixtures("unexplained")
def test_random_keys_are_inferred_and_not_differentiated(typed):
    (case,) = gradcli.check(dropout(1.0, typed=typed), order=1, samples=1, only=["gradient"]).cases
    assert case.verdict is Verdict.PASSED
    assert case.inputs[0].domain == "typed-key" or (not typed and case.inputs[0].domain == "key")
    (case,) = gradcli.check(dropout(1.01, typed=typed), order=1, samples=1, shrink=False, only=["gradient"]).cases
    assert {e.input for e in case.evidence if e.verdict is Verdict.FAILED} == {"x"}


def test_a_key_of_an_attention_is_no_random_key():
    jax = pytest.importorskip("jax")

    def attention(query, key, value):
        return jax.nn.softmax(query @ key.T) @ value

    names = ("query", "key", "value")
    assert not read_hints(backend_named("jax").describe(attention), names).keys
    assert read_hints(backend_named("jax").describe(dropout(1.0, typed=False)), ("key", "x")).keys.keys() == {"key"}
