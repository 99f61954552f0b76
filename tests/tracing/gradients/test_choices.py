"""Indices and masks have no gradient: a gradient is lost where else it was, if it was lost there too."""

import pytest

from tests.tracing.tracing import fate, traced


def nearest(f, detached):
    x = f.tensor([[0.1, 0.2], [1.0, 2.0]], requires_grad=True)
    book = f.tensor([[0.0, 0.0], [1.0, 1.0], [2.0, 2.0]], requires_grad=True)
    places = ((x[:, None] - book) ** 2).sum(-1).argmin(1)
    chosen = x + (book[places] - x).detach() if detached else x * 2 + book[places]
    return (chosen**2).sum()


def chosen_alone(f):
    book = f.tensor([0.3, 0.1], requires_grad=True)
    x = f.tensor([1.0, 2.0], requires_grad=True)
    return (x[book.argmin()] * 3).sum()


def above(f, turned):
    x = f.tensor([1.0, 2.0], requires_grad=True)
    tau = f.nn.Parameter(f.tensor([1.5, 1.5]))
    return (x * (tau <= x.detach())).sum() if turned else (x * (x.detach() > tau)).sum()


def test_a_detach_is_named_before_the_indices_that_were_computed_from_the_same_values(framework):
    graph = traced(framework, lambda: nearest(framework, True))
    assert "takes it out of the graph with detach()" in fate(graph, "book").why
    assert fate(traced(framework, lambda: nearest(framework, False)), "book").why is None


def test_the_indices_are_named_where_nothing_else_was_lost(framework):
    graph = traced(framework, lambda: chosen_alone(framework))
    assert "takes it out of the graph with argmin()" in fate(graph, "book").why


@pytest.mark.parametrize(("turned", "sign"), [(False, "`>`"), (True, "`<=`")])
def test_a_comparison_is_named_as_the_line_has_it(framework, turned, sign):
    graph = traced(framework, lambda: above(framework, turned))
    assert f"takes it out of the graph with {sign}: True and False" in fate(graph, "tau").why
