"""Second derivatives that rounding of larger terms hides, digits of a bisection, and advice that fits the reason."""

from __future__ import annotations

from dataclasses import replace

import pytest

import gradcli
from gradcli import engine
from gradcli.engine.autograd import Function
from gradcli.reporters.narrative import story
from gradcli.results import Evidence
from gradcli.verdict import Reason, Verdict


def orbit(wrong):
    """Energy and speed: in the gradient by m, rounding of the term of the energy hides that of the speed."""

    class Orbit(Function):
        @staticmethod
        def forward(ctx, r, m):
            ctx.save_for_backward(r, m)
            return engine.stack([-3e11 * m / r, engine.sqrt(m / r)])

        @staticmethod
        def backward(ctx, g):
            r, m = ctx.saved_tensors
            speed = engine.sqrt(m / r)
            part = speed / (2 * m)
            part = part + wrong * (part - part.detach())
            return g[0] * 3e11 * m / r**2 - g[1] * speed / (2 * r), -g[0] * 3e11 / r + g[1] * part

    return Orbit


@pytest.mark.parametrize(("wrong", "verdict"), [(0.0, Verdict.PASSED), (0.01, Verdict.FAILED), (-1, Verdict.FAILED)])
def test_a_second_derivative_hidden_by_large_terms_is_compared_without_them(unexplained, wrong, verdict):
    inputs = {name: {"shape": [3, 4], "domain": "positive"} for name in ("r", "m")}
    (case,) = gradcli.check(orbit(wrong), inputs, order=2, shrink=False, only=("gradient", "higher-order")).cases
    assert case.verdict is verdict
    assert all(e.order == 2 for e in case.evidence if e.verdict is Verdict.FAILED)


def bisection(factor):
    class Root(Function):
        """The square root, by bisection of an interval of 16."""

        @staticmethod
        def forward(ctx, x):
            low, high = engine.zeros_like(x), engine.full_like(x, 16.0)
            while float((high - low).max()) > 1e-6:
                middle = (low + high) / 2
                below = middle * middle < x
                low, high = engine.where(below, middle, low), engine.where(below, high, middle)
            y = (low + high) / 2
            ctx.save_for_backward(y)
            return y

        @staticmethod
        def backward(ctx, g):
            (y,) = ctx.saved_tensors
            return factor * g / (2 * y)

    return Root


@pytest.mark.parametrize(("factor", "verdict"), [(1.0, Verdict.PASSED), (0.5, Verdict.FAILED)])
def test_digits_of_a_bisection_are_not_called_float32(unexplained, factor, verdict):
    inputs = {"x": {"shape": [3], "domain": "positive"}}
    options = {"order": 1, "shrink": False, "samples": 1, "only": ("gradient",)}
    (case,) = gradcli.check(bisection(factor), inputs, **options).cases
    assert case.verdict is verdict
    assert not any("the outputs are float32 numbers" in str(e.note) for e in case.evidence)


@pytest.mark.parametrize(
    ("reason", "note", "advice"),
    [
        (Reason.NOISE, None, Reason.NOISE.remedy),
        (Reason.NOISE, "the number of iterations that forward runs depends on its input", "Tighten the tolerance at"),
        (Reason.NOISE, "forward's values jump (from a solver's tolerance or rounding)", "If a solver in forward stops"),
        (Reason.NO_SIGNAL, "the input or the output is empty", Reason.NO_SIGNAL.remedy),
        (Reason.NO_SIGNAL, "the gradient is below rounding errors", "Give inputs at which this derivative is larger"),
    ],
)
def test_the_advice_fits_the_note(reason, note, advice):
    (case,) = gradcli.check(bisection(1.0), {"x": {"shape": [3]}}, only=("forward",), samples=1, order=1).cases
    doubt = Evidence(check="gradient", verdict=Verdict.INCONCLUSIVE, input="x", reason=reason, note=note)
    case = replace(case, verdict=Verdict.INCONCLUSIVE, evidence=(doubt,), error=None)
    assert any(line.text.strip().startswith(advice) for line in story(case))
