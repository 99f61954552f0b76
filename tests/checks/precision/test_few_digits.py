"""Forwards that hide few digits from autodiff: a wrong backward fails, with the right entries; a right one passes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gradcli
from gradcli import engine
from gradcli.engine.autograd import Function
from gradcli.results import CheckResult
from gradcli.verdict import Verdict

POINT = np.array([0.7, -1.3, 0.21, 2.2])


def rounded_sine(factor: float, digits: Any) -> type[Function]:
    """A sine whose values go through few digits in NumPy, with a cosine times a factor as its gradient."""

    class Rounded(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return engine.tensor(digits(np.sin(x.detach().numpy())))

        @staticmethod
        def backward(ctx: Any, grad_output: Any) -> Any:
            (x,) = ctx.saved_tensors
            return factor * grad_output * engine.cos(x)

    return Rounded


def half(values: np.ndarray) -> np.ndarray:
    return values.astype(np.float16).astype(np.float64)


def single(values: np.ndarray) -> np.ndarray:
    return values.astype(np.float32).astype(np.float64)


def three_digits(values: np.ndarray) -> np.ndarray:
    return np.round(values, 3)


def check(factor: float, digits: Any) -> CheckResult:
    inputs = (engine.tensor(POINT, requires_grad=True),)
    (result,) = gradcli.check(rounded_sine(factor, digits), inputs, order=1, shrink=False, only=["gradient"]).cases
    return result


@pytest.mark.sampled(2)
@pytest.mark.parametrize("digits", [half, single, three_digits])
@pytest.mark.parametrize("factor", [-1.0, 1.1, 1e-4])
def test_a_wrong_factor_fails_and_its_entries_are_those_of_the_cosine(factor: float, digits: Any) -> None:
    result = check(factor, digits)
    assert result.verdict is Verdict.FAILED
    (finding,) = result.findings
    assert finding.entries
    for entry in finding.entries:
        assert entry.analytic == pytest.approx(factor * np.cos(POINT[entry.index]))
        assert abs(entry.numeric - np.cos(POINT[entry.index])) <= 3 * entry.bound
        assert abs(entry.numeric - entry.analytic) > 3 * entry.bound


@pytest.mark.parametrize("digits", [half, single, three_digits])
def test_the_right_gradient_passes_at_a_resolution_that_is_told(digits: Any) -> None:
    result = check(1.0, digits)
    assert result.verdict is Verdict.PASSED
    assert result.resolution is not None
    assert 1e-8 < result.resolution < 0.1


@pytest.mark.parametrize(("power", "verdict"), [(3, Verdict.PASSED), (2, Verdict.FAILED)])
@pytest.mark.usefixtures("unexplained")
def test_a_product_in_single_precision_that_is_linear_in_one_factor(power: int, verdict: Verdict) -> None:
    """Its second derivative by the factor is zero, which noisy values would not show; that they stay the same does."""
    torch = pytest.importorskip("torch")

    class Scaled(torch.autograd.Function):  # type: ignore[misc, name-defined]
        @staticmethod
        def forward(ctx: Any, x: Any, w: Any) -> Any:
            ctx.save_for_backward(x, w)
            single = x.float()
            return (single * torch.rsqrt(1 + single * single) * w.float()).to(x.dtype)

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            x, w = ctx.saved_tensors
            single, root = x.float(), torch.rsqrt(1 + x.float() ** 2)
            by_x, by_w = g.float() * w.float() * root**power, g.float() * single * root
            return by_x.to(x.dtype), by_w.sum(0).to(w.dtype)

    (case,) = gradcli.check(Scaled, shrink=False).cases
    assert case.verdict is verdict, case


def hill(factor: float) -> type[Function]:
    """exp(-x²) in float32. Its gradient multiplies that by float64 numbers, and has a factor at order 2 alone."""

    class Peak(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return engine.tensor(single(np.exp(-(x.detach().numpy() ** 2))))

        @staticmethod
        def backward(ctx: Any, grad_output: Any) -> Any:
            (x,) = ctx.saved_tensors
            return -2 * factor * grad_output * x * Peak.apply(x)

    class Hill(Function):
        forward = Peak.forward

        @staticmethod
        def backward(ctx: Any, grad_output: Any) -> Any:
            (x,) = ctx.saved_tensors
            return -2 * grad_output * x * Peak.apply(x)

    return Hill


@pytest.mark.parametrize(
    ("factor", "verdict"),
    [(1.0, Verdict.PASSED), (1.001, Verdict.FAILED), (0.0, Verdict.FAILED), (2.0, Verdict.FAILED)],
)
@pytest.mark.parametrize("size", [4, 12])
@pytest.mark.usefixtures("unexplained")
def test_a_second_derivative_of_float32_times_float64(size: int, factor: float, verdict: Verdict) -> None:
    """Between the jumps of float32 values their product with float64 has a slope, which nobody means."""
    x = engine.tensor(np.random.default_rng(0).normal(size=size), requires_grad=True)
    (result,) = gradcli.check(hill(factor), (x,), order=2, shrink=False).cases
    assert result.verdict is verdict
    wrong = {(e.order, e.input) for e in result.evidence if e.verdict is Verdict.FAILED}
    assert wrong <= {(2, "x")}
