"""What a pass leaves in `.grad`, and what pack hooks are shown, are the same on the engine and PyTorch."""

from __future__ import annotations

import gc
import warnings
from typing import Any

import pytest

from gradcli import engine

torch = pytest.importorskip("torch", reason="the reference for these programs is PyTorch")


def both(program: Any) -> None:
    """Compare what a program gives on the two."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert program(engine) == program(torch)


def leaf(t: Any) -> Any:
    return t.tensor([1.0, 2.0], requires_grad=True)


def test_a_result_named_as_input_accumulates() -> None:
    def program(t: Any) -> Any:
        y = leaf(t) ** 2
        seen = []
        for _ in range(3):
            (y * 3).sum().backward(inputs=[y], retain_graph=True)
            seen.append(y.grad.tolist())
        return seen, y.retains_grad

    both(program)


@pytest.mark.parametrize("recorded", [False, True])
@pytest.mark.parametrize("held", [False, True])
@pytest.mark.parametrize("again", [False, True])
def test_a_leaf_that_no_longer_requires_grad_is_not_filled(recorded: bool, held: bool, again: bool) -> None:
    def program(t: Any) -> Any:
        x, w, seen = leaf(t), leaf(t), []
        if held:
            x.grad = t.tensor([5.0, 6.0])
        x.register_hook(lambda g: seen.append(("tensor", g.tolist())))
        x.register_post_accumulate_grad_hook(lambda held: seen.append(("after", held.grad is None)))
        y = (x * w).sum()
        x.requires_grad_(False)
        if again:
            x.requires_grad_(True)
        y.backward(create_graph=recorded)
        return None if x.grad is None else x.grad.tolist(), w.grad.tolist(), seen

    both(program)


@pytest.mark.parametrize("retained", [False, True])
def test_the_grad_of_a_result_has_memory_of_its_own(retained: bool) -> None:
    def program(t: Any) -> Any:
        y, start = leaf(t) ** 2, t.ones(2)
        if retained:
            y.retain_grad()
        y.register_hook(lambda g: g * 2)
        y.backward(start, inputs=[y])
        y.grad.mul_(5)
        return start.tolist(), y.grad.tolist()

    both(program)


def test_an_untracked_input_is_refused() -> None:
    def program(t: Any) -> Any:
        with pytest.raises(RuntimeError) as caught:
            leaf(t).sum().backward(inputs=[t.ones(2)])
        return str(caught.value)

    both(program)


def test_names_of_recorded_gradients() -> None:
    def program(t: Any) -> Any:
        w = leaf(t)
        y = w * w
        y.retain_grad()
        (y**2).sum().backward(create_graph=True)
        names = [type(w.grad.grad_fn).__name__, w.grad.grad_fn.name(), y.grad.grad_fn.name()]
        behind = [node and node.name() for node, _ in w.grad.grad_fn.next_functions]
        (w**3).sum().backward(create_graph=True)
        names.append(w.grad.grad_fn.name())
        w.grad = None
        w.sum().backward(create_graph=True)
        copied = (w * 1).copy_(w.exp())
        return names, behind, w.grad.grad_fn, copied.grad_fn.name()

    both(program)


def test_a_pack_hook_is_shown_where_a_tensor_is_in_the_graph() -> None:
    def program(t: Any) -> Any:
        class Exp(t.autograd.Function):  # type: ignore[misc,name-defined]
            @staticmethod
            def forward(ctx: Any, x: Any) -> Any:
                y = x.exp()
                ctx.save_for_backward(x, y, x * 2)
                return y

            @staticmethod
            def backward(ctx: Any, g: Any) -> Any:
                return g * ctx.saved_tensors[1]

        seen = []

        def pack(x: Any) -> Any:
            seen.append((x.requires_grad, x.is_leaf, x.grad_fn and x.grad_fn.name(), x.tolist()))
            return x

        x = leaf(t)
        with t.autograd.graph.saved_tensors_hooks(pack, lambda packed: packed):
            y = Exp.apply(x) + x.sigmoid() + (x * 1).tanh_() + (2 * x).cumprod(0)
        y.sum().backward()
        return [(*entry[:3], [round(v, 4) for v in entry[3]]) for entry in seen], [round(v, 4) for v in x.grad.tolist()]

    both(program)


def test_a_pack_hook_that_keeps_results_closes_no_cycle() -> None:
    gc.collect()
    kept: list[Any] = []
    with engine.autograd.graph.saved_tensors_hooks(lambda x: kept.append(x) or [x], lambda packed: packed[0]):
        y = leaf(engine).exp().tanh()
    assert not any(entry.requires_grad for entry in kept)
    kept.clear()
    del y
    assert gc.collect() == 0
