"""A gradient multiplied by a sum of the cotangent belongs to a single number, or a vector, though any shape fits it."""

import ast
from typing import Any

import pytest

from gradcli.cases import CheckSpec
from gradcli.inputs.hints.summed_gradients import Sum, sums_of
from gradcli.results import CheckResult
from gradcli.runner.case import check_object
from gradcli.runner.planning.plan import case_of
from gradcli.settings import Settings
from gradcli.verdict import Verdict


def checked(target: Any) -> CheckResult:
    return check_object(target, case_of(CheckSpec(target="module:Target"), Settings(order=1, samples=1, shrink=False)))


def softmax_with_a_temperature(ns: Any, factor: float) -> Any:
    class Softmax(ns.autograd.Function):
        @staticmethod
        def forward(ctx: Any, logits: Any, t: Any) -> Any:
            y = ns.softmax(logits / t, -1)
            ctx.save_for_backward(logits, t, y)
            return y

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            logits, t, y = ctx.saved_tensors
            gz = y * (g - (g * y).sum(-1, keepdim=True))
            return gz / t, -factor * (gz * logits).sum() / t**2

    return Softmax


def learnable_limit(ns: Any, factor: float) -> Any:
    class Limit(ns.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, limit: Any) -> Any:
            ctx.save_for_backward(x, limit)
            return ns.minimum(ns.relu(x), ns.abs(limit))

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            x, limit = ctx.saved_tensors
            a = ns.abs(limit)
            total = (g * (x >= a).to(g.dtype)).sum()
            grads = (g * ((x > 0) & (x < a)).to(g.dtype), factor * ns.sign(limit) * total)
            return grads  # noqa: RET504 - by name

    return Limit


def scale_by_columns(ns: Any, factor: float) -> Any:
    class Columns(ns.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, s: Any) -> Any:
            ctx.save_for_backward(x, s)
            return x * ns.abs(s)

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            x, s = ctx.saved_tensors
            return g * ns.abs(s), factor * (g * x).sum(0) * ns.sign(s)

    return Columns


FUNCTIONS = [softmax_with_a_temperature, learnable_limit, scale_by_columns]


@pytest.mark.parametrize("function", FUNCTIONS)
def test_it_is_checked_with_fewer_axes_and_a_note_says_so(ns, function):
    result = checked(function(ns, 1.0))
    assert result.verdict is Verdict.PASSED
    assert any("has axes over which backward sums its gradient" in note for note in result.notes), result.notes


@pytest.mark.sampled(3)
@pytest.mark.parametrize("function", FUNCTIONS)
def test_a_factor_left_out_there_still_fails(ns, function):
    assert checked(function(ns, 1.001)).verdict is Verdict.FAILED


NAMES = ("x", "w")
SUMS = {
    "def b(ctx, g): x, w = ctx.saved_tensors; return g * w, (g * x).sum()": Sum.ALL,
    "def b(ctx, g): return g, -torch.sum(g * x) / w": Sum.ALL,
    "def b(ctx, g): t = np.sum(g * x); return [g, 2 * t]": Sum.ALL,
    "def b(ctx, g): h = g * x; t = h.sum(dim=0); out = (h, t * w); return out": Sum.AXES,
    "def vjp(x, w, ct): return ct * w, (ct * x).sum(0)": Sum.AXES,
    "def b(ctx, g): return g * w, w * (g * x).sum(1, keepdim=True)": None,
    "def b(ctx, g): return g * w, w * (x * x).sum()": None,
    "def b(ctx, g): return g * w, w * (g - (g * w).sum(0))": None,
    "def b(ctx, g): return g * w, x / (g * x).sum()": None,
    "def b(ctx, *gs): return gs[0].sum()": None,
    "x = 1": None,
}


@pytest.mark.parametrize("source", SUMS)
def test_which_gradients_count(source):
    assert sums_of(ast.parse(source), NAMES)[1] is SUMS[source]


def test_without_source_none_does():
    assert sums_of(None, NAMES) == (None, None)
