"""The wrong node among many: each backward is checked against its own forward, and only the wrong one is named."""

import random
import sys

import pytest

import gradcli
from gradcli.runner.trace import trace_target
from tests.tracing.tracing import at

HERE = sys.modules[__name__]


def scaled(gradients):
    return tuple(1.01 * g for g in gradients)


def negated(gradients):
    return tuple(-g for g in gradients)


def swapped(gradients):
    return gradients[::-1]


def clipped(gradients):
    return tuple(g.clamp(-0.1, 0.1) for g in gradients)


def one_left_out(gradients):
    return gradients[0], None


def off_in_one_entry(gradients):
    first = gradients[0].clone()
    first[0, 0] = first[0, 0] * 1.02
    return first, gradients[1]


def short_of_a_term(gradients):
    return gradients[0] - 0.01 * gradients[1], gradients[1]


def right(gradients):
    return gradients


SPOILT = [scaled, negated, swapped, clipped, one_left_out, off_in_one_entry, short_of_a_term]


def gates(f):
    """A Function of two operands, whose backward is spoilt by a function that it is given."""

    class Gate(f.autograd.Function):
        @staticmethod
        def forward(ctx, a, b, spoil):
            ctx.save_for_backward(a, b)
            ctx.spoil = spoil
            return a * f.sigmoid(b)

        @staticmethod
        def backward(ctx, g):
            a, b = ctx.saved_tensors
            s = f.sigmoid(b)
            return (*ctx.spoil((g * s, g * a * s * (1 - s))), None)

    return Gate


def network(f, depth, wrong, spoil):
    """`depth` blocks in a row, the Function of one of them spoilt."""
    gate = gates(f)

    class Block(f.nn.Module):
        def __init__(self, change):
            super().__init__()
            self.a, self.b = f.nn.Linear(3, 3), f.nn.Linear(3, 3)
            self.change = change

        def forward(self, x):
            return x + gate.apply(self.a(x), self.b(x), self.change)  # the call

    class Net(f.nn.Module):
        def __init__(self):
            super().__init__()
            self.blocks = f.nn.ModuleList([Block(spoil if n == wrong else right) for n in range(depth)])

        def forward(self, x):
            for block in self.blocks:
                x = block(x)
            return x

    f.manual_seed(2)
    return Net(), f.randn(2, 3)


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("every_node", "right_ones"), [(False, 29), (True, 120)])
def test_one_of_thirty_modules_that_is_off_by_one_percent_is_named(framework, every_node, right_ones):
    net, x = network(framework, 30, 17, scaled)
    graph = trace_target(lambda: net(x).sum(), check=True, every_node=every_node)
    assert [(node.name, node.module, node.finding) for node in graph.wrong_nodes] == [
        ("Gate", "Net.blocks.17", "wrong-factor")
    ]
    assert at(graph.wrong_nodes[0].site, HERE, "# the call")
    assert graph.node_check.passed == right_ones  # of operations: two linear maps, a gate and an addition each, a sum
    assert graph.symptoms == ("wrong-node",)
    assert graph.lints[0].startswith("the backward of Gate at ")
    assert " in Net.blocks.17 is wrong [wrong-factor" in graph.lints[0]
    assert graph.nodes[graph.wrong_nodes[0].node].name == "GateBackward"
    assert graph.nodes[graph.wrong_nodes[0].node].module == "Net.blocks.17"


@pytest.mark.sampled(2)
@pytest.mark.parametrize("spoil", SPOILT, ids=lambda spoil: spoil.__name__)
def test_every_kind_of_mistake_is_found_in_its_module_alone(framework, spoil):
    net, x = network(framework, 3, 1, spoil)
    graph = trace_target(lambda: net(x).sum(), check=True)
    assert [node.module for node in graph.wrong_nodes] == ["Net.blocks.1"]
    assert graph.node_check.passed == 2


def test_right_functions_are_not_named(framework):
    net, x = network(framework, 3, 0, right)
    graph = trace_target(lambda: net(x).sum(), check=True)
    assert (graph.wrong_nodes, graph.symptoms, graph.lints) == ((), (), ())
    assert graph.node_check == gradcli.traces.NodeCheck(passed=3)


def test_a_backward_that_clips_its_gradient_is_wrong(framework):
    f = framework

    class Clip(f.autograd.Function):
        @staticmethod
        def forward(ctx, x, limit):
            ctx.limit = limit
            return x * 1.0

        @staticmethod
        def backward(ctx, g):
            return g.clamp(-ctx.limit, ctx.limit), None

    x = f.tensor([2.0, -3.0, 5.0], requires_grad=True)
    (node,) = trace_target(lambda: (10 * Clip.apply(x, 1.0)).sum(), check=True).wrong_nodes
    assert (node.name, node.finding) == ("Clip", "nonlinear-backward")


