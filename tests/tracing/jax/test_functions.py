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


@pytest.mark.sampled(2)
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


def chosen_by_order(x, y):
    order = jnp.argsort(y)
    return jnp.sum(x[order] * jnp.arange(3.0))


def chosen_by_a_sign(x, y):
    sign = jnp.sum(y) > 0
    return lax.cond(sign, lambda v: jnp.sum(v * v), lambda v: jnp.sum(v), x)


def left_out_by_a_branch(x, y):
    return lax.cond(x[0] > 0, lambda a, b: jnp.sum(a), lambda a, b: jnp.sum(b), x, y)  # the branch


def stopped_in_a_checkpoint(x, y):
    held = jax.checkpoint(lambda v: lax.stop_gradient(v) * 2)(y)
    return jnp.sum(x * held)


def stopped_in_a_tree(x, y):
    held = jax.tree_util.tree_map(lax.stop_gradient, {"a": y, "b": y * 2})
    return jnp.sum(x * held["a"] * held["b"])


@jax.custom_jvp
def numb(x):
    return x * x


numb.defjvp(lambda primals, tangents: (numb(primals[0]), jnp.zeros_like(tangents[0])))  # rule of numb


def zero_tangent(x, y):
    return jnp.sum(x * numb(y))


def counted_for_a_log(x, y):
    jnp.argmax(y)
    return jnp.sum(x * x)


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    ("function", "said", "symptom"),
    [
        (chosen_by_order, "computed only from the indices that sort at .*{} gives", "detached"),
        (chosen_by_a_sign, "gt at .*{} compares it, and True and False have no gradient", "detached"),
        (left_out_by_a_branch, "it is used at .*{}, but the result does not depend on", "not-reached"),
        (stopped_in_a_checkpoint, "stop_gradient at .*{} takes it out of the derivative", "detached"),
        (stopped_in_a_tree, "stop_gradient at .*{} takes it out of the derivative", "detached"),
        (zero_tangent, "the rule of custom_jvp numb .* zeros for operand 0; the rule is at .*{}", "zero-gradient"),
        (counted_for_a_log, "it is used at .*{}, but the result does not depend on", "not-reached"),
        (stopped, "stop_gradient at .*{} takes it out of the derivative", "detached"),
        (stopped_inside_jit, "stop_gradient at .*{} takes it out of the derivative", "detached"),
        (compared, "gt at .*{} compares it, and True and False have no gradient", "detached"),
        (floored, "floor at .*{}: its derivative is 0 everywhere", "zero-gradient"),
        (counted, "argmax at .*{} turns it into int.* numbers, which have no gradient", "detached"),
        (unused, "the result was not computed from it: nothing used it", "not-reached"),
        (dropped, "it is used at .*, but the result does not depend on what was computed there", "not-reached"),
        (forgotten, "the rule of custom_vjp forgetful .* zeros for operand 1; the rule is at ", "zero-gradient"),
        (branch, "select_n at .*{}: it selects another operand at every entry", "zero-gradient"),
        (two_ways, "round.*: its derivative is 0 everywhere; and stop_gradient .* takes it out", "zero-gradient"),
    ],
)  # fmt: skip
def test_every_zero_is_explained_and_the_gradient_beside_it_is_not(function, said, symptom):
    graph = traced(function, X, Y)
    marks = {chosen_by_order: "order = ", chosen_by_a_sign: "sign = ", stopped_in_a_tree: "held = jax.tree_util",
             left_out_by_a_branch: "return lax.cond(x[0] > 0", stopped_in_a_checkpoint: "held = jax.checkpoint",
             zero_tangent: "numb.defjvp(", counted_for_a_log: "jnp.argmax(y)", stopped: "frozen = ",
             stopped_inside_jit: "held = jax.jit", compared: "mask = ", floored: "whole = ", counted: "place = ",
             branch: "picked = "}  # fmt: skip
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


def masked_by_a_product(x, y):
    return jnp.sum(jax.nn.softmax(x + (1 - jnp.array([1.0, 0.0, 1.0])) * -jnp.inf) * y)


def root_of_negative_behind_a_where(x, y):
    return jnp.sum(jnp.where(x > 0, jnp.sqrt(x), y))


def constant_with_nan(x, y):
    return jnp.sum(x * jnp.array([1.0, jnp.nan, 2.0]) * y)


def power_at_zero(x, y):
    return jnp.sum((x - x) ** y)


@jax.custom_vjp
def divider(x):
    return x * x


def divider_bwd(residual, g):
    return (g / (residual - residual),)


divider.defvjp(lambda x: (x * x, x), divider_bwd)


def divided_in_a_rule(x, y):
    return jnp.sum(divider(x) * y)


def overflow_then_quotient(x, y):
    grown = jnp.exp(x * 1e4)
    return jnp.sum(grown / jnp.sum(grown) * y)


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("function", "said"),
    [
        (masked_by_a_product, r"mul at .* in forward: 0 · \(-inf\) = nan at entry \[0\]; .*`masked_fill` or `where`"),
        (root_of_negative_behind_a_where, r"sqrt\(-1\.5\) = nan at entry \[1\]; the result does not show it"),
        (constant_with_nan, r"a constant of mul at .* holds NaN at entry \[1\] before anything is computed"),
        (power_at_zero, r"pow at .* in forward: 0 \*\* \(-0\.5\) = inf at entry \[2\]; keep its operand away from 0"),
        (divided_in_a_rule, r"^custom_vjp divider, .*, made the first NaN or Inf: it received .* and returned Inf"),
        (overflow_then_quotient, r"exp\(5000\) = inf .*an overflow of float64; div at .* turns it into NaN: inf / inf"),
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


def hidden_and_harmless(x, y):
    return jnp.sum(jnp.where(x > 0, jnp.log(x), y))


def computed_for_a_log(x, y):
    jnp.log(x - x)
    return jnp.sum(x * y)


@pytest.mark.parametrize("function", [hidden_and_harmless, computed_for_a_log])
def test_nan_that_reaches_no_result_and_no_gradient_is_no_symptom(function):
    graph = traced(function, X, Y)
    assert (graph.lints, graph.symptoms) == ((), ())


def test_an_input_with_nan_is_named():
    (said,) = traced(lambda x, y: jnp.sum(x * y), np.array([1.0, np.nan, 2.0]), Y).lints
    assert said.startswith("x holds NaN at entry [1] before anything is computed")


def test_the_where_trap_names_both_lines():
    (said,) = traced(rooted, X, Y).lints
    assert line_of("safe = jnp.where") in said
    assert "where" in said


def test_a_function_that_decides_by_values_is_refused_with_the_reason():
    with pytest.raises(TargetError, match="uses values that are not known while JAX traces"):
        traced(lambda x: x if x.sum() > 0 else -x, X)


def test_the_page_says_that_there_are_no_hooks():
    assert "JAX has no hooks" in trace_page(traced(smooth, X, Y))


def test_outputs_have_different_grad_outputs():
    graph = traced(lambda x: (x * 2, x * -2), X)
    assert graph.tensors[0].grad.norm > 0
