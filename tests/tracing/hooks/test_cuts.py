"""Hooks of forward that return what no gradient flows through: the list says that they cut the graph."""

import pytest

from gradcli.reporters.graph.tree import change
from tests.tracing.tracing import traced


def detached(_, given):
    return (given[0].detach(),)


def detached_and_doubled(_, given):
    return (given[0].detach() * 2,)


def detached_in_place(_, given):
    given[0].detach_()


def detached_with_keywords(_, given, keywords):
    return (given[0].detach(),), keywords


def doubled(_, given):
    return (given[0] * 2,)


def nothing(*_):
    return None


CUT = "cut the graph"
FORWARD_PRE = [
    (detached, CUT),
    (detached_and_doubled, f"returned a new value: 2x; {CUT}"),
    (detached_in_place, CUT),
    (detached_with_keywords, CUT),
    (doubled, "returned a new value: 2x"),
    (nothing, "unchanged"),
]


@pytest.mark.parametrize(("hook", "effect"), FORWARD_PRE, ids=lambda value: getattr(value, "__name__", ""))
def test_a_hook_before_forward_that_cuts_the_graph_is_said_to(framework, hook, effect):
    def loss():
        net = framework.nn.Linear(2, 1)
        net.register_forward_pre_hook(hook, with_kwargs=hook is detached_with_keywords)
        x = framework.ones(2, requires_grad=True)
        return net(x * 2).sum()

    (call,) = traced(framework, loss).hooks
    assert call.effect == effect
    assert (" → " in change(call)) is (effect not in (CUT, "unchanged"))


@pytest.mark.parametrize(
    ("hook", "effect"),
    [
        (lambda m, given, out: out.detach(), CUT),
        (lambda m, given, out: out * 2, "returned a new value: 2x"),
        (lambda m, given, out: out, "unchanged"),
    ],
)
def test_a_hook_after_forward_that_cuts_the_graph_is_said_to(framework, hook, effect):
    def loss():
        net = framework.nn.Linear(2, 1)
        net.register_forward_hook(hook)
        x = framework.ones(2, requires_grad=True)
        return net(x).sum() + x.sum()

    (call,) = traced(framework, loss).hooks
    assert call.effect == effect


def test_a_hook_of_data_that_requires_no_grad_cuts_nothing(framework):
    def loss():
        net = framework.nn.Linear(2, 1)
        net.register_forward_pre_hook(detached)
        return net(framework.ones(2)).sum()

    (call,) = traced(framework, loss).hooks
    assert call.effect == "unchanged"


def test_a_hook_where_nothing_is_recorded_cuts_nothing(framework):
    def loss():
        net = framework.nn.Linear(2, 1)
        net.register_forward_pre_hook(doubled)
        x = framework.ones(2, requires_grad=True)
        with framework.no_grad():
            net(x)
        return (x * 2).sum()

    (call,) = traced(framework, loss).hooks
    assert call.effect == "returned a new value: 2x"
