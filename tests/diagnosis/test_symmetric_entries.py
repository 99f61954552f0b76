"""The table of a wrong gradient compares what can be compared: symmetric parts, and a grad_output that shows it."""

import pytest

import gradcli
from gradcli.engine import autograd
from gradcli.verdict import Verdict


def lower(change):
    class Lower(autograd.Function):
        @staticmethod
        def forward(ctx, a):
            ctx.save_for_backward(a)
            return a.tril() ** 2

        @staticmethod
        def backward(ctx, g):
            (a,) = ctx.saved_tensors
            return change(2 * g * a.tril())

    return gradcli.check(Lower, {"a": {"shape": [3, 3], "domain": "spd"}}, order=1, samples=1).cases[0]


@pytest.mark.parametrize("change", [lambda g: g, lambda g: (g + g.mT) / 2])
def test_a_gradient_of_one_triangle_may_be_divided_between_both(change):
    assert lower(change).verdict is Verdict.PASSED


@pytest.mark.parametrize("change", [lambda g: g + g.mT, lambda g: 1.01 * (g + g.mT) / 2, lambda g: (g + g.mT) / 4])
def test_a_wrong_gradient_of_one_triangle_is_compared_by_its_symmetric_part(change):
    case = lower(change)
    assert case.verdict is Verdict.FAILED
    assert not any("is right" in note for note in case.notes)
    (finding,) = case.findings
    assert finding.entries
    assert all(abs(e.analytic - e.numeric) > 3 * e.bound for e in finding.entries)


def test_a_missing_gradient_is_shown_where_it_is_not_zero():
    class Sharpened(autograd.Function):
        @staticmethod
        def forward(ctx, x, t):
            y = (x * t).softmax(-1)
            ctx.save_for_backward(y, t)
            return y

        @staticmethod
        def backward(ctx, g):
            y, t = ctx.saved_tensors
            return t * y * (g - (g * y).sum(-1, keepdim=True)), None

    inputs = {"x": {"shape": [3, 4]}, "t": {"shape": [1]}}
    (finding,) = gradcli.check(Sharpened, inputs, order=1, samples=1).cases[0].findings
    assert "is not zero" in finding.message
    assert any(abs(e.numeric) > 3 * e.bound for e in finding.entries)
