"""Inputs for forwards that demand no gradient, a single entry, or positive values beside an idle tensor."""

import numbers
from typing import Any

import pytest

import gradcli
from gradcli import engine
from gradcli.verdict import Verdict


def masked(ns: Any, factor: float) -> type:
    class Masked(ns.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, y: Any) -> Any:
            assert not y.requires_grad
            ctx.save_for_backward(y)
            return x * y

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (y,) = ctx.saved_tensors
            return factor * g * y, None

    return Masked


def with_loss(ns: Any, factor: float) -> type:
    class WithLoss(ns.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, loss: Any) -> Any:
            assert loss.numel() == 1
            ctx.save_for_backward(loss)
            return x * 2

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return factor * 2 * g, None

    return WithLoss


def logarithm(ns: Any, factor: float) -> type:
    class Logarithm(ns.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, average: Any) -> Any:
            ctx.save_for_backward(x, average)
            return x.log()

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            x, average = ctx.saved_tensors
            return factor * g * average / (average * x), None

    return Logarithm


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("made", "given"),
    [(masked, ("normal", (3, 4))), (with_loss, ("normal", ())), (logarithm, ("positive", ()))],
)
@pytest.mark.usefixtures("unexplained")
def test_inputs_are_found(ns: Any, made: Any, given: tuple[str, tuple[int, ...]]) -> None:
    right = gradcli.check(made(ns, 1.0), shrink=False, order=1).cases[0]
    assert right.verdict is Verdict.PASSED
    first, second = right.inputs
    assert (first.domain, second.shape, second.requires_grad) == (*given, False)
    wrong = gradcli.check(made(ns, 1.01), shrink=False, order=1).cases[0]
    assert {e.input for e in wrong.evidence if e.verdict is Verdict.FAILED} == {first.name}


def sine(ns: Any, factor: float) -> type:
    class Sine(ns.autograd.Function):
        @staticmethod
        def forward(ctx: Any, v: Any, z: Any) -> Any:
            assert isinstance(v, (numbers.Number, int)), "v must be a number"
            ctx.save_for_backward(z)
            ctx.v = v
            return ns.sin(v * z)

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (z,) = ctx.saved_tensors
            return None, factor * g * ctx.v * ns.cos(ctx.v * z)

    return Sine


@pytest.mark.sampled(1)
@pytest.mark.usefixtures("unexplained")
def test_a_type_that_forward_demands_is_given(ns: Any) -> None:
    right = gradcli.check(sine(ns, 1.0), shrink=False, order=1).cases[0]
    assert right.verdict is Verdict.PASSED
    assert [spec.kind for spec in right.inputs] == ["value", "tensor"]
    assert gradcli.check(sine(ns, 1.01), shrink=False, order=1).verdict is Verdict.FAILED


def repeated(ns: Any, factor: float) -> type:
    class Repeated(ns.autograd.Function):
        @staticmethod
        def forward(ctx: Any, row: Any, like: Any) -> Any:
            count, width = like.shape
            ctx.save_for_backward(row)
            return row.exp().reshape(1, width).expand(count, width).clone()

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (row,) = ctx.saved_tensors
            return factor * g.sum(0) * row.exp(), None

    return Repeated


def penalised(ns: Any, factor: float) -> type:
    class Penalised(ns.autograd.Function):
        @staticmethod
        def forward(ctx: Any, value: Any, weights: Any) -> Any:
            rows, columns = weights.shape
            ctx.save_for_backward(weights / (rows * columns))
            return value * 3

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (mean,) = ctx.saved_tensors
            return 3 * g, (factor - 1) * g.sum() * mean

    return Penalised


@pytest.mark.sampled(2)
@pytest.mark.usefixtures("unexplained")
@pytest.mark.parametrize(("made", "idle", "wrong"), [(repeated, False, "row"), (penalised, None, "weights")])
def test_a_tensor_of_which_forward_reads_only_the_shape(ns: Any, made: Any, idle: bool | None, wrong: str) -> None:
    right = gradcli.check(made(ns, 1.0), shrink=False, order=1).cases[0]
    assert right.verdict is Verdict.PASSED
    assert len(right.inputs[1].shape or ()) == 2
    assert right.inputs[1].requires_grad is idle
    failed = gradcli.check(made(ns, 1.01), shrink=False, order=1).cases[0]
    assert {e.input for e in failed.evidence if e.verdict is Verdict.FAILED} == {wrong}


def roomy(ns: Any, factor: float) -> type:
    class Roomy(ns.autograd.Function):
        """x: (N, 3), lo, hi: (3,) with lo < hi"""

        @staticmethod
        def forward(ctx: Any, x: Any, lo: Any, hi: Any) -> Any:
            room = ns.relu(ns.min(hi) - ns.max(lo) - 0.15)
            ctx.save_for_backward(x, lo, hi, room)
            return x * room + x * lo

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            x, lo, hi, room = ctx.saved_tensors
            along = (g * x).sum() * (room > 0).to(g.dtype)
            highest, lowest = (lo == ns.max(lo)).to(g.dtype), (hi == ns.min(hi)).to(g.dtype)
            return g * (room + lo), (g * x).sum(0) - along * highest, factor * along * lowest

    return Roomy


@pytest.mark.usefixtures("unexplained")
def test_limits_of_their_documented_shape_that_most_numbers_do_not_reach(ns: Any) -> None:
    right = gradcli.check(roomy(ns, 1.0), shrink=False, order=1).cases[0]
    assert right.verdict is Verdict.PASSED
    assert [spec.shape for spec in right.inputs] == [(4, 3), (3,), (3,)]
    failed = gradcli.check(roomy(ns, 1.01), shrink=False, order=1).cases[0]
    assert {e.input for e in failed.evidence if e.verdict is Verdict.FAILED} == {"hi"}


@pytest.mark.parametrize("factor", [1.0, 1.01])
@pytest.mark.parametrize("drops", [False, True])
def test_a_mask_leaves_a_softmax_more_than_one_entry(factor: float, drops: bool) -> None:
    class Weighted(engine.autograd.Function):
        @staticmethod
        def forward(ctx: Any, scores: Any, mask: Any) -> Any:
            kept = ~mask if drops else mask
            weights = engine.where(kept, scores, engine.full_like(scores, -1e30)).softmax(-1)
            ctx.save_for_backward(weights)
            return weights

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (weights,) = ctx.saved_tensors
            return factor * weights * (g - (g * weights).sum(-1)), None

    inputs = {"scores": {"shape": [4]}, "mask": {"shape": [4], "domain": "boolean"}}
    for seed in range(4):
        report = gradcli.check(Weighted, inputs, order=1, samples=1, seed=seed, only=("gradient",), shrink=False)
        assert report.verdict is (Verdict.PASSED if factor == 1 else Verdict.FAILED), str(report)
