"""The ledger of memory: what nodes and modules saved, what was saved twice, what is left and held, and the peak."""

import gc
import importlib
import json
import re
import sys
import weakref

import pytest

from gradcli import engine
from gradcli.cli.arguments.memory_option import budget_from
from gradcli.errors import UsageError
from gradcli.reporters.graph.json_document import trace_document
from gradcli.reporters.graph.memory import memory_lines
from gradcli.runner.trace import trace_target
from gradcli.traces.memory import ACTIVATION, DATA, PARAMETER
from gradcli.tracing.sites import shown_path
from tests.tracing.tracing import fate, traced

N = 100
BYTES = 8 * N


def leaf(framework):
    return framework.linspace(0.1, 1.0, N, dtype=framework.float64).requires_grad_()


def ledger(framework, run):
    graph = traced(framework, run, memory=True)
    assert graph.error is None, graph.error
    return graph, graph.memory


def names(graph, node):
    return {saved.name for saved in graph.memory.saved if saved.node == node}


# --- what was saved


def test_it_is_kept_only_when_asked_for(framework):
    x = leaf(framework)
    assert traced(framework, lambda: framework.exp(x).sum()).memory is None


def test_activations_parameters_and_data_are_told_apart_and_named(framework):
    x = leaf(framework)

    def loss():
        weights = framework.linspace(0.0, 2.0, N, dtype=framework.float64)
        return (framework.exp(x) * weights).sum() + (x * x).sum()

    graph, memory = ledger(framework, loss)
    assert (memory.total(ACTIVATION), memory.total(PARAMETER), memory.total(DATA)) == (BYTES, BYTES, BYTES)
    assert {storage.label for storage in memory.storages} == {None, "x", "weights"}
    exp = next(node for node in graph.nodes if node.name == "ExpBackward0")
    assert memory.by_node() == {exp.id: BYTES}
    assert names(graph, exp.id) == {"result"}


def test_a_storage_that_two_nodes_saved_counts_once_and_for_the_first_of_them(framework):
    x = leaf(framework)

    def loss():
        e = framework.exp(x)
        return (e * framework.sin(e)).sum()

    graph, memory = ledger(framework, loss)
    exp = next(node.id for node in graph.nodes if node.name == "ExpBackward0")
    assert memory.total(ACTIVATION) == 2 * BYTES  # exp(x), and sin of it
    (shared,) = memory.shared()
    assert len(memory.storages[shared].nodes) == 3
    assert memory.storages[shared].nodes[0] == exp
    assert memory.copies() == ()


def test_a_view_keeps_the_whole_of_its_memory(framework):
    x = leaf(framework)

    def loss():
        first = (x + x)[:1]
        return (first * first).sum()

    _, memory = ledger(framework, loss)
    (saved,) = {saved.bytes for saved in memory.saved if memory.storages[saved.storage].kind == ACTIVATION}
    assert (saved, memory.total(ACTIVATION)) == (8, BYTES)


@pytest.mark.sampled(6)
@pytest.mark.parametrize(
    ("write", "groups"),
    [
        (lambda f, e: e * e.clone(), 1),
        (lambda f, e: e * e, 0),
        (lambda f, e: f.sin(e) * f.sin(e), 1),
        (lambda f, e: f.sin(e) * f.cos(e), 0),
        (lambda f, e: f.sin(e) * f.zeros_like(e) + f.cos(e) * f.zeros_like(e), 0),  # equal by chance: one value each
        (lambda f, e: e * e.reshape(10, 10).reshape(N), 0),  # a view is no copy
    ],
)
def test_values_that_are_saved_in_two_places_are_found(framework, write, groups):
    x = leaf(framework)
    _, memory = ledger(framework, lambda: write(framework, framework.exp(x)).sum())
    assert len(memory.copies()) == groups
    assert all(len(group) == 2 for group in memory.copies())


