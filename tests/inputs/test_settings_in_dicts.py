"""Settings that forward reads from a dict under short names, and a tensor whose rows it loops over."""

import numpy as np
import pytest

import gradcli
from gradcli.backends.registry import backend_named
from gradcli.inputs.hints.containers import containers_of
from gradcli.verdict import Verdict


def pool_forward(x, pool_param):
    """x: (N, L)"""
    ph, s = pool_param["pool_height"], pool_param["stride"]
    count = (x.shape[1] - ph) // s + 1
    out = np.zeros((len(x), count))
    for i in range(count):
        out[:, i] = x[:, i * s : i * s + ph].max(axis=1)
    return out, (x, pool_param)


def pool_backward(dout, cache):
    return _pooled(dout, cache, 1.0)


def wrong_pool_backward(dout, cache):
    return _pooled(dout, cache, 1.01)


def _pooled(dout, cache, factor):
    x, pool_param = cache
    ph, s = pool_param["pool_height"], pool_param["stride"]
    dx = np.zeros_like(x)
    for i in range(dout.shape[1]):
        window = x[:, i * s : i * s + ph]
        dx[:, i * s : i * s + ph] += factor * (window == window.max(axis=1, keepdims=True)) * dout[:, i, None]
    return dx


def blend(rgba, bg):
    """rgba: (N, 4), alpha in (0, 1); bg: (3,)"""
    left, out = 1.0, np.zeros(3)
    for c in rgba:
        out = out + left * c[3] * c[:3]
        left = left * (1 - c[3])
    return out + left * bg


def blend_vjp(rgba, bg, g):
    return _blended(rgba, bg, g, 1.0)


def wrong_blend_vjp(rgba, bg, g):
    return _blended(rgba, bg, g, 1.01)


def _blended(rgba, bg, g, factor):
    left = np.concatenate([[1.0], np.cumprod(1 - rgba[:, 3])])
    d, behind = np.zeros_like(rgba), bg.copy()
    for i in range(len(rgba) - 1, -1, -1):
        d[i, :3] = left[i] * rgba[i, 3] * g
        d[i, 3] = factor * left[i] * np.dot(rgba[i, :3] - behind, g)
        behind = rgba[i, 3] * rgba[i, :3] + (1 - rgba[i, 3]) * behind
    return d, left[-1] * g


@pytest.mark.parametrize(
    ("function", "right", "wrong"),
    [(pool_forward, pool_backward, wrong_pool_backward), (blend, blend_vjp, wrong_blend_vjp)],
)
@pytest.mark.usefixtures("unexplained")
def test_inputs_are_found_and_wrong_twins_fail(function, right, wrong):
    for gradient, verdict in ((right, Verdict.PASSED), (wrong, Verdict.FAILED)):
        (case,) = gradcli.check(function, grad=gradient, shrink=False).cases
        assert case.verdict is verdict, (case.findings, case.error)


def described(function):
    return backend_named("numpy").describe(function)


def layers(params, x):
    for layer in params:
        x = np.tanh(x @ layer[0] + layer[1])
    return x


def test_a_sliced_element_is_a_tensor_and_another_a_pair():
    assert not containers_of(described(blend))
    leaves = containers_of(described(layers))["params"].leaves
    assert [path for path, _ in leaves] == ["[0][0]", "[0][1]", "[1][0]", "[1][1]"]


def refusing(x, settings):
    flavour = settings["flavour"]
    if flavour is not refusing:
        raise ValueError("no such flavour")
    return x * flavour, x


def test_the_flags_of_the_message_name_what_the_dict_holds():
    (case,) = gradcli.check(refusing, grad=lambda dout, cache: dout).cases
    assert case.verdict is Verdict.ERROR
    assert "-i \"settings['flavour']=3x4\"" in case.error
