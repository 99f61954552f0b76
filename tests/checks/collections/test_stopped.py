"""Iterations that stop early: right gradients pass at every order, and wrong ones fail, however large the error."""

from __future__ import annotations

import pytest

pytest.importorskip("torch", reason="the specimens are PyTorch's as well as the engine's")

import numpy as np
import torch

import gradcli
from benchmarks.correct.stopped import MISTAKES, SOLVERS, function
from gradcli import engine
from gradcli.findings import FindingKind
from gradcli.verdict import Verdict

NAMESPACES = {"torch": torch, "engine": engine}
CASES = [pytest.param(s, tuple(NAMESPACES)[k % 2], id=s.name) for k, s in enumerate(SOLVERS)]


def check(solver, backend: str, order: int, tolerance: float = 1e-6, most: int | None = None, **spoilt):
    ns, rng = NAMESPACES[backend], np.random.default_rng(len(solver.name))
    inputs = tuple(ns.tensor(draw(rng).detach().numpy()[:most], requires_grad=True) for draw in solver.draws)
    target = function(ns, solver, tolerance, **spoilt)
    only = ("gradient", "higher-order")
    (case,) = gradcli.check(target, inputs, order=order, seed=3, shrink=False, only=only).cases
    return case


@pytest.mark.sampled(4)
@pytest.mark.parametrize(("solver", "backend"), CASES)
def test_a_right_gradient_passes_at_both_orders_and_says_what_it_resolves(solver, backend) -> None:
    case = check(solver, backend, 2)
    assert case.verdict is Verdict.PASSED, case.findings
    assert {e.order for e in case.evidence if e.resolution is not None} >= {1, 2}


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    ("solver", "backend", "mistake"),
    [pytest.param(*case.values, tuple(MISTAKES)[k % 3], id=case.id) for k, case in enumerate(CASES)],
)
@pytest.mark.usefixtures("unexplained")
def test_errors_larger_than_what_stopping_leaves_fail(solver, backend, mistake) -> None:
    assert check(solver, backend, 1, factor=MISTAKES[mistake]).verdict is Verdict.FAILED


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("solver", "backend"), CASES[::2])
def test_a_solution_kept_as_a_constant_fails_at_the_second_order_only(solver, backend) -> None:
    entry_by_entry = solver.name == "bisection"  # which takes longest
    case = check(solver, backend, 2, most=2 if entry_by_entry else None, constant=True)
    assert case.verdict is Verdict.FAILED
    assert {f.order for f in case.findings} == {2}
    assert {f.kind for f in case.findings} <= {FindingKind.WRONG_SECOND_ORDER, FindingKind.NOT_TWICE_DIFFERENTIABLE}


def period(ns, factor: float = 1.0):
    """The period of a pendulum by an arithmetic-geometric mean to 1e-6, with the derivative of its limit."""

    class Period(ns.autograd.Function):
        @staticmethod
        def forward(ctx, amplitude):
            a, b = ns.ones_like(amplitude), (amplitude / 2).cos()
            while float((a - b).abs().max()) > 1e-6:
                a, b = (a + b) / 2, (a * b).sqrt()
            ctx.save_for_backward(amplitude)
            return np.pi / 2 / a

        @staticmethod
        def backward(ctx, g):
            (amplitude,) = ctx.saved_tensors
            k = (amplitude / 2).sin()
            a, b = ns.ones_like(k), (1 - k * k).sqrt()
            rest, power = 1 - 0.5 * k * k, 0.5
            for _ in range(8):
                a, b, c, power = (a + b) / 2, (a * b).sqrt(), (a - b) / 2, 2 * power
                rest = rest - power * c * c
            first = np.pi / 2 / a
            return factor * g * (first * rest / (1 - k * k) - first) / k * (amplitude / 2).cos() / 2

    return Period


@pytest.mark.sampled(2)
@pytest.mark.parametrize("backend", NAMESPACES)
@pytest.mark.parametrize(("factor", "verdict"), [(1, Verdict.PASSED), (1.01, Verdict.FAILED)])
@pytest.mark.usefixtures("unexplained")
def test_a_jump_where_the_number_of_steps_changes_is_no_kink(backend, factor, verdict) -> None:
    amplitude = {"shape": [2, 3], "domain": "open-interval", "lo": 0.1, "hi": 2.5}
    target = period(NAMESPACES[backend], factor)
    (case,) = gradcli.check(target, {"amplitude": amplitude}, order=1, shrink=False, only=("gradient",)).cases
    assert case.verdict is verdict