def test_modules_are_charged_for_what_they_saved_first(framework):
    class Net(framework.nn.Module):
        def __init__(self):
            super().__init__()
            self.wide = framework.nn.Sequential(framework.nn.Linear(4, 8), framework.nn.Tanh())
            self.narrow = framework.nn.Linear(8, 2)

        def forward(self, t):
            return framework.exp(self.narrow(self.wide(t)))

    net = Net()
    data = framework.ones(5, 4)

    def loss():
        batch = data
        return net(batch).sum()

    graph, memory = ledger(framework, loss)
    assert memory.by_module(graph.nodes) == {"Net.wide.1": 5 * 8 * 4, "Net": 5 * 2 * 4}
    document = json.loads(trace_document(graph))["memory"]
    assert document["modules"] == [{"module": "Net.wide.1", "bytes": 160}, {"module": "Net", "bytes": 40}]


# --- what is left

OWNERS = """
HISTORY = []


class Store:
    last = None

    def __init__(self):
        self.kept = {}
"""


@pytest.fixture
def owners(tmp_path, monkeypatch):
    """A module that is imported now: what was set aside for speed before is not asked for what it refers to."""
    (tmp_path / "owners.py").write_text(OWNERS)
    monkeypatch.syspath_prepend(tmp_path)
    yield importlib.import_module("owners")
    del sys.modules["owners"]


def test_who_holds_what_was_saved_is_named(framework, owners):
    Store = owners.Store

    class Keeping(framework.nn.Module):
        def forward(self, t):
            self.last = framework.exp(t)
            return self.last.sum()

    store, net, x = Store(), Keeping(), leaf(framework)

    def value():
        kept, shown, viewed, dropped = (framework.exp(x * scale) for scale in (1, 2, 3, 4))
        store.kept["first"] = [kept]
        owners.HISTORY.append(shown)
        store.view = viewed.detach()[:3]
        Store.last = framework.exp(x * 5)
        return (kept + shown + viewed + dropped + Store.last).sum() + net(x)

    memory = ledger(framework, lambda: value().backward())[1]
    found = {held.holder: held.bytes for held in memory.held}
    assert found == dict.fromkeys(
        ("`kept` of a Store", f"`HISTORY`, a global of {shown_path(owners.__file__)}", "`view` of a Store",
         "`Store.last`", "`last` of a Keeping"), BYTES,
    )  # fmt: skip
    assert {held.by for held in memory.held} == {"name"}


def test_a_variable_of_a_running_function_holds_and_one_that_has_ended_does_not(framework):
    x = leaf(framework)

    def ended():
        inner = framework.exp(x)
        return inner.sum()

    def running():
        outer = framework.exp(x)
        outer.sum().backward()

    assert ledger(framework, ended)[1].held == ()
    (held,) = ledger(framework, running)[1].held
    assert held.holder.startswith("`outer` in running (")
    assert held.bytes == BYTES


def test_attributes_of_ctx_stay_and_saved_tensors_do_not(framework):
    class Kept(framework.autograd.Function):
        @staticmethod
        def forward(ctx, t):
            ctx.twice = t * 2
            return t * t

        @staticmethod
        def backward(ctx, g):
            return g * ctx.twice

    class Saved(framework.autograd.Function):
        @staticmethod
        def forward(ctx, t):
            ctx.save_for_backward(t * 2)
            return t * t

        @staticmethod
        def backward(ctx, g):
            (twice,) = ctx.saved_tensors
            return g * twice

    x = leaf(framework)
    for kind, count in ((Kept, 1), (Saved, 0)):
        graph, memory = ledger(framework, lambda kind=kind: kind.apply(x).sum())
        assert memory.total(ACTIVATION) == BYTES
        assert [held.by for held in memory.held] == ["ctx"] * count
        assert any("save_for_backward would free it" in line for line in memory_lines(graph)) == bool(count)


@pytest.mark.sampled(1)
def test_a_retained_graph_holds_all_it_saved(framework):
    x = leaf(framework)

    def step(**options):
        value = (framework.sin(framework.exp(x)) ** 2).sum()
        value.backward(**options)

    kept = ledger(framework, lambda: step(retain_graph=True))[1]
    freed = ledger(framework, step)[1]
    assert [(held.by, held.bytes) for held in kept.held] == [("graph", kept.total(ACTIVATION))]
    assert freed.held == ()