def test_nothing_is_checked_unasked(framework):
    net, x = network(framework, 2, 0, scaled)
    graph = trace_target(lambda: net(x).sum())
    assert (graph.wrong_nodes, graph.node_check, graph.symptoms) == ((), None, ())


@pytest.mark.sampled(1)
def test_the_gradients_are_those_of_a_run_without_the_check(framework):
    net, x = network(framework, 3, 1, scaled)
    net(x).sum().backward()
    plain = [p.grad.numpy().tobytes() for p in net.parameters()]
    net.zero_grad()
    trace_target(lambda: net(x).sum(), check=True, every_node=True)
    assert [p.grad.numpy().tobytes() for p in net.parameters()] == plain


@pytest.mark.sampled(1)
def test_operations_of_the_framework_are_checked_on_request(framework):
    net, x = network(framework, 2, 0, scaled)
    graph = trace_target(lambda: net(x).sum(), check=True, every_node=True)
    assert [node.module for node in graph.wrong_nodes] == ["Net.blocks.0"]
    assert graph.node_check.passed == 8  # in each block two linear maps, a gate and an addition, and the sum
    assert graph.node_check.undecided == ()


def test_a_wrong_rule_of_the_framework_is_named(monkeypatch):
    from gradcli import engine

    x = engine.tensor([0.3, 0.7], requires_grad=True)
    kind = type(engine.tanh(x).grad_fn)
    rule = kind._vjp

    def spoilt(node, g):
        return rule(node, g) * 1.01

    monkeypatch.setattr(kind, "_vjp", spoilt)
    graph = trace_target(lambda: (engine.tanh(engine.exp(x)) * 2).sum(), check=True, every_node=True)
    assert [(node.name, node.finding) for node in graph.wrong_nodes] == [("tanh", "wrong-factor")]
    assert graph.node_check.passed == 3
    assert trace_target(lambda: engine.tanh(x).sum(), check=True).wrong_nodes == ()


def test_a_function_without_a_verdict_is_said_to_have_none(framework):
    calls = []

    class Once(framework.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            calls.append(x)
            if len(calls) > 1:
                raise ValueError("called again")
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g * 2

    x = framework.tensor([0.3, 0.7], requires_grad=True)
    graph = trace_target(lambda: Once.apply(x).sum(), check=True)
    assert graph.wrong_nodes == ()
    assert graph.node_check.undecided == ("Once",)
    assert graph.lints == ("no verdict on the backward of Once: forward raised ValueError: called again",)


@pytest.mark.sampled(1)
def test_each_reason_for_which_there_is_no_verdict_is_told_once(framework):
    class Expanded(framework.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.sum(1)

        @staticmethod
        def backward(ctx, g):
            raise ValueError("first line\nsecond line")

    class Again(Expanded):
        pass

    class Noisy(framework.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * random.SystemRandom().random()

        @staticmethod
        def backward(ctx, g):
            return g

    def program():
        x = framework.ones(2, 3, requires_grad=True)
        (Expanded.apply(x) + Again.apply(x) + Noisy.apply(x.sum())).sum().backward()

    told = [lint for lint in trace_target(program, check=True).lints if lint.startswith("no verdict")]
    assert told == [
        "no verdict on the backward of Expanded, Again: backward raised ValueError: first line",
        "no verdict on the backward of Noisy: forward's values are noisy or coarsely rounded, so no step size gives an "
        "error bound small enough to decide",
    ]


@pytest.mark.sampled(1)
def test_a_function_given_as_the_target_is_checked_as_one_that_is_called(framework):
    def function(factor):
        class Scaled(framework.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                return x * 3

            @staticmethod
            def backward(ctx, g):
                return g * factor

        return Scaled

    x = framework.tensor([0.3, 0.7], requires_grad=True)
    wrong = trace_target(function(2), (x,), check=True)
    assert [(node.name, node.finding, node.node) for node in wrong.wrong_nodes] == [("Scaled", "wrong-factor", 0)]
    assert wrong.symptoms == ("wrong-node",)
    right = trace_target(function(3), (x,), check=True)
    assert (right.wrong_nodes, right.node_check.passed, right.symptoms) == ((), 1, ())
    assert trace_target(function(2), (x,)).symptoms == ()
