"""A leaf whose requires_grad is set to False between forward and backward: why its .grad is None, and where."""

import sys

import pytest

from tests.tracing.tracing import fate, line_of, traced

HERE = sys.modules[__name__]


def by_method(x):
    x.requires_grad_(False)  # by method


def by_attribute(x):
    x.requires_grad = False  # by attribute


@pytest.mark.parametrize(("switch", "mark"), [(by_method, "# by method"), (by_attribute, "# by attribute")])
def test_the_line_that_switches_a_leaf_off_is_named(framework, switch, mark):
    def loss():
        x, w = framework.ones(2, requires_grad=True), framework.ones(2, requires_grad=True)
        x.register_hook(lambda g: g * 2)
        y = (x * w).sum()
        switch(x)
        y.backward()

    graph = traced(framework, loss)
    x = fate(graph, "x")
    assert (x.grad, x.symptom) == (None, None)
    assert f"its requires_grad was set to False at {x.switched_off_at}, after the graph had been made" in x.why
    assert x.switched_off_at.line == line_of(HERE, mark)
    assert graph.effects == ()
    assert fate(graph, "w").grad.values == (1.0, 1.0)


def test_a_leaf_that_was_switched_off_after_backward_has_no_such_reason(framework):
    def loss(clears):
        x = framework.ones(2, requires_grad=True)
        (x * 3).sum().backward()
        if clears:
            x.grad = None
        x.requires_grad_(False)

    assert fate(traced(framework, lambda: loss(False)), "x").why is None
    assert "after the graph had been made" not in (fate(traced(framework, lambda: loss(True)), "x").why or "")


def test_a_leaf_that_was_switched_off_and_on_again_is_filled(framework):
    def loss():
        x = framework.ones(2, requires_grad=True)
        y = (x * 3).sum()
        x.requires_grad_(False)
        x.requires_grad_()
        y.backward()

    x = fate(traced(framework, loss), "x")
    assert (x.grad.values, x.why) == ((3.0, 3.0), None)


def test_a_leaf_that_was_frozen_before_forward_only_does_not_require_grad(framework):
    x = framework.ones(2, requires_grad=True)

    def loss():
        x.requires_grad_(False)
        w = framework.ones(2, requires_grad=True)
        (x * w).sum().backward()

    assert fate(traced(framework, loss, named={"x": x}), "x").why == "requires_grad is False"
