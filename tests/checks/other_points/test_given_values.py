"""Gradients that are zero at values the user gave are compared at the nearest values where they are not."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gradcli
from gradcli.results import CheckResult
from gradcli.verdict import Verdict
from tests.pairs import FRAMEWORKS, each_pair

Limits = Callable[..., tuple[Any, Any]]
INSIDE = {
    "scalars": ([0.5], [-1.0], [2.0]),
    "one pair of limits": ([0.5, 0.2, 0.7], [-1.0], [2.0]),
    "limits for each entry": ([0.5, 0.2, 0.7, -0.3], [-1.1, -1.2, -1.3, -0.4], [1.0, 2.0, 3.0, 4.0]),
    "far limits": ([0.05, -0.02], [-4.0], [7.0]),
}
OUTSIDE = {"below": ([0.05], [1.4], [4.4]), "above": ([3.1, 2.5], [-1.0], [2.0])}


def right(g: Any, x: Any, low: Any, high: Any) -> tuple[Any, Any]:
    return g * (x <= low), g * (x >= high)


def swapped(g: Any, x: Any, low: Any, high: Any) -> tuple[Any, Any]:
    return g * (x >= high), g * (x <= low)


def halved(g: Any, x: Any, low: Any, high: Any) -> tuple[Any, Any]:
    return 0.5 * g * (x <= low), 0.5 * g * (x >= high)


def negated(g: Any, x: Any, low: Any, high: Any) -> tuple[Any, Any]:
    return -g * (x <= low), -g * (x >= high)


def left_out(g: Any, x: Any, low: Any, high: Any) -> tuple[Any, Any]:
    return 0 * g * low, 0 * g * high


def clamp(ns: Any, limits: Limits, hidden: bool) -> type:
    """Limits to [low, high]; the formula for the limits is right only where low is below high."""

    class Clamp(ns.autograd.Function):
        @staticmethod
        def forward(ctx, x, low, high):
            ctx.save_for_backward(x, low, high)
            if hidden:
                arrays = (tensor.detach().numpy() for tensor in (x, low, high))
                return ns.from_numpy(np.clip(*arrays))
            return ns.minimum(ns.maximum(x, low), high)

        @staticmethod
        def backward(ctx, g):
            x, low, high = ctx.saved_tensors
            by_low, by_high = limits(g, x, low, high)
            if low.numel() < x.numel():
                by_low, by_high = by_low.sum(0, keepdim=True), by_high.sum(0, keepdim=True)
            return g * ((x > low) & (x < high)), by_low, by_high

    return Clamp


def checked(ns: Any, target: Any, values: Any, **options: Any) -> CheckResult:
    tensors = tuple(ns.tensor(value, dtype=ns.float64, requires_grad=True) for value in values)
    return gradcli.check(target, tensors, order=1, shrink=False, **options).cases[0]


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    ("name", "hidden"),
    [*((name, False) for name in INSIDE | OUTSIDE), ("limits for each entry", True), ("below", True)],
)
def test_a_right_clamp_between_limits_that_were_given_passes(ns, name, hidden):
    result = checked(ns, clamp(ns, right, hidden), (INSIDE | OUTSIDE)[name])
    assert result.verdict is Verdict.PASSED, str(result)


@pytest.mark.sampled(6)
@each_pair(
    ["backend"],
    backend=FRAMEWORKS,
    name=("one pair of limits", "far limits", "below"),
    limits=(swapped, halved, negated, left_out),
)
@pytest.mark.usefixtures("unexplained")
def test_a_wrong_gradient_of_the_limits_fails(ns, name, limits):
    case = checked(ns, clamp(ns, limits, hidden=False), (INSIDE | OUTSIDE)[name], only=["gradient"])
    assert case.verdict is Verdict.FAILED, str(case)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("factor", [2.0, 2.002, 3.0])
@pytest.mark.usefixtures("unexplained")
def test_at_zeros_that_were_given_a_wrong_square_fails_and_a_right_one_passes(ns, factor):
    class Square(ns.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return factor * g * x

    result = checked(ns, Square, [[0.0, 0.0, 0.0]])
    assert result.verdict is (Verdict.PASSED if factor == 2 else Verdict.FAILED), str(result)
    drawn = gradcli.check(Square, {"x": {"shape": [3]}}, shrink=False).cases[0]
    assert drawn.verdict is (Verdict.PASSED if factor == 2 else Verdict.FAILED)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("wrong", [False, True])
@pytest.mark.usefixtures("unexplained")
def test_where_only_the_drawn_input_has_to_change_a_wrong_gradient_fails(ns, wrong):
    """x is drawn inside the limits, which are given: they stay, and x moves beyond them."""
    target = clamp(ns, swapped if wrong else right, hidden=False)
    inputs = {
        "x": {"shape": [3], "domain": "normal"},
        "low": {"value": [-5.0], "requires_grad": True},
        "high": {"value": [6.0], "requires_grad": True},
    }
    result = gradcli.check(target, inputs, shrink=False).cases[0]
    assert result.verdict is (Verdict.FAILED if wrong else Verdict.PASSED), str(result)


@pytest.mark.usefixtures("unexplained")
def test_an_empty_input_beside_them_is_passed_over(ns):
    class Padded(ns.autograd.Function):
        @staticmethod
        def forward(ctx, x, nothing):
            ctx.save_for_backward(x)
            return x * x + nothing.sum()

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return 3 * g * x, g.sum() * ns.ones(0, dtype=ns.float64)

    result = checked(ns, Padded, [[0.0, 0.0], []], only=["gradient"])
    assert result.verdict is Verdict.FAILED, str(result)
