"""The trace of a JAX function: its vjp, an equation a node, with the cause of every gradient that is zero."""

import re

import numpy as np
import pytest

jax = pytest.importorskip("jax", reason="these are JAX's functions")
import jax.numpy as jnp  # noqa: E402
from jax import lax  # noqa: E402

from gradcli.errors import TargetError  # noqa: E402
from gradcli.reporters.graph.page import trace_page  # noqa: E402
from gradcli.reporters.graph.tree import tree  # noqa: E402
from gradcli.runner.trace import trace_target  # noqa: E402
from gradcli.traces import TraceGraph  # noqa: E402

X = np.array([0.5, -1.5, 2.0])
Y = np.array([1.25, 0.75, -0.5])


def line_of(text: str) -> str:
    """The place of the only line of this file with `text`, as a trace writes it."""
    with open(__file__, encoding="utf-8") as file:
        found = [number for number, line in enumerate(file, 1) if line.strip().startswith(text)]
    assert len(found) == 1, text
    return f":{found[0]}"


def traced(function, *values) -> TraceGraph:
    return trace_target(function, values)


def why(graph: TraceGraph, name: str) -> str:
    return str(next(fate.why for fate in graph.tensors if fate.name.endswith(name)))


@jax.custom_vjp
def square(x):
    return x * x


def square_bwd(residual, g):
    return (2 * g * residual,)


square.defvjp(lambda x: (x * x, x), square_bwd)


@jax.custom_vjp
def forgetful(x, y):
    return x * y


def forgetful_bwd(residual, g):
    return g * residual, jnp.zeros_like(residual)


forgetful.defvjp(lambda x, y: (x * y, y), forgetful_bwd)


@jax.jit
def inner(x):
    return jnp.tanh(x) * x


def smooth(x, y):
    return jnp.sum(inner(x) * jnp.exp(y) + square(x) @ y + x * x * x)


def scanned(x, y):
    return lax.scan(lambda carry, part: (jnp.sin(carry) * part, carry), jnp.sum(x), y)[0]


def branched(x, y):
    return lax.cond(jnp.sum(y) > 0, lambda v: jnp.sum(v * v), lambda v: jnp.sum(v), x) + jnp.sum(y * y)


def indexed(x, y):
    return jnp.sum(x[jnp.array([0, 0, 2])] * jnp.sort(y)) + jnp.max(x * y)


@pytest.mark.parametrize("function", [smooth, scanned, branched, indexed])
def test_gradients_are_those_of_jax_bit_for_bit(function):
    graph = traced(function, X, Y)
    with jax.enable_x64(True):
        expected = jax.grad(function, argnums=(0, 1))(jnp.asarray(X), jnp.asarray(Y))
        assert [list(fate.grad.values) for fate in graph.tensors] == [np.asarray(g).tolist() for g in expected]
    arrived = {node.variable: node.gradients_in[0].values for node in graph.nodes if node.name == "input"}
    for fate in graph.tensors:  # and what came through the nodes is the same but for the order of sums
        np.testing.assert_allclose(arrived[fate.name], fate.grad.values, rtol=1e-14)


def test_nodes_stand_in_backward_order_with_the_lines_that_made_them():
    graph = traced(smooth, X, Y)
    assert all(edge.target is None or edge.target > node.id for node in graph.nodes for edge in node.edges)
    tanh = next(node for node in graph.nodes if node.name == "tanh")
    assert str(tanh.site).endswith(line_of("return jnp.tanh(x) * x"))


def test_custom_rules_are_marked_with_the_place_of_the_rule():
    (node,) = [node for node in traced(smooth, X, Y).nodes if node.name.startswith("custom_vjp")]
    assert node.name == "custom_vjp square"
    assert str(node.rule).endswith(line_of("def square_bwd"))


def stopped(x, y):
    frozen = lax.stop_gradient(y)
    return jnp.sum(x * frozen)


def stopped_inside_jit(x, y):
    held = jax.jit(lambda v: lax.stop_gradient(v) * 2)(y)
    return jnp.sum(x * held)


