"""Loops of JAX's, which plain calls compile anew: compiled once for the numerics, and called as they are where not."""

import sys

import pytest

import gradcli
from gradcli.findings import FindingKind
from gradcli.verdict import Verdict

pytest.importorskip("jax", reason="the jax backend needs JAX")

PROGRAM = """
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

traced = []


@jax.custom_vjp
def cumulated(x):
    def step(total, entry):
        traced.append(1)
        total = total + jnp.sin(entry)
        return total, total

    return lax.scan(step, jnp.zeros(()), x)[1]


def cumulated_fwd(x):
    return cumulated(x), x


def cumulated_bwd(x, g):
    return (jnp.cumsum(g[::-1])[::-1] * jnp.cos(x),)


cumulated.defvjp(cumulated_fwd, cumulated_bwd)


@jax.custom_vjp
def backwards(x):
    return cumulated(x)


backwards.defvjp(cumulated_fwd, lambda x, g: (jnp.cumsum(g) * jnp.cos(x),))


@jax.custom_vjp
def in_numpy(x):
    return cumulated(x)


def in_numpy_bwd(x, g):
    return (jnp.asarray(np.cumsum(np.asarray(g)[::-1])[::-1] * np.cos(np.asarray(x))),)


in_numpy.defvjp(cumulated_fwd, in_numpy_bwd)


def chosen(x):
    return jax.vmap(lambda v: lax.cond(v > 0, jnp.sin, lambda u: u * u, v))(x)


def solved(x):
    def improved(pair):
        return pair[1], (pair[1] + x / pair[1]) / 2

    return lax.while_loop(lambda pair: jnp.max(jnp.abs(pair[0] - pair[1])) > 1e-14, improved, (x + 2, x + 1))[1]


rooted = jax.custom_vjp(solved)
rooted.defvjp(lambda x: (rooted(x),) * 2, lambda root, g: (g / (2 * root),))
"""


@pytest.fixture
def file(tmp_path, monkeypatch):
    path = tmp_path / "loops.py"
    path.write_text(PROGRAM)
    monkeypatch.chdir(tmp_path)
    return path


def case_of(file, name, **options):
    given = {"x": {"shape": [4], "domain": "positive"}} if name == "rooted" else {"x": {"shape": [4]}}
    return gradcli.check(f"{file}:{name}", given, **options, samples=1, shrink=False).cases[0]


DERIVATIVES = ("gradient", "higher-order")


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("name", "only"), [("cumulated", ()), ("chosen", DERIVATIVES), ("rooted", DERIVATIVES)])
def test_right_loops_pass_at_both_orders(file, name, only):
    case = case_of(file, name, only=only)
    assert case.verdict is Verdict.PASSED, case.findings
    assert case.orders == (1, 2)


def test_the_numerics_trace_a_loop_once_and_not_for_every_value(file):
    case = case_of(file, "cumulated", order=1)
    (module,) = [m for m in list(sys.modules.values()) if getattr(m, "__file__", None) == str(file)]
    assert case.verdict is Verdict.PASSED
    assert 0 < len(module.traced) < case.forwards + case.backwards


@pytest.mark.parametrize("order", [1, 2])
def test_a_wrong_rule_around_a_loop_fails(file, order):
    case = case_of(file, "backwards", order=order, only=DERIVATIVES)
    assert case.verdict is Verdict.FAILED
    assert {finding.kind for finding in case.findings} == {FindingKind.WRONG_GRADIENT}


def test_a_rule_that_asks_for_values_is_called_as_it_is(file):
    case = case_of(file, "in_numpy", order=1)
    assert case.verdict is Verdict.PASSED, (case.findings, case.error)


REMADE = """
import jax.numpy as jnp
from jax import lax


def iterated(x):
    def step(i, y):  # another function in every call, so that JAX compiles the loop anew
        return jnp.sin(y) + x

    return lax.fori_loop(0, 3, step, x)
"""


def hits_and_misses_of(call):
    import jax.monitoring

    seen = []

    def listener(event, **_):
        seen.append(event)

    jax.monitoring.register_event_listener(listener)
    call()
    return [sum(event.endswith(f"cache_{kind}") for event in seen) for kind in ("hits", "misses")]


def test_a_loop_that_every_call_makes_anew_is_compiled_once(tmp_path):
    path = tmp_path / "remade.py"
    path.write_text(REMADE)
    case_of(path, "iterated", order=1)
    hits, misses = hits_and_misses_of(lambda: case_of(path, "iterated", order=1))
    assert hits > 10 * misses


@pytest.mark.parametrize("theirs", [None, "theirs"])
def test_the_users_own_cache_of_compilations_is_as_it_was(file, tmp_path, theirs):
    import jax

    names = [
        "jax_compilation_cache_dir",
        "jax_persistent_cache_min_compile_time_secs",
        "jax_persistent_cache_min_entry_size_bytes",
    ]
    folder = None if theirs is None else str(tmp_path / theirs)
    jax.config.update("jax_compilation_cache_dir", folder)
    before = [getattr(jax.config, name) for name in names]
    try:
        assert case_of(file, "cumulated", order=1, only=["gradient"]).verdict is Verdict.PASSED
        assert [getattr(jax.config, name) for name in names] == before
    finally:
        jax.config.update("jax_compilation_cache_dir", None)
