"""Forward mode: tangents of operations, of custom Functions through their `jvp`, and what is refused."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import numpy as np
import pytest

from gradcli import engine
from gradcli.engine.catalogue import Operation, operations

# PyTorch's forward mode loads a part of PyTorch that warns about another part.
pytestmark = pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning")


def frameworks() -> list[Any]:
    try:
        import torch
    except ImportError:
        return [engine]
    return [engine, torch]


@pytest.fixture(params=frameworks(), ids=lambda module: module.__name__)
def torch(request: pytest.FixtureRequest) -> Any:
    return request.param


def tangents(row: Operation, arrays: list[np.ndarray], directions: list[np.ndarray]) -> list[np.ndarray]:
    """Return J t by forward mode."""
    with engine.autograd.forward_ad.dual_level():
        duals = [
            engine.autograd.forward_ad.make_dual(engine.tensor(array), engine.tensor(direction))
            for array, direction in zip(arrays, directions, strict=True)
        ]
        result = row.call(engine, *duals)
        outputs = list(result) if isinstance(result, (tuple, list)) else [result]
        found = [engine.autograd.forward_ad.unpack_dual(output).tangent for output in outputs]
    shapes = [tuple(output.shape) for output in outputs]
    return [np.zeros(s) if t is None else t.detach().numpy() for t, s in zip(found, shapes, strict=True)]


@pytest.mark.parametrize("row", [row for row in operations() if not row.kinks], ids=lambda row: row.name)
def test_tangents_agree_with_cotangents(row: Operation) -> None:
    """<u, J t> by forward mode is <J^T u, t> by backward."""
    source = np.random.default_rng(0)
    arrays = [sample.draw(source) for sample in row.samples[0]]
    directions = [source.normal(size=array.shape) for array in arrays]
    carried = tangents(row, arrays, directions)
    leaves = [engine.tensor(array, requires_grad=True) for array in arrays]
    result = row.call(engine, *leaves)
    outputs = list(result) if isinstance(result, (tuple, list)) else [result]
    seeds = [engine.tensor(source.normal(size=tuple(output.shape))) for output in outputs]
    found = engine.autograd.grad(outputs, leaves, seeds, allow_unused=True)
    forward = sum(float((seed.numpy() * t).sum()) for seed, t in zip(seeds, carried, strict=True))
    backward = sum(float((g.numpy() * d).sum()) for g, d in zip(found, directions, strict=True) if g is not None)
    assert forward == pytest.approx(backward, rel=1e-9, abs=1e-11)


def test_a_functions_own_jvp_is_called(torch: Any) -> None:
    calls = []

    class Cube(torch.autograd.Function):  # type: ignore[misc]  # the framework is a parameter
        @staticmethod
        def forward(ctx: Any, x: Any, factor: float) -> Any:
            ctx.save_for_forward(x)
            ctx.save_for_backward(x)
            ctx.factor = factor
            return x**3 * factor

        @staticmethod
        def jvp(ctx: Any, tangent: Any, _: None) -> Any:
            (x,) = ctx.saved_tensors
            calls.append(1)
            return 3 * x**2 * tangent * ctx.factor

    forward_ad = torch.autograd.forward_ad
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(torch.tensor([1.0, 2.0]), torch.tensor([1.0, 10.0]))
        primal, tangent = forward_ad.unpack_dual(Cube.apply(dual, 2.0).sum() * 2)
    assert primal.item() == 36.0
    assert tangent.item() == pytest.approx(4 * (3 + 120))
    assert len(calls) == 1


@pytest.mark.parametrize("materialize", [True, False])
@pytest.mark.parametrize("tracked", [True, False])
def test_an_input_without_a_tangent_has_zeros_for_one(torch: Any, materialize: bool, tracked: bool) -> None:
    seen = []

    class Product(torch.autograd.Function):
        @staticmethod
        def forward(x: Any, power: Any, y: Any) -> Any:
            return x * y

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            ctx.save_for_forward(inputs[0], inputs[2])
            ctx.set_materialize_grads(materialize)

        @staticmethod
        def jvp(ctx: Any, dx: Any, d_power: Any, dy: Any) -> Any:
            seen.append([None if entry is None else entry.tolist() for entry in (dx, d_power, dy)])
            x, y = ctx.saved_tensors
            return dx * y if dy is None else dx * y + x * dy

    x = torch.tensor([1.0, 2.0])
    y = torch.tensor([[3.0], [4.0]], dtype=torch.float64, requires_grad=tracked)
    for power in (2, torch.tensor([2, 2])):
        _, by_func = torch.func.jvp(lambda a, p=power: Product.apply(a, p, y), (x,), (torch.ones(2),))
        with torch.autograd.forward_ad.dual_level():
            dual = torch.autograd.forward_ad.make_dual(x, torch.ones(2))
            by_level = torch.autograd.forward_ad.unpack_dual(Product.apply(dual, power, y)).tangent
        assert by_func.tolist() == by_level.tolist() == [[3, 3], [4, 4]]
    assert seen == [[[1, 1], None, [[0], [0]] if materialize else None]] * 4


def test_an_output_kept_for_jvp_closes_no_cycle_and_is_differentiated(torch: Any) -> None:
    class Exp(torch.autograd.Function):  # type: ignore[misc]  # the framework is a parameter
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            y = x.exp()
            ctx.save_for_backward(y)
            ctx.save_for_forward(y)
            return y

        @staticmethod
        def jvp(ctx: Any, tangent: Any) -> Any:
            return ctx.saved_tensors[0] * tangent

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * ctx.saved_tensors[0]

    x, forward_ad = torch.tensor([0.5, 1.0], requires_grad=True), torch.autograd.forward_ad
    with forward_ad.dual_level():
        tangent = forward_ad.unpack_dual(Exp.apply(forward_ad.make_dual(x, torch.tensor([1.0, 10.0])))).tangent
        (second,) = torch.autograd.grad(tangent.sum(), x)
    assert second.tolist() == pytest.approx((x.detach().exp() * torch.tensor([1.0, 10.0])).tolist())
    gc.collect()
    gc.disable()
    try:
        ended = weakref.ref(Exp.apply(x).grad_fn)
        assert ended() is None
    finally:
        gc.enable()


def test_what_is_refused(torch: Any) -> None:
    forward_ad = torch.autograd.forward_ad

    class NoRule(torch.autograd.Function):  # type: ignore[misc]  # the framework is a parameter
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 2

    x = torch.ones(2)
    with pytest.raises(RuntimeError, match="no level exists"):
        forward_ad.make_dual(x, x)
    with forward_ad.dual_level():
        with pytest.raises((NotImplementedError, RuntimeError), match="must implement the jvp function"):
            forward_ad.unpack_dual(NoRule.apply(forward_ad.make_dual(x, x)))
        with pytest.raises(RuntimeError, match=r"shape|size"):
            forward_ad.make_dual(x, torch.ones(3))
        assert forward_ad.unpack_dual(x * 2).tangent is None
        with pytest.raises(ValueError, match="floating point"):
            forward_ad.make_dual(torch.ones(2, dtype=torch.int64), x)


@pytest.mark.parametrize("record", [False, True])
def test_gradients_taken_in_a_level_have_tangents(torch: Any, record: bool) -> None:
    forward_ad, x = torch.autograd.forward_ad, torch.tensor([0.5, -2.0], requires_grad=True)
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(x, torch.tensor([1.0, 3.0]))
        value = (dual**3).sum() + dual.prod()
        (gradient,) = torch.autograd.grad(value, dual, create_graph=record)
        assert forward_ad.unpack_dual(gradient).tangent.tolist() == [3 + 3, -36 + 1]
        assert forward_ad.unpack_dual(value).tangent.item() == 0.75 + 36 - 2 + 1.5


def test_a_pass_leaves_the_tangents_of_what_it_ran_through(torch: Any) -> None:
    forward_ad, x = torch.autograd.forward_ad, torch.tensor([0.5, -2.0], requires_grad=True)
    with forward_ad.dual_level():
        value = (forward_ad.make_dual(x, torch.tensor([1.0, 3.0])) ** 3).sum()
        value.backward()
        assert forward_ad.unpack_dual(value).tangent.item() == 0.75 + 36
        assert forward_ad.unpack_dual(x.grad).tangent is None
    assert not x.grad.requires_grad
