"""The recorded graph: order, sharing, sizes, several passes, and graphs of great depth."""

import subprocess
import sys
import time
from pathlib import Path

import pytest

from gradcli.diagnosis.symptoms.rules import explain_trace
from gradcli.reporters.graph.drawings import dot, mermaid
from gradcli.reporters.graph.table import table
from gradcli.reporters.graph.tree import tree
from tests.tracing.tracing import fate, traced


def shared(framework):
    x = framework.tensor([1.0, 2.0], requires_grad=True)
    y = framework.exp(x)
    return (y * y + y).sum()


def test_ids_are_topological_and_every_node_runs_once(framework):
    graph = traced(framework, lambda: shared(framework))
    assert [node.id for node in graph.nodes] == list(range(len(graph.nodes)))
    assert all(edge.target is None or edge.target > node.id for node in graph.nodes for edge in node.edges)
    assert [node.name for node in graph.nodes].count("ExpBackward0") == 1
    assert all(node.executed for node in graph.nodes)
    assert [edge.slot for edge in graph.nodes[0].edges] == [0]


def test_two_traces_of_one_program_are_the_same_document(framework):
    first, second = (traced(framework, lambda: shared(framework)).to_dict() for _ in range(2))
    assert first == second


def test_gradients_in_and_out_are_exact(framework):
    def loss():
        x = framework.tensor([3.0], requires_grad=True)
        return (x * x * 5).sum()

    graph = traced(framework, loss)
    product = [node for node in graph.nodes if node.name == "MulBackward0"][-1]
    assert [g.values for g in product.gradients_in] == [(5.0,)]
    assert [g.values for g in product.gradients_out] == [(15.0,), (15.0,)]
    assert fate(graph, "x").grad.values == (30.0,)


def test_nodes_name_the_module_that_made_them(framework):
    nn = framework.nn
    net = nn.Sequential(nn.Linear(2, 3), nn.Sequential(nn.Tanh()))
    graph = traced(framework, lambda: net(framework.ones(4, 2)).sum())
    made = {node.name: node.module for node in graph.nodes if node.name != "AccumulateGrad"}
    assert made == {
        "SumBackward0": None,
        "TanhBackward0": "Sequential.1.0",
        "AddmmBackward0": "Sequential.0",
        "TBackward0": "Sequential.0",
    }


def test_functions_imported_by_name_are_seen_too(framework, monkeypatch):
    monkeypatch.setattr(sys.modules[__name__], "by_name", framework.autograd.grad, raising=False)

    def loss():
        x = framework.tensor([2.0], requires_grad=True)
        return by_name((x**2).sum(), x)  # noqa: F821

    graph = traced(framework, loss)
    assert (graph.passes, graph.error) == (1, None)
    assert sys.modules[__name__].by_name is framework.autograd.grad


def test_saved_tensors_are_counted_once_a_node(framework):
    def loss():
        x = framework.ones(10, dtype=framework.float64, requires_grad=True)
        y = framework.ones(10, dtype=framework.float64, requires_grad=True)
        return ((x * y) + (x * x)).sum()

    graph = traced(framework, loss)
    assert sorted(node.saved_bytes for node in graph.nodes if node.name == "MulBackward0") == [80, 160]
    assert graph.saved_bytes == 240


def test_several_passes_show_the_last_and_are_counted(framework):
    def loss():
        x = framework.tensor([2.0], requires_grad=True)
        (slope,) = framework.autograd.grad((x**3).sum(), x, create_graph=True)
        penalty = (slope**2).sum()
        penalty.backward()
        return penalty

    graph = traced(framework, loss)
    assert (graph.passes, graph.fills_grad) == (2, True)
    assert fate(graph, "x").grad.values == (288.0,)
    assert "2 backward passes, this is the last" in tree(graph)


def test_hooks_of_an_earlier_pass_are_not_put_into_the_last_graph(framework):
    def training():
        w = framework.tensor([1.0], requires_grad=True)
        for step in range(3):
            y = w * 2 if step == 2 else (w * 2 + w).sin()
            y.register_hook(lambda g: g * 10)
            y.sum().backward()

    graph = traced(framework, training)
    assert [call.effect for call in graph.hooks] == ["returned a new value: 10x"] * 3
    assert [call.node for call in graph.hooks] == [None, None, 1]
    assert len(graph.effects) == 1


def test_a_result_with_several_tensors_is_traced_from_all_of_them(framework):
    x = framework.tensor([1.0, 2.0], requires_grad=True)
    graph = traced(framework, lambda: {"a": x * 2, "b": [x.sum()]})
    assert fate(graph, "x") if graph.tensors else True
    assert x.grad.tolist() == [3.0, 3.0]
    roots = {node.id for node in graph.nodes} - {e.target for node in graph.nodes for e in node.edges}
    assert len(roots) == 2


def test_a_cotangent_can_be_given(framework):
    x = framework.tensor([1.0, 2.0], requires_grad=True)
    traced(framework, lambda: x * 2, cotangent=lambda root: framework.tensor([10.0, -1.0]))
    assert x.grad.tolist() == [20.0, -2.0]


def test_complex_gradients_are_recorded(framework):
    def loss():
        z = framework.tensor([1 + 2j], requires_grad=True)
        return (z * z.conj()).real.sum()

    graph = traced(framework, loss)
    assert fate(graph, "z").grad.values == (2 + 4j,)
    assert graph.to_dict()["tensors"][0]["grad"]["values"] == [[2.0, 4.0]]


@pytest.mark.sampled(1)
@pytest.mark.parametrize("depth", [5_000])
def test_a_deep_chain_neither_recurses_nor_hangs(framework, depth):
    def loss():
        x = framework.tensor([1.0], dtype=framework.float64, requires_grad=True)
        y = x
        for _ in range(depth):
            y = y + 1
        return y.sum()

    started = time.perf_counter()
    graph = explain_trace(traced(framework, loss))
    assert len(graph.nodes) == depth + 2
    for text in (tree(graph), table(graph), dot(graph), mermaid(graph)):
        assert "AddBackward0" in text
    assert f"{depth + 2 - 200} more nodes" in tree(graph)
    assert max(map(len, tree(graph).splitlines())) < 200
    assert fate(graph, "x").grad.values == (1.0,)
    assert time.perf_counter() - started < 60


DEEP = """
import importlib, sys
from gradcli.tracing.passes import trace_call
framework = importlib.import_module(sys.argv[1])


def loss():
    y = framework.tensor([1.0], requires_grad=True)
    for _ in range(10_000):
        y = y + 1
    return y.sum()


print(len(trace_call(framework, loss, target="deep", backend="any").nodes))
"""


@pytest.mark.sampled(1)
@pytest.mark.skipif(sys.platform == "win32", reason="the size of the stack is set by ulimit")
def test_letting_go_of_a_deep_graph_needs_little_stack(framework):
    """Nodes freed in the wrong order take the stack of a chain as long as theirs: see GraphPass.release."""
    command = [sys.executable, "-c", DEEP, framework.__name__]
    done = subprocess.run(
        ["/bin/sh", "-c", 'ulimit -s 512 && exec "$@"', "sh", *command],
        cwd=Path(__file__).parents[2], capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout.strip()) == (0, "10002"), done.stderr
