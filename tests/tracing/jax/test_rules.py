"""`trace --check` on JAX: each custom rule against the derivative of its own function, and only the wrong one named."""

from functools import partial
from pathlib import Path

import numpy as np
import pytest

jax = pytest.importorskip("jax", reason="these are JAX's functions")
import jax.numpy as jnp  # noqa: E402
from jax import lax  # noqa: E402

import gradcli  # noqa: E402
from gradcli.backends.jax.custom_rules import rule_of_equation  # noqa: E402
from gradcli.runner.trace import trace_target  # noqa: E402

X = np.array([0.5, -1.5, 2.0])
Y = np.array([1.25, 0.75, -0.5])
SOURCE = Path(__file__).read_text(encoding="utf-8").splitlines()


def line_of(mark):
    (number,) = [n for n, line in enumerate(SOURCE, 1) if line.endswith(f"# {mark}")]
    return f"{Path(__file__).name}:{number}"


def square_with(factor):
    @jax.custom_vjp
    def square(x):
        return x * x

    def square_bwd(residual, g):  # rule of square
        return (factor * g * residual,)

    square.defvjp(lambda x: (x * x, x), square_bwd)
    return square


right, wrong = square_with(2.0), square_with(2.02)


@jax.custom_jvp
def swell(x, y):
    return x * jnp.sin(y)


@swell.defjvp  # rule of swell
def swell_jvp(primals, tangents):
    (x, y), (a, b) = primals, tangents
    return swell(x, y), a * jnp.sin(y) + 1.01 * x * jnp.cos(y) * b


@jax.custom_jvp
def wave(x):
    return jnp.sin(x)


wave.defjvps(lambda t, answer, x: 0.99 * jnp.cos(x) * t)  # rule of wave


@partial(jax.custom_vjp, nondiff_argnums=(1,))
def power(x, n):
    return x**n


power.defvjp(lambda x, n: (x**n, x), lambda n, x, g: (g * n * x ** (n - 1),))


@jax.custom_vjp
def product(x, y):
    return x * y


product.defvjp(lambda x, y: (x * y, (x, y)), lambda held, g: (g * held[1], g * held[0] * 1.01))


def sound(x, y):
    return jnp.sum(right(x) * y + power(x, 3) + jax.nn.softplus(x))


def beside_right_ones(x, y):
    return jnp.sum(right(jnp.tanh(x)) * wrong(y))  # beside


def forward_rules(x, y):
    return jnp.sum(swell(x, y)) + jnp.sum(wave(x))


def in_a_scan(x, y):
    return lax.scan(lambda carry, part: (wrong(carry) * part + jnp.sum(x), carry), 0.3, y)[0]  # in a scan


def in_a_branch(x, y):
    return jnp.sum(lax.cond(jnp.sum(y) > 0, wrong, lambda v: v, x))  # in a branch


def in_a_checkpoint(x, y):
    return jnp.sum(jax.checkpoint(wrong)(x) * y)  # in a checkpoint


def in_a_compiled_function(x, y):
    return jnp.sum(jax.jit(lambda v: wrong(jnp.exp(v)))(x) * y)  # compiled


def mapped(x, y):
    return jnp.sum(jax.vmap(wrong)(x) * y)  # mapped


def checked(function, **options):
    return trace_target(function, (X, Y), check=True, **options)


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("function", "mark"),
    [
        (beside_right_ones, "beside"),
        (in_a_scan, "in a scan"),
        (in_a_branch, "in a branch"),
        (in_a_checkpoint, "in a checkpoint"),
        (in_a_compiled_function, "compiled"),
        (mapped, "mapped"),
    ],
)
def test_the_wrong_rule_is_named_with_its_call_and_its_line(function, mark):
    graph = checked(function)
    (node,) = graph.wrong_nodes
    assert (node.name, node.finding) == ("square", "wrong-factor")
    assert str(node.site).endswith(line_of(mark))
    assert str(node.at).endswith(line_of("rule of square"))
    assert "wrong-node" in graph.symptoms
    assert graph.lints[0].startswith(f"the backward of square at {node.site} is wrong [wrong-factor, ")
    assert node.node is not None


def test_forward_rules_are_checked_input_by_input():
    graph = checked(forward_rules)
    assert [(node.name, node.message.split(":")[0]) for node in graph.wrong_nodes] == [("swell", "y"), ("wave", "x")]
    assert [str(node.at).rsplit("/", 1)[-1] for node in graph.wrong_nodes] == [
        line_of("rule of swell"), line_of("rule of wave"),
    ]  # fmt: skip


def test_right_rules_are_not_named_and_rules_of_libraries_not_checked():
    graph = checked(sound)
    assert (graph.wrong_nodes, graph.symptoms, graph.lints) == ((), (), ())
    assert graph.node_check == gradcli.traces.NodeCheck(passed=2)


def test_every_operation_is_checked_on_request():
    graph = checked(beside_right_ones, every_node=True)
    assert [node.name for node in graph.wrong_nodes] == ["square"]
    assert graph.node_check == gradcli.traces.NodeCheck(passed=4)  # tanh, the right square, the product, the sum


def test_only_the_operand_that_gradients_go_to_counts():
    """The wrong gradient of a constant changes nothing here."""
    assert checked(lambda x, y: jnp.sum(product(x, jnp.arange(1.0, 4.0)) * y)).wrong_nodes == ()
    assert len(checked(lambda x, y: jnp.sum(product(jnp.arange(1.0, 4.0), x) * y)).wrong_nodes) == 1


def test_a_loop_is_checked_where_its_carry_varies():
    """At the first turn the carry is a constant, to which no gradient goes."""

    def loop(x, y):
        return jnp.sum(lax.scan(lambda carry, part: (product(part, carry), 0.0), jnp.float64(0.5), x)[0]) + jnp.sum(y)

    assert len(checked(loop).wrong_nodes) == 1


def test_the_trace_is_the_same_with_and_without_the_check():
    plain, looked_at = trace_target(beside_right_ones, (X, Y)), checked(beside_right_ones)
    assert [fate.grad.values for fate in plain.tensors] == [fate.grad.values for fate in looked_at.tensors]
    assert plain.nodes == looked_at.nodes
    assert (plain.wrong_nodes, plain.node_check) == ((), None)


def test_one_of_thirty_rules_that_is_off_by_one_percent_is_named():
    rules = [square_with(2.02 if number == 17 else 2.0) for number in range(30)]

    def deep(x, y):
        for rule in rules:
            x = jnp.tanh(rule(x)) + y
        return jnp.sum(x)

    graph = checked(deep)
    (node,) = graph.wrong_nodes
    calls = [n for n in graph.nodes if n.name == "custom_vjp square"]
    assert calls[::-1][17].id == node.node
    assert graph.node_check.passed == 29


def test_the_rule_behind_what_jax_wraps_it_in_is_found():
    equations = jax.make_jaxpr(lambda x: (wave(x), wrong(x), jax.nn.relu(x)))(1.0).eqns
    found = [None if (rule := rule_of_equation(e)) is None else rule.__name__ for e in equations]
    assert found[:2] == ["<lambda>", "square_bwd"]
    assert found[-1] is None