def compared(x, y):
    mask = (y > 0).astype(x.dtype)
    return jnp.sum(x * mask)


def floored(x, y):
    whole = jnp.floor(y)
    return jnp.sum(x * whole)


def counted(x, y):
    place = jnp.argmax(y)
    return jnp.sum(x) * (place + 1)


def unused(x, y):
    return jnp.sum(x * x)


def dropped(x, y):
    wasted = jnp.exp(y)  # noqa: F841 - that is the mistake
    return jnp.sum(x)


def forgotten(x, y):
    return jnp.sum(forgetful(x, y))


def branch(x, y):
    picked = jnp.where(x > -100, x, y)
    return jnp.sum(picked)


def two_ways(x, y):
    return jnp.sum(x * lax.stop_gradient(y) + jnp.round(y))


@pytest.mark.parametrize(
    ("function", "said", "symptom"),
    [
        (stopped, "stop_gradient at .*{} takes it out of the derivative", "detached"),
        (stopped_inside_jit, "stop_gradient at .*{} takes it out of the derivative", "detached"),
        (compared, "gt at .*{} compares it, and True and False have no gradient", "detached"),
        (floored, "floor at .*{}: its derivative is 0 everywhere", "zero-gradient"),
        (counted, "argmax at .*{} makes int.* numbers of it, which have no gradient", "detached"),
        (unused, "the result was not computed from it: nothing used it", "not-reached"),
        (dropped, "it is used at .*, but the result was not computed from what that gave", "not-reached"),
        (forgotten, "the rule of custom_vjp forgetful .* zeros for operand 1; its rule is at ", "zero-gradient"),
        (branch, "select_n at .*{}: it takes the other branch at every entry", "zero-gradient"),
        (two_ways, "round.*: its derivative is 0 everywhere; and stop_gradient .* takes it out", "zero-gradient"),
    ],
)  # fmt: skip
def test_every_zero_is_explained_and_the_gradient_beside_it_is_not(function, said, symptom):
    graph = traced(function, X, Y)
    marks = {stopped: "frozen = ", stopped_inside_jit: "held = ", compared: "mask = ", floored: "whole = ",
             counted: "place = ", branch: "picked = "}  # fmt: skip
    pattern = said.format(line_of(marks[function])) if function in marks else said
    assert re.search(pattern, why(graph, graph.tensors[1].name)), why(graph, graph.tensors[1].name)
    assert graph.symptoms == (symptom,)
    assert graph.tensors[0].why is None
    assert "why is the gradient of " in tree(graph)


def logarithm(x, y):
    return jnp.sum(jnp.log(x - x) * y)


def quotient(x, y):
    return jnp.sum((x - x) / (y - y))


def rooted(x, y):
    zero = x - x
    safe = jnp.where(zero > 0, jnp.sqrt(zero), y)
    return jnp.sum(safe)


def overflow(x, y):
    return jnp.sum(jnp.exp(x * 1e4) * y)


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (logarithm, r"log at .* made the first NaN or Inf, in forward: log\(0\) = -inf"),
        (quotient, r"div at .* made the first NaN or Inf, in forward"),
        (rooted, r"sqrt, .*, made the first NaN or Inf: the `where` at "),
        (overflow, r"exp at .* made the first NaN or Inf, in forward"),
    ],
)
def test_the_equation_that_made_nan_or_inf_is_named(function, said):
    graph = traced(function, X, Y)
    assert any(re.search(said, lint) for lint in graph.lints), graph.lints
    assert "non-finite-gradient" in graph.symptoms


def test_the_where_trap_names_both_lines():
    (said,) = traced(rooted, X, Y).lints
    assert line_of("safe = jnp.where") in said
    assert "where" in said


def test_a_function_that_decides_by_values_is_refused_with_the_reason():
    with pytest.raises(TargetError, match="asks for values that are not known while JAX traces"):
        traced(lambda x: x if x.sum() > 0 else -x, X)


def test_the_page_says_that_there_are_no_hooks():
    assert "JAX has no hooks" in trace_page(traced(smooth, X, Y))