# --- the most at one time


def test_the_peak_of_a_chain_is_what_was_saved_and_the_gradients_beside_it(framework):
    x = leaf(framework)

    def loss():
        return framework.exp(x).sum()

    graph, memory = ledger(framework, loss)
    peak = memory.peak
    assert graph.nodes[peak.node].name == "ExpBackward0"
    assert (peak.fixed, peak.saved, peak.accumulated) == (BYTES, BYTES, 0)
    assert BYTES <= peak.gradients <= 2 * BYTES + 16  # what it gave, beside the ones it was given, expanded or not
    again = ledger(framework, loss)[1].peak
    assert again.accumulated == BYTES  # x.grad is there before


def test_the_peak_falls_with_what_a_node_has_freed(framework):
    """A deep chain needs what it saved and a gradient or two, not a gradient for each node."""
    x = leaf(framework)

    def loss():
        value = x
        for _ in range(20):
            value = framework.sin(value)
        return value.sum()

    memory = ledger(framework, loss)[1]
    assert memory.total(ACTIVATION) == 19 * BYTES
    assert memory.peak.saved >= 18 * BYTES
    assert memory.peak.gradients <= 3 * BYTES


def test_the_budget_is_a_symptom_only_when_it_is_exceeded():
    def loss():
        x = engine.ones(1000, dtype=engine.float64).requires_grad_()
        return engine.exp(x).sum()

    small, large = (trace_target(loss, budget=budget) for budget in (20_000, 10**6))
    assert small.symptoms == ("memory-over-budget",)
    assert large.symptoms == ()
    assert any(re.search(r"budget +20 kB: the peak is .* above the budget", line) for line in memory_lines(small))
    assert any(re.search(r"budget +1 MB: the peak is .* below the budget", line) for line in memory_lines(large))
    document = json.loads(trace_document(small))["memory"]
    assert document["over_budget"] is True
    assert document["peak"]["bytes"] > document["budget"] == 20_000


@pytest.mark.parametrize(
    ("text", "size"),
    [("500MB", 500 * 10**6), ("1.5GiB", 3 * 2**29), ("64k", 64_000), ("1000000", 10**6), ("2e9", 2 * 10**9),
     ("10 KiB", 10_240), ("", None), (None, None)],
)  # fmt: skip
def test_sizes_are_read_as_people_write_them(text, size):
    assert budget_from(text) == size


@pytest.mark.parametrize("text", ["much", "5 apples", "-3MB", "0x10"])
def test_what_is_no_size_is_refused(text):
    with pytest.raises(UsageError, match="expected a size such as 500MB"):
        budget_from(text)


# --- it changes nothing


def test_gradients_are_the_same_and_nothing_is_kept_alive(framework):
    x = leaf(framework)
    alive = []

    def step():
        e = framework.exp(x)
        value = (e * framework.sin(e)).sum()
        alive.extend(map(weakref.ref, (e, value)))
        value.backward()

    step()
    plain, x.grad = x.grad.tolist(), None
    graph = traced(framework, step, memory=True)
    assert x.grad.tolist() == plain
    assert fate(graph, "x").grad is not None
    gc.collect()
    assert [reference() for reference in alive] == [None] * 4


def test_what_was_saved_through_hooks_is_not_read_because_that_would_run_them(framework):
    x, calls = leaf(framework), []

    def unpack(kept):
        calls.append(1)
        return kept

    def step():
        with framework.autograd.graph.saved_tensors_hooks(lambda t: t, unpack):
            inside = framework.exp(x) * framework.sin(x)
        framework.exp(inside).sum().backward()

    step()
    plain = len(calls)
    calls.clear()
    graph, memory = ledger(framework, step)
    assert len(calls) == plain > 0
    assert (memory.uncounted, memory.total(ACTIVATION)) == (3, BYTES)
    outer = next(node for node in graph.nodes if node.name == "ExpBackward0")
    assert memory.by_node() == {outer.id: BYTES}
    assert any(line.strip().startswith("not counted") for line in memory_lines(graph))
