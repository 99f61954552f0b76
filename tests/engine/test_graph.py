"""The graph: its depth, its memory, and what it refuses."""

from __future__ import annotations

import gc
import time
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from gradcli import engine as torch
from gradcli.engine.catalogue import Operation, operations
from gradcli.engine.graph import Node
from gradcli.engine.tensor import Tensor


def tracked(*values: float) -> Tensor:
    return torch.tensor(list(values), dtype=torch.float64, requires_grad=True)


def test_a_chain_of_100000_operations_runs_backward() -> None:
    x = tracked(1.0)
    y = x
    for _ in range(100_000):
        y = y + 1
    y.backward()
    assert x.grad is not None
    assert x.grad.tolist() == [1.0]


def test_the_time_of_a_chain_is_linear_in_its_length() -> None:
    def seconds(length: int) -> float:
        best = float("inf")
        for _ in range(3):
            start = time.perf_counter()
            y = tracked(1.0)
            for _ in range(length):
                y = y * 1.0
            y.backward()
            best = min(best, time.perf_counter() - start)
        return best

    assert seconds(20_000) < 3 * 4 * seconds(5_000)


def test_memory_of_a_backward_pass_goes_as_it_runs() -> None:
    """Of what 40 nodes have saved, ever less is alive as the walk goes on, though the result is still held."""
    arrays: list[weakref.ref[np.ndarray]] = []
    alive: list[int] = []
    y = tracked(0.5)
    for _ in range(40):
        y = y.exp() * 0.1
        array = y.grad_fn.next_functions[0][0]._entries[0].array  # type: ignore[union-attr,index]  # it was recorded
        arrays.append(weakref.ref(array))
        y.grad_fn.register_prehook(lambda _: alive.append(sum(ref() is not None for ref in arrays)))
    del array
    gc.disable()
    try:
        y.sum().backward()
    finally:
        gc.enable()
    assert len(alive) == 40
    assert alive[0] == 40
    assert alive == sorted(alive, reverse=True)
    assert alive[-1] <= 2
    assert sum(ref() is not None for ref in arrays) == 0


def test_a_gradient_has_memory_of_its_own() -> None:
    """Cotangents handed to leaves without a copy are nobody else's."""
    x, w = tracked(1.0, 2.0), tracked(3.0, 4.0)
    seen: list[Tensor] = []
    y = x * w
    y.register_hook(seen.append)
    (y + x).sum().backward()
    assert x.grad is not None
    assert w.grad is not None
    x.grad.zero_()
    w.grad.zero_()
    assert seen[0].tolist() == [1.0, 1.0]
    assert x.tolist() == [1.0, 2.0]
    assert w.tolist() == [3.0, 4.0]
    seed = torch.ones(2, dtype=torch.float64)
    a, b = tracked(1.0, 2.0), tracked(1.0, 2.0)
    (a + b).backward(seed)
    assert a.grad is not None
    a.grad.mul_(5)
    assert b.grad is not None
    assert b.grad.tolist() == [1.0, 1.0]
    assert seed.tolist() == [1.0, 1.0]


def test_a_chain_of_second_derivatives_is_not_recursive_either() -> None:
    x = tracked(1.0)
    y = x
    for _ in range(3000):
        y = y * 1.0001
    (g,) = torch.autograd.grad((y * y).sum(), x, create_graph=True)
    (h,) = torch.autograd.grad(g.sum(), x)
    assert h.item() == pytest.approx(2 * 1.0001**6000)


def test_a_shared_value_is_visited_once() -> None:
    calls = []
    x = tracked(1.0)
    y = x
    for _ in range(40):
        y = y + y
        y.grad_fn.register_prehook(lambda cotangents: calls.append(cotangents[0].item()))
    y.backward()
    assert len(calls) == 40
    assert x.grad is not None
    assert x.grad.tolist() == [2.0**40]


def _train() -> None:
    class Scale(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, value: Tensor) -> Tensor:
            result = value * 2
            ctx.save_for_backward(value, result)
            return result

        @staticmethod
        def backward(ctx: Any, g: Tensor) -> Tensor:
            value, result = ctx.saved_tensors
            return g * 2 + 0 * value * result

    net = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Tanh(), torch.nn.Linear(4, 1)).double()
    net[0].register_full_backward_hook(lambda module, grad_input, grad_output: None)
    optimiser = torch.optim.Adam(net.parameters(), lr=0.1)
    x = tracked(1.0, 2.0, 3.0)
    for _ in range(3):
        optimiser.zero_grad()
        loss = Scale.apply(net(x)).exp().sum() + (x[1:] * 1).mul_(2).sum()
        loss.register_hook(lambda g: g)
        (g,) = torch.autograd.grad(loss, x, create_graph=True)
        (g * g).sum().backward()
        optimiser.step()


