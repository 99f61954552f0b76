"""Inputs of layers with an axis of channels in the middle, told from how forward and backward treat their axes."""

from __future__ import annotations

from typing import Any

import pytest

import gradcli
from gradcli.inputs.hints.source_hints import SourceHints
from gradcli.verdict import Verdict


def group_norm(ns: Any, factor: float) -> Any:
    class GroupNorm(ns.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, weight: Any, bias: Any, groups: int = 2, eps: float = 1e-5) -> Any:
            n, _ = x.shape[:2]
            y = x.reshape(n, groups, -1)
            mean = y.mean(-1, keepdim=True)
            rstd = (y.var(-1, unbiased=False, keepdim=True) + eps).rsqrt()
            normal = ((y - mean) * rstd).reshape(x.shape)
            ctx.save_for_backward(normal, weight, rstd)
            ctx.groups = groups
            return normal * weight[:, None] + bias[:, None]

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            normal, weight, rstd = ctx.saved_tensors
            n, _ = g.shape[:2]
            gw, gb = (g * normal).sum((0, 2)), factor * g.sum((0, 2))
            of_normal = (g * weight[:, None]).reshape(n, ctx.groups, -1)
            h = normal.reshape(n, ctx.groups, -1)
            gx = of_normal - of_normal.mean(-1, keepdim=True) - h * (of_normal * h).mean(-1, keepdim=True)
            return (rstd * gx).reshape(g.shape), gw, gb, None, None

    return GroupNorm


def batch_norm(ns: Any, factor: float) -> Any:
    class BatchNorm(ns.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, weight: Any, bias: Any) -> Any:
            _b, _c = x.shape[:2]
            rstd = (x.var(dim=(0, 2), unbiased=False, keepdim=True) + 1e-5).rsqrt()
            normal = (x - x.mean(dim=(0, 2), keepdim=True)) * rstd
            ctx.save_for_backward(normal, weight, rstd)
            return normal * weight.view(1, -1, 1) + bias.view(1, -1, 1)

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            normal, weight, rstd = ctx.saved_tensors
            gb, gw = factor * g.sum(dim=(0, 2)), (g * normal).sum(dim=(0, 2))
            h = g * weight.view(1, -1, 1)
            along = (h * normal).mean(dim=(0, 2), keepdim=True)
            return rstd * (h - h.mean(dim=(0, 2), keepdim=True) - normal * along), gw, gb

    return BatchNorm


def channel_scale(ns: Any, factor: float) -> Any:
    class ChannelScale(ns.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, scale: Any, shift: Any) -> Any:
            _, c = x.shape[:2]
            ctx.save_for_backward(x, scale)
            shape = (1, c) + (1,) * (x.dim() - 2)
            return x * scale.view(shape) + shift.view(shape)

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            x, scale = ctx.saved_tensors
            axes = [0, *range(2, x.dim())]
            shape = (1, x.shape[1]) + (1,) * (x.dim() - 2)
            return g * scale.view(shape), (g * x).sum(axes), factor * g.sum(axes)

    return ChannelScale


@pytest.mark.sampled(6)
@pytest.mark.parametrize("factor", [1, 0.5])
@pytest.mark.parametrize("seed", [0, 2])
@pytest.mark.parametrize("made", [group_norm, batch_norm, channel_scale])
def test_a_parameter_has_one_number_for_each_channel(ns: Any, made: Any, seed: int, factor: float) -> None:
    (case,) = gradcli.check(made(ns, factor), order=1, seed=seed, shrink=False).cases
    assert case.verdict is (Verdict.PASSED if factor == 1 else Verdict.FAILED), case
    shapes = [spec.shape for spec in case.inputs if spec.shape is not None]
    assert len(shapes[0]) >= 3
    assert shapes[1] == shapes[2] == (shapes[0][1],)
    assert 1 not in shapes[0]
    if factor != 1:
        assert {finding.input for finding in case.findings} == {case.inputs[2].name}


@pytest.mark.parametrize(
    ("forward", "backward", "first", "rank"),
    [
        ("n, c = x.shape", "", True, 2),
        ("n, c = x.shape[:2]", "", True, 3),
        ("b, h, n = x.shape[:3]", "", False, 4),
        ("return x.var((0, 2, 3)) * x", "", True, 4),
        ("return x", "return g.sum(dim=(0, 2))", True, 3),
    ],
)
def test_ranks_are_read_from_the_source(forward: str, backward: str, first: bool, rank: int) -> None:
    hints = SourceHints(forward=forward, backward=backward, gradients=())
    bonuses = hints.rank_bonuses("x", first=first)
    assert max(bonuses, key=lambda each: bonuses[each]) == rank


def test_axes_that_are_reduced_say_nothing_of_the_rank_of_later_inputs() -> None:
    assert SourceHints(forward="", backward="g.sum((0, 2))", gradients=()).rank_bonuses("w", first=False) == {}
