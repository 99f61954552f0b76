"""What a program returns, and the results that are to keep their gradients: which pass is shown, and what it missed."""

import re
import sys

import pytest

from gradcli.reporters.graph.wording import headline
from tests.tracing.tracing import at, fate, grads, traced

HERE = sys.modules[__name__]


def leaves(f):
    return f.tensor([1.0, 2.0], requires_grad=True), f.tensor([3.0, 4.0], requires_grad=True)


# --- the tensor that backward ran from
def leaf_of_the_pass(f):
    w = f.ones((), requires_grad=True)
    w.backward()
    return w


def loss_made_a_leaf(f):
    x, _ = leaves(f)
    loss = x.detach().sum().requires_grad_()
    loss.backward()
    return {"loss": loss, "x": x}


@pytest.mark.parametrize("program", [leaf_of_the_pass, loss_made_a_leaf], ids=lambda program: program.__name__)
def test_a_leaf_that_backward_ran_from_and_that_is_returned_is_the_same(framework, program):
    graph = traced(framework, lambda: program(framework))
    assert graph.result_in_pass
    assert graph.lints == ()


def test_another_leaf_than_the_one_that_backward_ran_from_is_told(framework):
    def program():
        w, other = framework.ones((), requires_grad=True), framework.ones((), requires_grad=True)
        w.backward()
        return other

    (lint,) = traced(framework, program).lints
    assert lint.startswith("the graph above is that of the backward pass from w at ")
    assert lint.endswith("not of the returned other")


def test_the_heading_is_that_of_the_root_of_the_graph(framework):
    def interior(names):
        x = framework.tensor([1.0, 2.0], requires_grad=True)
        y = x * 2
        total = (y * y).sum() if names else None
        ((y * y).sum() if total is None else total).backward()
        return y

    named, unnamed = (headline(traced(framework, lambda names=names: interior(names)))[0] for names in (True, False))
    assert named == "total = 20"
    assert re.fullmatch(r"result of SumBackward0 at \S+ = 20", unnamed)


def test_the_heading_is_that_of_the_result_where_backward_ran_from_it(framework):
    def program():
        x = framework.tensor([1.0, 2.0], requires_grad=True)
        loss = (x * x).sum()
        loss.backward()
        return loss

    assert headline(traced(framework, program))[0] == "loss = 5"


# --- leaves returned beside results
def test_a_leaf_returned_beside_a_loss_is_no_root(framework):
    def program():
        x, _ = leaves(framework)
        return (x * 2).sum(), x

    assert grads(traced(framework, program)) == {"x": [2.0, 2.0]}


def test_every_computed_result_is_a_root(framework):
    def program():
        x, _ = leaves(framework)
        return (x * 2).sum(), {"more": [(x * 3).sum(), x]}

    assert grads(traced(framework, program)) == {"x": [5.0, 5.0]}


def test_leaves_returned_alone_are_roots(framework):
    assert grads(traced(framework, lambda: leaves(framework))) == {"result[0]": [1.0, 1.0], "result[1]": [1.0, 1.0]}


# --- results that were to keep their gradients
def retained_and_detached(f):
    x, w = leaves(f)
    h = x * 2
    h.retain_grad()
    k = h.detach()  # cut
    (k * w).sum().backward()


def test_a_retained_result_is_cut_where_it_was_detached(framework):
    graph = traced(framework, lambda: retained_and_detached(framework))
    found = fate(graph, "h")
    assert found.symptom == "detached"
    assert found.why.endswith("takes it out of the graph with detach()")
    assert all(at(cut.site, HERE, "# cut") and set(cut.leaves) == {"x", "h"} for cut in graph.cuts)


def retained_and_used_in_vain(f):
    x, w = leaves(f)
    h = x * 2
    h.retain_grad()
    h.sum()  # in vain
    (x * w).sum().backward()


def test_a_retained_result_used_in_vain_is_told_by_its_use(framework):
    graph = traced(framework, lambda: retained_and_used_in_vain(framework))
    assert at(fate(graph, "h").used_at, HERE, "# in vain")
    assert fate(graph, "h").why.endswith("uses it, but no traced operation leads from that line to the result")


def test_a_retained_result_that_nothing_used_is_told_so(framework):
    def program():
        x, w = leaves(framework)
        h = x.view(2)
        h.retain_grad()
        (x * w).sum().backward()

    assert (
        fate(traced(framework, program), "h").why == "no path leads from the result to h: no traced operation used it"
    )
