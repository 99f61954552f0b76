"""A gradient of autograd.grad has a graph only on request: a loss computed from one without it is cut off there."""

import sys

import pytest

from tests.tracing.tracing import at, fate, grads, traced

HERE = sys.modules[__name__]


def leaves(f):
    return f.tensor([1.0, 2.0], requires_grad=True), f.tensor([3.0, 4.0], requires_grad=True)


def penalty(f):
    x, w = leaves(f)
    scale = f.ones(2, requires_grad=True)
    (g,) = f.autograd.grad((x * w * w).sum(), x)  # asked
    (g * scale).sum().backward()


def penalty_from_given_numbers(f):
    x, w = leaves(f)
    scale = f.ones(2, requires_grad=True)
    out = x * w * w
    (g,) = f.autograd.grad(out, x, f.ones_like(out))  # given
    (g * scale).sum().backward()


def twice_without_a_graph(f):
    x, w = leaves(f)
    scale = f.ones(2, requires_grad=True)
    (g,) = f.autograd.grad((x * w * w).sum(), x)  # first of two
    h = g * scale
    (again,) = f.autograd.grad((h * h).sum(), scale)
    (again * scale).sum().backward()


def penalty_curved_in_what_was_asked_for(f):
    x, w = leaves(f)
    scale = f.ones(2, requires_grad=True)
    (g,) = f.autograd.grad((x * x * w).sum(), x)  # curved
    ((g * scale) ** 2).sum().backward()


def penalty_that_reaches_the_other_leaf(f):
    x, w = leaves(f)
    (g,) = f.autograd.grad((x.exp() * w).sum(), x)  # reaches w
    (g * w).sum().backward()


CUT = [
    (penalty_curved_in_what_was_asked_for, ("x", "w"), "curved"),
    (penalty_that_reaches_the_other_leaf, ("x",), "reaches w"),
    (penalty, ("w",), "asked"),
    (penalty_from_given_numbers, ("w",), "given"),
    (twice_without_a_graph, ("w",), "first of two"),
]


@pytest.mark.parametrize(("program", "names", "mark"), CUT, ids=lambda value: getattr(value, "__name__", None))
def test_a_loss_computed_from_a_gradient_without_a_graph_is_cut_at_the_call(framework, program, names, mark):
    graph = traced(framework, lambda: program(framework))
    for name in names:
        found = fate(graph, name)
        assert found.symptom == "detached"
        assert "was called without create_graph=True" in found.why
        assert found.why.endswith("or, if the result is meant to be a constant, detach it")
        assert any(at(cut.site, HERE, f"# {mark}") for cut in graph.cuts if name in cut.leaves)


def with_a_graph(f):
    x, w = leaves(f)
    (g,) = f.autograd.grad((x * w * w).sum(), x, create_graph=True)
    (g * g).sum().backward()


def only_printed(f):
    x, w = leaves(f)
    (g,) = f.autograd.grad((x * w * w).sum(), x)
    assert float(g.sum()) == 25
    (x * 2).sum().backward()


def update_without_recording(f):
    x, w = leaves(f)
    (g,) = f.autograd.grad((x * w * w).sum(), x)
    with f.no_grad():
        x -= 0.1 * g
    (x * 2).sum().backward()


def update_of_data(f):
    x, w = leaves(f)
    (g,) = f.autograd.grad((x * w * w).sum(), x)
    x.data.add_(-0.1 * g)
    (x * 2).sum().backward()


def detached_on_purpose(f):
    x, w = leaves(f)
    (g,) = f.autograd.grad((x * w * w).sum(), x)
    (x * g.detach()).sum().backward()


def adversarial_step(f):
    x, w = leaves(f)
    (g,) = f.autograd.grad((x * w * w).sum(), x)
    (w * (x.detach() + 0.1 * g.sign())).sum().backward()


def inner_step(f):
    w, rate = leaves(f)
    (g,) = f.autograd.grad((w * w).sum(), w)
    moved = w.detach() - rate * g
    return (moved * moved).sum()


def adversarial_step_of_a_length(f):
    x, w = leaves(f)
    (g,) = f.autograd.grad((x * w * w).sum(), x)
    (w * (x.detach() + 0.1 * g / g.norm())).sum().backward()


def adversarial_data(f):
    x, w = leaves(f)
    (g,) = f.autograd.grad((x * w * w).sum(), x)
    (w * (x + 0.1 * g).detach()).sum().backward()


def first_order_step(f):
    x, w = leaves(f)
    (gx, gw) = f.autograd.grad((x * w * w).sum(), (x, w))
    ((x - 0.1 * gx) * (w - 0.1 * gw)).sum().backward()


def detached_as_advised(f):
    x, w = leaves(f)
    scale = f.ones(2, requires_grad=True)
    (g,) = f.autograd.grad((x * w * w).sum(), x)
    (g.detach() * scale).sum().backward()


def curved_step_from_values(f):
    x, w = leaves(f)
    scale = f.ones(2, requires_grad=True)
    (g,) = f.autograd.grad((x * x).sum(), x)
    (w * (x.data - scale * g)).sum().backward()


def norm_as_a_number(f):
    x, w = leaves(f)
    (g,) = f.autograd.grad((x * w * w).sum(), x)
    (x / g.norm().item()).sum().backward()


@pytest.mark.sampled(10)
@pytest.mark.parametrize(
    "program",
    [
        with_a_graph,
        only_printed,
        update_without_recording,
        update_of_data,
        detached_on_purpose,
        adversarial_step,
        adversarial_step_of_a_length,
        inner_step,
        adversarial_data,
        first_order_step,
        detached_as_advised,
        norm_as_a_number,
        curved_step_from_values,
    ],
    ids=lambda program: program.__name__,
)
def test_gradients_used_as_numbers_or_with_a_graph_are_no_symptom(framework, program):
    graph = traced(framework, lambda: program(framework))
    assert graph.symptoms == ()
    assert "create_graph" not in " ".join(f.why or "" for f in graph.tensors)


def test_a_tensor_whose_gradient_was_not_asked_for_is_not_said_to_be_returned_one(framework):
    graph = traced(framework, lambda: only_printed(framework))
    assert fate(graph, "w").why.startswith("only autograd.grad, at ")
    assert fate(graph, "w").why.endswith("ran back to it: it returns gradients and fills no .grad")


def test_a_gradient_that_does_not_depend_on_what_was_asked_for_needs_no_graph(framework):
    graph = traced(framework, lambda: penalty(framework))
    assert fate(graph, "x").symptom is None
    assert "ran back to it" in fate(graph, "x").why


def slope_penalty(f):
    x, shift = leaves(f)
    (slope,) = f.autograd.grad((x * x * x + shift).sum(), x, create_graph=True)
    ((slope - 1) ** 2).sum().backward()


def test_a_leaf_that_a_gradients_graph_does_not_reach_is_missing_in_the_loss_not_in_a_call(framework):
    graph = traced(framework, lambda: slope_penalty(framework))
    assert grads(graph)["x"] is not None
    why = fate(graph, "shift").why
    assert why.startswith("the backward pass ran from ")
    assert "which does not depend on shift; only autograd.grad, at " in why
    assert not fate(traced(framework, lambda: only_printed(framework)), "w").why.startswith("the backward pass")
