"""What hooks and the modules that they are on are called, where several have the same class, name or line."""

import re
import sys

import pytest

from gradcli.reporters.graph.tree import tree
from tests.tracing.tracing import line_of, traced

HERE = sys.modules[__name__]


def seen(*_):
    return None


def network(f):
    class Net(f.nn.Module):
        def __init__(self):
            super().__init__()
            self.l1, self.l2 = f.nn.Linear(2, 2), f.nn.Linear(2, 1)

        def forward(self, x):
            return self.l2(self.l1(x))

    return Net()


def parts_of_a_module(f):
    net = network(f)
    net.register_full_backward_hook(seen)
    net.l1.register_full_backward_hook(seen)
    net.l2.register_full_backward_hook(seen)
    net(f.ones(2, requires_grad=True)).sum().backward()


def one_of_its_class(f):
    only = f.nn.Linear(2, 1)
    only.register_full_backward_hook(seen)
    only(f.ones(2, requires_grad=True)).sum().backward()


def parts_of_a_sequence(f):
    chain = f.nn.Sequential(f.nn.Linear(2, 2), f.nn.Linear(2, 1))
    chain[1].register_full_backward_hook(seen)
    chain[0].register_full_backward_hook(seen)
    chain(f.ones(2, requires_grad=True)).sum().backward()


def modules_without_a_parent(f):
    first, second = f.nn.Linear(2, 2), f.nn.Linear(2, 1)
    second.register_full_backward_hook(seen)
    first.register_full_backward_hook(seen)
    second(first(f.ones(2, requires_grad=True))).sum().backward()


def parts_of_two_modules(f):
    left, right = network(f), network(f)
    left.l1.register_full_backward_hook(seen)
    right.l1.register_full_backward_hook(seen)
    x = f.ones(2, requires_grad=True)
    left(x).sum().backward()
    right(x).sum().backward()


OWNERS = [
    (parts_of_a_module, ["l2", "l1", "Net"]),
    (one_of_its_class, ["Linear"]),
    (parts_of_a_sequence, ["chain.1", "chain.0"]),
    (modules_without_a_parent, ["second", "first"]),
    (parts_of_two_modules, ["left.l1", "right.l1"]),
]


@pytest.mark.parametrize(("program", "owners"), OWNERS, ids=lambda value: getattr(value, "__name__", ""))
def test_a_module_of_several_of_its_class_is_named_by_its_path(framework, program, owners):
    assert [call.owner for call in traced(framework, lambda: program(framework)).hooks] == owners


def test_a_silent_hook_names_its_module_by_its_path(framework):
    def loss():
        net = network(framework)
        net.l1.register_full_backward_hook(seen)
        net.l2.forward(framework.ones(2, requires_grad=True)).sum().backward()

    assert " on l1 did not fire" in traced(framework, loss).lints[0]


def scaled(factor, name=None):
    def hook(g):
        return g * factor

    if name is not None:
        hook.__name__ = name
    return hook


def test_a_name_that_was_set_is_used(framework):
    def loss():
        x = framework.ones(2, requires_grad=True)
        x.register_hook(scaled(2, "clip"))
        x.register_hook(scaled(3))
        qualified = scaled(4)
        qualified.__qualname__ = "Trainer.rescale"
        x.register_hook(qualified)
        x.sum().backward()

    assert [call.function for call in traced(framework, loss).hooks] == ["clip", "hook", "Trainer.rescale"]


def test_hooks_that_one_function_makes_are_told_by_the_line_that_registers_them(framework):
    def loss():
        x = framework.ones(2, requires_grad=True)
        x.register_hook(scaled(2))  # the first
        x.register_hook(scaled(3))  # the second
        x.sum().backward()

    graph = traced(framework, loss)
    lines = [line_of(HERE, mark) for mark in ("# the first", "# the second")]
    assert [call.registered_at.line for call in graph.hooks] == lines
    told = [rf"`hook` at \S+ \(registered at \S+:{line}\) returned a new value" for line in lines]
    assert re.search(rf"is scaled by 6 because {told[0]} \(2x\) and {told[1]} \(3x\)$", graph.effects[0])
    assert all(f", registered at {call.registered_at}" in tree(graph) for call in graph.hooks)


def test_hooks_that_one_line_registers_are_not_told_apart(framework):
    def loss():
        x = framework.ones(2, requires_grad=True)
        for factor in (2, 2):
            x.register_hook(scaled(factor))
        x.register_hook(seen)
        x.register_hook(seen)
        x.sum().backward()

    graph = traced(framework, loss)
    assert [call.registered_at for call in graph.hooks] == [None] * 4
    assert "`hook` at" in graph.effects[0]
    assert "fired twice" in graph.effects[0]
