"""A backward pass on bare arrays is the recorded pass without the record, and writes to nobody's memory but its own."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gradcli import engine as torch
from gradcli.engine.backward.ownership import held_once
from gradcli.engine.catalogue import Operation, operations
from gradcli.engine.graph import Node
from gradcli.engine.tensor import Tensor


def gradients(row: Operation, samples: Any, kind: Any, *, create_graph: bool) -> list[Any]:
    source = np.random.default_rng(1)
    tensors = [torch.tensor(sample.draw(source), dtype=kind, requires_grad=True) for sample in samples]
    result = row.call(torch, *tensors)
    outputs = [y for y in (result if isinstance(result, (tuple, list)) else [result]) if y.requires_grad]
    seeds = [torch.tensor(source.normal(size=tuple(y.shape)), dtype=y.dtype) for y in outputs]
    return list(torch.autograd.grad(outputs, tensors, seeds, create_graph=create_graph, allow_unused=True))


@pytest.mark.parametrize("row", operations(), ids=lambda row: row.name)
@pytest.mark.parametrize("kind", [torch.float64, torch.float32], ids=str)
def test_a_pass_on_arrays_gives_what_a_recorded_pass_gives(row: Operation, kind: Any) -> None:
    for samples in row.samples:
        on_arrays = gradients(row, samples, kind, create_graph=False)
        recorded = gradients(row, samples, kind, create_graph=True)
        for ours, theirs in zip(on_arrays, recorded, strict=True):
            assert (ours is None) == (theirs is None)
            if ours is not None:
                assert (ours.dtype, ours.shape) == (theirs.dtype, theirs.shape)
                precision = 1e-12 if ours.dtype in (torch.float64, torch.complex128) else 2e-5
                np.testing.assert_allclose(ours.numpy(), theirs.detach().numpy(), precision, precision)


def test_most_rules_of_the_common_operations_run_on_arrays() -> None:
    x = torch.rand(3, 3).requires_grad_()
    for y in (x + x, x * x, x.mm(x), x.exp(), x.relu(), x.sum(0), x.reshape(9), x.clamp(min=0), x.softmax(-1)):
        assert y.grad_fn is not None
        assert y.grad_fn._on_arrays, y.grad_fn.name()


class TestOwnership:
    def test_an_array_in_one_slot_is_held_once(self) -> None:
        assert held_once([np.empty(3)], 0)

    def test_another_name_a_view_or_memory_from_elsewhere_is_seen(self) -> None:
        slots: list[Any] = [np.empty(3), np.empty(4)]
        another = slots[0]
        view = slots[1][:2]
        assert not held_once(slots, 0)
        assert not held_once(slots, 1)
        assert not held_once([np.empty(6)[:3]], 0)
        assert not held_once([np.float64(1.0)], 0)
        del another, view
        assert held_once(slots, 0)
        assert held_once(slots, 1)

    def test_a_tensor_of_the_array_is_seen(self) -> None:
        tensor = torch.zeros(3)
        assert not held_once([tensor._data], 0)


@pytest.mark.parametrize("create_graph", [False, True])
def test_a_gradient_shares_memory_with_nothing_the_user_has(create_graph: bool) -> None:
    x, w, seed = torch.rand(4).requires_grad_(), torch.rand(4).requires_grad_(), torch.rand(4)
    y = x + w
    y.retain_grad()
    y.backward(seed, create_graph=create_graph)
    arrays = [entry._data for entry in (x, w, seed, x.grad, w.grad, y.grad)]
    shared = [(i, j) for i, a in enumerate(arrays) for j, b in enumerate(arrays[:i]) if np.shares_memory(a, b)]
    assert shared == []


def test_a_gradient_that_was_given_comes_back_as_it_is() -> None:
    x, seed = torch.rand(2, 3).requires_grad_(), torch.rand(2, 3)
    (same,) = torch.autograd.grad(x + 1, x, seed)
    assert same is seed
    (view,) = torch.autograd.grad(x.reshape(6), x, torch.rand(6))
    (again,) = torch.autograd.grad(x.reshape(3, 2), x, seed.reshape(3, 2))
    again.zero_()
    assert (seed._version, seed.tolist()) == (1, [[0.0] * 3] * 2)
    assert tuple(view.shape) == (2, 3)


def test_contributions_that_are_views_of_each_other_add_up() -> None:
    class Twice(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, a: Tensor, b: Tensor) -> Tensor:
            return a + b.reshape(a.shape)

        @staticmethod
        def backward(ctx: Any, g: Tensor) -> Any:
            return g, g.reshape(3, 2)

    x = torch.rand(2, 3).requires_grad_()
    y = x * 1.0
    z = Twice.apply(y, y.reshape(3, 2)) + y + y.t().t() + y.reshape(6).reshape(2, 3)
    z.backward(torch.ones(2, 3))
    assert x.grad is not None
    assert x.grad.tolist() == [[5.0] * 3] * 2


@pytest.mark.parametrize("expression", ["x / y", "(x - 2).log()", "(x - 1).sqrt()", "x ** -1.5"])
def test_poles_of_a_rule_are_silent(expression: str, recwarn: pytest.WarningsRecorder) -> None:
    x, y = torch.tensor([1.0, 0.0], requires_grad=True), torch.tensor([0.0, 0.0], requires_grad=True)
    result = eval(expression, {"x": x, "y": y})
    result.backward(torch.ones(2))
    assert [str(entry.message) for entry in recwarn] == []


def test_a_rule_that_says_so_runs_on_arrays_alone() -> None:
    seen: list[Any] = []

    class Probe(Node):
        _on_arrays = True

        def _vjp(self, g: Any) -> Any:
            seen.append(type(g))
            return g * 2

    from gradcli.engine.recording import record

    x = torch.rand(3).requires_grad_()
    record(Probe, x._data * 2, (x,)).sum().backward()
    torch.autograd.grad(record(Probe, x._data * 2, (x,)).sum(), x, create_graph=True)
    assert seen == [np.ndarray, Tensor]
