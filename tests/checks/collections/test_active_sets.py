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


def unpooled(ns: Any, wrong: bool) -> Any:
    """As `pooled`; the wrong gradient does not average, so that it is smooth where forward has kinks."""

    class Unpooled(pooled(ns, False)):  # type: ignore[misc]
        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g.clone() if wrong else pooled(ns, False).backward(ctx, g)

    return Unpooled


def emptied(ns: Any, wrong: bool) -> Any:
    """The nearest point of the simplex, by taking out negative entries until none is left."""

    class Emptied(ns.autograd.Function):  # type: ignore[misc]
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            values, kept, before = x.tolist(), list(range(len(x))), 0
            while len(kept) != before:
                before, excess = len(kept), (sum(values[i] for i in kept) - 1) / len(kept)
                kept = [i for i in kept if values[i] > excess]
            ctx.kept = kept
            return (x - excess).clamp(min=0)

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            inside = ns.tensor([float(i in ctx.kept) for i in range(len(g))], dtype=g.dtype)
            return inside * (g - (0.97 if wrong else 1.0) * (g * inside).sum() / len(ctx.kept))

    return Emptied


def halved(ns: Any, wrong: bool) -> Any:
    """Exponentials of halves, by their series, squared as often as the largest entry was halved."""

    class Halved(ns.autograd.Function):  # type: ignore[misc]
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            part, halvings = x.clone(), 0
            while float(part.abs().max()) > 0.25:
                part, halvings = part / 2, halvings + 1
            result = term = ns.ones_like(part)
            for k in range(1, 16):
                term = term * part / k
                result = result + term
            for _ in range(halvings):
                result = result * result
            ctx.save_for_backward(result)
            return result

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (result,) = ctx.saved_tensors
            return g * result * (1.003 if wrong else 1.0)

    return Halved


def wrapped(ns: Any, wrong: bool) -> Any:
    """An odd polynomial of the angles, brought between -pi and pi by turns: it jumps there by more than its values."""

    class Wrapped(ns.autograd.Function):  # type: ignore[misc]
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            angles = []
            for angle in (7 * x).tolist():
                while angle > np.pi:
                    angle -= 2 * np.pi
                while angle < -np.pi:
                    angle += 2 * np.pi
                angles.append(angle)
            near = ns.tensor(angles, dtype=x.dtype)
            ctx.save_for_backward(near)
            return near - near**3 / 6

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (near,) = ctx.saved_tensors
            return 7 * g * (1 - near**2 / 2) * (1.02 if wrong else 1.0)

    return Wrapped


@pytest.mark.sampled(5)
@pytest.mark.parametrize("make", [pooled, bubbles, poured, unpooled, emptied, halved, wrapped])
@pytest.mark.parametrize("seed", range(3))
def test_a_right_gradient_passes_and_a_wrong_one_fails(ns: Any, make: Any, seed: int, unexplained: None) -> None:
    moved = np.random.default_rng(seed).uniform(-0.05, 0.05, 5)
    given = (ns.tensor(np.array([0.9, 0.3, 0.5, 1.7, 1.2]) + moved, requires_grad=True),)

    def verdict(*, wrong: bool) -> Verdict:
        return gradcli.check(make(ns, wrong), given, order=1, seed=seed).cases[0].verdict

    assert verdict(wrong=False) is Verdict.PASSED
    assert verdict(wrong=True) is Verdict.FAILED
