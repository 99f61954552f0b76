"""Settings and tensors that forward reads from a dict, itself or elsewhere, and a tensor whose rows it loops over."""

from functools import partial

import numpy as np
import pytest

import gradcli
from gradcli.backends.registry import backend_named
from gradcli.inputs.hints.containers.arguments import containers_of
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


def iterated(step, params, z):
    for _ in range(60):
        z = step(params, z)
    return z


def spread(params, z):
    return params["source"] + 0.1 * np.tanh(params["mix"]) @ z


def settled(params):
    return iterated(spread, params, np.zeros_like(params["source"]))


def settled_by_part(params):
    step = partial(spread, params)
    z = np.zeros_like(params["source"])
    for _ in range(60):
        z = step(z)
    return z


def settled_vjp(params, g, factor=1.0):
    mixed = np.tanh(params["mix"])
    u = np.linalg.solve(np.eye(len(g)) - 0.1 * mixed.T, g)
    return {"source": u, "mix": factor * 0.1 * np.outer(u, settled(params)) * (1 - mixed**2)}


def wrong_settled_vjp(params, g):
    return settled_vjp(params, g, 1.25)


@pytest.mark.usefixtures("unexplained")
@pytest.mark.parametrize("function", [settled, settled_by_part])
def test_keys_that_a_function_reads_which_is_given_to_another(function):
    leaves = {path for path, _ in containers_of(described(function))["params"].leaves}
    assert leaves == {"['source']", "['mix']"}
    for gradient, verdict in ((settled_vjp, Verdict.PASSED), (wrong_settled_vjp, Verdict.FAILED)):
        (case,) = gradcli.check(function, grad=gradient, shrink=False, only=("gradient",)).cases
        assert case.verdict is verdict, (case.findings, case.error)


def solved(params, x):
    """params = {'gain': (3,), "shift": (3,)}, x: (3,)"""
    return np.linalg.lstsq(params, x)


def labelled(params, x):
    """params: {'name': 'gain'}, x: (3,)"""
    return params["gain"] * x


@pytest.mark.parametrize(("function", "keys"), [(solved, ["gain", "shift"]), (labelled, ["gain"])])
def test_keys_that_documentation_gives_with_their_shapes(function, keys):
    assert list(containers_of(described(function))["params"].value) == keys
