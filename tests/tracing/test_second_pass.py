"""A backward pass through a graph that an earlier one freed: the line of that one is named."""

import sys

import pytest

from tests.tracing.tracing import line_of, traced

HERE = sys.modules[__name__]


def the_same_twice(f):
    x = f.ones(2, requires_grad=True)
    y = (x * x).sum()
    y.backward()  # the first of two
    y.backward()


def the_second_of_three(f):
    x = f.ones(2, requires_grad=True)
    y = (x * x).sum()
    y.backward(retain_graph=True)
    y.backward()  # the second of three
    y.backward(retain_graph=True)


def a_part_that_two_losses_share(f):
    x = f.ones(2, requires_grad=True)
    shared = x * x
    one, other = (shared * 2).sum(), (shared * 3).sum()
    one.backward()  # the loss that shares
    ((x * 5) ** 2).sum().backward()
    other.backward()


def by_autograd_grad(f):
    x = f.ones(2, requires_grad=True)
    y = (x * x).sum()
    f.autograd.grad(y, x)  # by autograd.grad
    y.backward()


PROGRAMS = [
    (the_same_twice, "# the first of two"),
    (the_second_of_three, "# the second of three"),
    (a_part_that_two_losses_share, "# the loss that shares"),
    (by_autograd_grad, "# by autograd.grad"),
]


@pytest.mark.parametrize(("program", "mark"), PROGRAMS, ids=lambda value: getattr(value, "__name__", ""))
def test_the_line_of_the_pass_that_freed_the_graph_is_named(framework, program, mark):
    graph = traced(framework, lambda: program(framework))
    assert "second time" in graph.error
    assert graph.freed_at.line == line_of(HERE, mark)
    assert graph.error_hint.startswith(f"the backward pass at {graph.freed_at} freed what this graph had saved")


def test_another_error_of_backward_is_not_put_down_to_an_earlier_pass(framework):
    def loss():
        x = framework.ones(2, requires_grad=True)
        y = x * x
        y.sum().backward()
        z = x * x

        def fail(_):
            raise ValueError("no")

        z.register_hook(fail)
        z.sum().backward()

    graph = traced(framework, loss)
    assert graph.freed_at is None
    assert "freed" not in graph.error_hint
