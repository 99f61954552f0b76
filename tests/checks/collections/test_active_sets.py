"""Forwards with an exact result in a number of steps that depends on the input: stopping early explains no error."""

from typing import Any

import numpy as np
import pytest

import gradcli
from gradcli.verdict import Verdict


def pooled(ns: Any, wrong: bool) -> Any:
    """The nearest vector that does not decrease, by pooling adjacent violators."""

    class Pooled(ns.autograd.Function):  # type: ignore[misc]
        @staticmethod
        def forward(ctx: Any, y: Any) -> Any:
            blocks: list[tuple[float, int]] = []
            for value in y.tolist():
                blocks.append((value, 1))
                while len(blocks) > 1 and blocks[-2][0] > blocks[-1][0]:
                    (b, m), (a, n) = blocks.pop(), blocks.pop()
                    blocks.append(((a * n + b * m) / (n + m), n + m))
            ctx.sizes = [size for _, size in blocks]
            return ns.tensor([mean for mean, size in blocks for _ in range(size)], dtype=y.dtype)

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            parts, start = [], 0
            for size in ctx.sizes:
                part = g[start : start + size].sum() / (1 if wrong else size)
                parts += [part.reshape(1)] * size
                start += size
            return ns.cat(parts)

    return Pooled


def bubbles(ns: Any, wrong: bool) -> Any:
    """A vector sorted by exchanging neighbours until none is left to be exchanged."""

    class Bubbles(ns.autograd.Function):  # type: ignore[misc]
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            order, exchanged = list(range(x.shape[0])), True
            while exchanged:
                exchanged = False
                for i in range(len(order) - 1):
                    if x[order[i]] > x[order[i + 1]]:
                        order[i], order[i + 1] = order[i + 1], order[i]
                        exchanged = True
            ctx.order = order
            return ns.stack([x[i] for i in order])

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            places = ctx.order if wrong else [ctx.order.index(i) for i in range(len(ctx.order))]
            return ns.stack([g[i] for i in places])

    return Bubbles


def poured(ns: Any, wrong: bool) -> Any:
    """Water of volume 2 poured over a floor of some heights: its depth at each, by adding the heights in order."""

    class Poured(ns.autograd.Function):  # type: ignore[misc]
        @staticmethod
        def forward(ctx: Any, floor: Any) -> Any:
            heights, under, total = sorted(floor.tolist()), 0, 2.0
            while under < len(heights) and (total + heights[under]) / (under + 1) > heights[under]:
                total += heights[under]
                under += 1
            ctx.under = under
            depth = (total / under - floor).clamp(min=0)
            ctx.save_for_backward(depth > 0)
            return depth

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (wet,) = ctx.saved_tensors
            g = g * wet
            return wet * (g.sum() / ctx.under) * (1.001 if wrong else 1.0) - g

    return Poured


@pytest.mark.sampled(5)
@pytest.mark.parametrize("make", [pooled, bubbles, poured])
@pytest.mark.parametrize("seed", range(3))
def test_a_right_gradient_passes_and_a_wrong_one_fails(ns: Any, make: Any, seed: int, unexplained: None) -> None:
    moved = np.random.default_rng(seed).uniform(-0.05, 0.05, 5)
    given = (ns.tensor(np.array([0.9, 0.3, 0.5, 1.7, 1.2]) + moved, requires_grad=True),)

    def verdict(*, wrong: bool) -> Verdict:
        return gradcli.check(make(ns, wrong), given, order=1, seed=seed).cases[0].verdict

    assert verdict(wrong=False) is Verdict.PASSED
    assert verdict(wrong=True) is Verdict.FAILED
