"""A .grad that is zero because the program changed it after backward, or because passes cancel, not by the graph."""

import sys

import pytest

from gradcli.reporters.graph.tree import explanation
from tests.tracing.tracing import at, fate, traced

HERE = sys.modules[__name__]
FILLED = "backward filled .grad, and "


def leaf(f):
    return f.tensor([1.0, 2.0], requires_grad=True)


def in_place(f):
    x = leaf(f)
    (x * 2).sum().backward()
    x.grad.zero_()  # in place


def through_data(f):
    x = leaf(f)
    (x * 2).sum().backward()
    x.grad.data.zero_()  # through data


def through_a_view(f):
    x = leaf(f)
    (x * 2).sum().backward()
    x.grad.view(2, 1).fill_(0)  # through a view


def by_a_product(f):
    x = leaf(f)
    (x * 2).sum().backward()
    x.grad.detach().mul_(0)  # by a product


def by_zeros(f):
    x = leaf(f)
    (x * 2).sum().backward()
    x.grad = f.zeros(2)  # by zeros


def of_an_earlier_pass(f):
    x, w = leaf(f), leaf(f)
    (x * 2).sum().backward()
    x.grad.data.zero_()  # earlier
    (w * 2).sum().backward()


CHANGED = [
    (in_place, "in place", "zeroed it again"),
    (through_data, "through data", "zeroed it again"),
    (through_a_view, "through a view", "zeroed it again"),
    (by_a_product, "by a product", "made it zero with mul_()"),
    (by_zeros, "by zeros", "put a tensor of zeros in its place"),
    (of_an_earlier_pass, "earlier", "zeroed it again"),
]


@pytest.mark.parametrize(("program", "mark", "did"), CHANGED, ids=lambda value: getattr(value, "__name__", ""))
def test_the_line_that_made_a_gradient_zero_is_named(framework, program, mark, did):
    graph = traced(framework, lambda: program(framework))
    found = fate(graph, "x")
    assert at(found.cleared_at, HERE, f"# {mark}")
    assert found.why == f"{FILLED}{found.cleared_at} {did}; read .grad before that"
    assert found.symptom is None
    assert found.why in "\n".join(line.text for line in explanation(graph))


def test_passes_that_cancel_are_told(framework):
    def program():
        x = leaf(framework)
        (x * 2).sum().backward()
        (x * -2).sum().backward()

    found = fate(traced(framework, program), "x")
    assert found.why == "what the last backward pass added to .grad and what .grad held before it cancel"
    assert found.symptom is None


def zeroed_before_backward(f):
    x = leaf(f)
    (x * 2).sum().backward()
    x.grad.zero_()
    (x * 0).sum().backward()


def replaced_before_backward(f):
    x = leaf(f)
    (x * 2).sum().backward()
    x.grad = f.zeros(2)
    (x * 0).sum().backward()


def clipped(f):
    x = leaf(f)
    (x * 0).sum().backward()
    f.nn.utils.clip_grad_norm_([x], 1.0)


@pytest.mark.parametrize(
    "program", [zeroed_before_backward, replaced_before_backward, clipped], ids=lambda program: program.__name__
)
def test_what_the_program_did_is_no_cause_where_backward_itself_gave_zeros(framework, program):
    found = fate(traced(framework, lambda: program(framework)), "x")
    assert found.symptom == "zero-gradient"
    assert found.why.startswith("MulBackward0")


def replaced_by_numbers(f):
    x = leaf(f)
    (x * 2).sum().backward()
    x.grad = f.ones(2)


def filled_again(f):
    x = leaf(f)
    (x * 2).sum().backward()
    x.grad.data.zero_()
    (x * 2).sum().backward()


@pytest.mark.parametrize("program", [replaced_by_numbers, filled_again], ids=lambda program: program.__name__)
def test_a_gradient_that_is_not_zero_has_no_cause(framework, program):
    assert fate(traced(framework, lambda: program(framework)), "x").why is None