def test_no_engine_object_is_left_in_a_cycle() -> None:
    _train()
    gc.collect()
    gc.disable()
    try:
        _train()
        before = [weakref.ref(entry) for entry in gc.get_objects() if issubclass(type(entry), (Tensor, Node))]
        left = [type(entry()).__name__ for entry in before if entry() is not None]
    finally:
        gc.enable()
    gc.collect()
    kept = [type(entry()).__name__ for entry in before if entry() is not None]
    assert sorted(left) == sorted(kept)


@pytest.mark.parametrize("operation", ["exp", "sqrt", "tanh", "sigmoid"])
def test_the_graph_goes_with_the_last_reference(operation: str) -> None:
    gc.disable()
    try:
        y = getattr(tracked(0.5), operation)()
        node = weakref.ref(y.grad_fn)
        del y
        assert node() is None
    finally:
        gc.enable()


def numeric_gradient(function: Callable[[np.ndarray], float], point: np.ndarray, step: float = 1e-5) -> np.ndarray:
    """Central differences, entry by entry."""
    result = np.zeros_like(point)
    for index in np.ndindex(*point.shape):
        up, down = point.copy(), point.copy()
        up[index] += step
        down[index] -= step
        result[index] = (function(up) - function(down)) / (2 * step)
    return result


def agrees(row: Operation, number: int = 0) -> bool:
    """Compare the engine's gradient of a random projection of one row with central differences."""
    source = np.random.default_rng(number)
    arrays = [sample.draw(source) for sample in row.samples[number]]
    tensors = [torch.tensor(array, requires_grad=True) for array in arrays]
    result = row.call(torch, *tensors)
    outputs = list(result) if isinstance(result, (tuple, list)) else [result]
    seeds = [source.normal(size=tuple(output.shape)) for output in outputs]
    total = sum(
        ((output * torch.tensor(seed)).sum() for output, seed in zip(outputs, seeds, strict=True)), torch.zeros(())
    )
    found = torch.autograd.grad(total, tensors, allow_unused=True)

    def value(position: int, array: np.ndarray) -> float:
        given = [torch.tensor(array if i == position else other) for i, other in enumerate(arrays)]
        again = row.call(torch, *given)
        values = list(again) if isinstance(again, (tuple, list)) else [again]
        return float(sum((v.numpy() * seed).sum() for v, seed in zip(values, seeds, strict=True)))

    for position, (array, gradient) in enumerate(zip(arrays, found, strict=True)):
        expected = numeric_gradient(lambda point, p=position: value(p, point), array)  # type: ignore[misc]  # bound now
        got = np.zeros_like(expected) if gradient is None else gradient.numpy()
        if not np.allclose(got, expected, rtol=2e-5, atol=1e-7):
            return False
    return True


SMOOTH = [row for row in operations() if not row.kinks]


@pytest.mark.parametrize("row", SMOOTH, ids=lambda row: row.name)
def test_gradients_agree_with_central_differences(row: Operation) -> None:
    assert agrees(row)


PLANTED = (
    "exp log sin tanh sigmoid mul div pow sum_dim mean mm addmm cumsum softmax gather conv2d linear einsum inv mse_loss"
)


@pytest.mark.parametrize("name", PLANTED.split())
def test_a_rule_off_by_a_thousandth_is_caught(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    row = next(entry for entry in operations() if entry.name == name)
    tensors = [torch.tensor(s.draw(np.random.default_rng(0)), requires_grad=True) for s in row.samples[0]]
    kind = type(row.call(torch, *tensors).grad_fn)
    honest = kind._vjp

    def wrong(node: Node, g: Tensor) -> Any:
        results = honest(node, g)
        if isinstance(results, tuple):
            return tuple(None if entry is None else entry * 1.001 for entry in results)
        return results * 1.001

    assert agrees(row)
    monkeypatch.setattr(kind, "_vjp", wrong)
    assert not agrees(row)
