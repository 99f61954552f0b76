"""Projections found by bisection: they run under jit, though their compiled form cannot be differentiated."""

import numpy as np
import pytest

import gradcli
from gradcli.findings import FindingKind
from gradcli.verdict import Verdict

jax = pytest.importorskip("jax", reason="the jax backend needs JAX")

PROGRAM = """
import jax
import jax.numpy as jnp
from jax import lax


def root_of(balance, low, high, share=1.0, under_jit=None):
    @jax.custom_vjp
    def root(x):
        def halved(ends):
            low, high = ends
            middle = (low + high) / 2
            above = balance(middle, x) > 0
            return jnp.where(above, middle, low), jnp.where(above, high, middle)

        return sum(lax.fori_loop(0, 80, lambda _, ends: halved(ends), (low, high))) / 2

    def forward(x):
        found = root(x)
        return found, (found, x)

    def backward(kept, g):
        found, x = kept
        if under_jit is not None and isinstance(g, jax.core.Tracer):
            g = under_jit * g
        slope, by_x = jax.grad(balance, argnums=(0, 1))(found, x)
        return (-share * g / slope * by_x,)

    root.defvjp(forward, backward)
    return root


def projection(onto, total, **wrong):
    def projected(x):
        low = lax.stop_gradient(jnp.min(x) - 3.0)  # a number of this call, which the loop closes over
        high = lax.stop_gradient(jnp.max(x) + 3.0)
        return onto(root_of(lambda t, x: total(onto(t, x)) - 1.0, low, high, **wrong)(x), x)

    return projected


WEIGHTS = jnp.arange(1.0, 5.0)
KINDS = {
    "simplex": (lambda t, x: jax.nn.relu(x - t), jnp.sum),
    "capped": (lambda t, x: jnp.clip(x - t, 0.0, 0.5), jnp.sum),
    "box": (lambda t, x: jnp.clip(x - t * WEIGHTS, 0.0, 1.0), lambda p: p @ WEIGHTS),
    "ball": (lambda t, x: jnp.sign(x) * jax.nn.relu(jnp.abs(x) - t), lambda p: jnp.sum(jnp.abs(p))),
    "plane": (lambda t, x: x - t * WEIGHTS, lambda p: p @ WEIGHTS),
    "softened": (lambda t, x: jax.nn.softplus(x - t), jnp.sum),
}
for name, (onto, total) in KINDS.items():
    globals()[name] = projection(onto, total)
    globals()[name + "_halved"] = projection(onto, total, share=0.5)
    globals()[name + "_jitted"] = projection(onto, total, under_jit=2.0)
"""
NAMES = ("simplex", "capped", "box", "ball", "plane", "softened")
X = np.array([0.9, -0.25, 0.55, 0.13])


@pytest.fixture
def file(tmp_path, monkeypatch):
    path = tmp_path / "projections.py"
    path.write_text(PROGRAM)
    monkeypatch.chdir(tmp_path)
    return path


def case_of(file, name):
    only = ("gradient", "compilation")
    return gradcli.check(f"{file}:{name}", (X,), order=1, samples=1, shrink=False, only=only).cases[0]


def test_a_compiled_projection_cannot_be_differentiated_and_a_compiled_gradient_can():
    namespace = {}
    exec(PROGRAM, namespace)
    function = namespace["simplex"]
    ones = jax.numpy.ones(4)
    with pytest.raises(TypeError, match="Tracer"):
        jax.vjp(jax.jit(function), jax.numpy.asarray(X))[1](ones)
    gradient = jax.jit(lambda x: jax.vjp(function, x)[1](ones)[0])(jax.numpy.asarray(X))
    np.testing.assert_allclose(gradient, 0.0, atol=1e-6)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", NAMES)
def test_a_right_projection_passes(file, name):
    case = case_of(file, name)
    assert case.verdict is Verdict.PASSED, (case.findings, case.error)
    assert any(e.check == "compilation" and e.verdict is Verdict.PASSED for e in case.evidence)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", ["simplex", "ball", "softened"])
def test_a_wrong_projection_fails_for_its_gradient(file, name):
    case = case_of(file, f"{name}_halved")
    assert case.verdict is Verdict.FAILED
    assert FindingKind.JIT_MISMATCH not in {finding.kind for finding in case.findings}


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", ["box", "plane"])
def test_one_that_differs_under_jit_fails_for_that(file, name):
    case = case_of(file, f"{name}_jitted")
    assert case.verdict is Verdict.FAILED
    assert {finding.kind for finding in case.findings} == {FindingKind.JIT_MISMATCH}
