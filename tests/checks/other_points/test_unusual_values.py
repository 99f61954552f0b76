"""Of two inputs whose difference decides, the one with an unusual value is named; and matrices out of the ordinary."""

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import gradcli
from gradcli.cases import Argument
from gradcli.checks.other_points.failing import _label, _unusual
from gradcli.checks.other_points.proof import Wrong
from gradcli.engine import autograd
from gradcli.verdict import Verdict

PRED = Argument(name="pred", value=np.array([0.5, -1.5]), is_tensor=True)
TARGET = replace(PRED, name="target", value=np.array([0.25, 1.0]))


@pytest.mark.parametrize(
    ("entry", "pred", "target", "named"),
    [
        ("pred[1]", 0.7, 800.0, "target[1]"),
        ("pred[1]", 700.0, 800.0, "pred[1]"),
        ("pred[1]", 0.7, 0.5, "pred[1]"),
        ("pred[1]", 0.700813, 0.5, None),
        ("pred[1]", 1.600813, 0.5, "pred[1]"),
        ("the real part of pred[1]", 0.7, 800.0, "the real part of pred[1]"),
    ],
)
def test_the_entry_that_is_named(entry: str, pred: float, target: float, named: str | None) -> None:
    tried = [replace(PRED, value=np.array([0.5, pred])), replace(TARGET, value=np.array([0.25, target]))]
    found = _unusual([PRED, TARGET], tried, Wrong(input="pred", entry=entry, value=pred))
    assert found.entry == named


@pytest.mark.parametrize(
    ("value", "told"),
    [(1.0, "1"), (1 - 5e-13, "0.9999999999995"), (0.7008134, "0.700813"), (-800.0, "-800"), (1e-300, "1e-300")],
)
def test_a_value_near_a_round_one_is_told_from_it(value: float, told: str) -> None:
    assert f"where x = {told}, a value" in _label([], Wrong(input="x", entry="x", value=value))


def test_an_entry_that_was_drawn_is_no_cause() -> None:
    drawn = replace(PRED, value=np.array([[0.5, -1.5], [0.7, 1.0]]))
    for value, named in (([[0.5, -900.0], [0.7, 800.0]], "pred[1, 1]"), ([[0.5, -1.5], [0.7, 1.1]], None)):
        tried = [replace(drawn, value=np.array(value)), TARGET]
        found = _unusual([drawn, TARGET], tried, Wrong(input="pred", entry="pred[1, 0]", value=0.7))
        assert found.entry == named


def rows(unit: float) -> type[autograd.Function]:
    """A softmax of rows, its gradient wrong by a factor where an entry has a probability of exactly 1."""

    class Rows(autograd.Function):
        @staticmethod
        def forward(ctx, x):
            grown = (x - x.max(1, keepdim=True)[0]).exp()
            ctx.save_for_backward(shares := grown / grown.sum(1, keepdim=True))
            return shares * 1

        @staticmethod
        def backward(ctx, g):
            (shares,) = ctx.saved_tensors
            off = (shares.max(1, keepdim=True)[0] == 1).to(g.dtype) * unit
            return shares * (g - (g * shares).sum(1, keepdim=True)) + off

    return Rows


@pytest.mark.parametrize("unit", [0.0, 1.0])
def test_the_value_that_saturates_a_row_is_named(unit: float) -> None:
    case = gradcli.check(rows(unit), {"x": {"shape": [3, 4]}}, order=1, samples=1, shrink=False).cases[0]
    assert (case.verdict is Verdict.FAILED) == bool(unit)
    for finding in case.findings:
        value = re.search(r"= (\S+), a value that gradcli tried", finding.message)
        assert value is None or abs(float(value[1])) > 10


def clipped(limit: float) -> type[autograd.Function]:
    class LogCosh(autograd.Function):
        @staticmethod
        def forward(ctx, pred, target):
            difference = pred - target
            ctx.save_for_backward(difference)
            size = difference.abs()
            return (size + (-2 * size).exp().log1p()).mean()

        @staticmethod
        def backward(ctx, g):
            (difference,) = ctx.saved_tensors
            gradient = g * difference.tanh() / difference.numel()
            gradient = gradient * (1 - 2 * (difference < -limit).to(gradient.dtype))
            return gradient, -gradient

    return LogCosh


def test_a_loss_that_is_wrong_at_large_differences() -> None:
    inputs = {"pred": {"shape": [3, 4]}, "target": {"shape": [3, 4]}}
    options = {"order": 1, "samples": 1, "shrink": False}
    assert gradcli.check(clipped(np.inf), inputs, **options).cases[0].verdict is Verdict.PASSED
    case = gradcli.check(clipped(6.0), inputs, **options).cases[0]
    assert case.verdict is Verdict.FAILED
    told = [re.search(r"= (\S+), a value that gradcli tried", finding.message) for finding in case.findings]
    assert all(abs(float(value[1])) > 5 for value in told if value is not None)
    assert any(told)


def logarithmic_mean(ns: Any, limit: float, factor: float) -> Any:
    """(a - b) / log(a / b); its limit where they differ by less than `limit`, there with a gradient of `factor` / 2."""

    class LogarithmicMean(ns.autograd.Function):
        @staticmethod
        def forward(ctx: Any, a: Any, b: Any) -> Any:
            ctx.save_for_backward(a, b)
            d = (a / b).log()
            near = d.abs() < limit
            safe = ns.where(near, ns.ones_like(d), d)
            return ns.where(near, (a * b).sqrt() * (1 + d * d / 24), (a - b) / safe)

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            a, b = ctx.saved_tensors
            d = (a / b).log()
            near = d.abs() < limit
            safe = ns.where(near, ns.ones_like(d), d)
            mean, middle = (a - b) / safe, (a * b).sqrt()
            sides = [factor * middle / c * (0.5 * (1 + d * d / 24) + sign * d / 12) for c, sign in ((a, 1), (b, -1))]
            return g * ns.where(near, sides[0], (1 - mean / a) / safe), g * ns.where(
                near, sides[1], (mean / b - 1) / safe
            )

    return LogarithmicMean


@pytest.mark.sampled(2)
@pytest.mark.parametrize("limit", [1e-3, 1e-5])
@pytest.mark.parametrize(("factor", "verdict"), [(1, Verdict.PASSED), (2, Verdict.FAILED), (1.1, Verdict.FAILED)])
def test_a_narrow_branch_for_equal_entries_counts(ns: Any, limit: float, factor: float, verdict: Verdict) -> None:
    inputs = {name: {"shape": [2], "domain": "positive"} for name in "ab"}
    (case,) = gradcli.check(logarithmic_mean(ns, limit, factor), inputs, order=1, samples=1, shrink=False).cases
    assert case.verdict is verdict, case.notes
    assert all("are equal" in finding.message for finding in case.findings)


def spectral(torch, a, values):
    """A function of a symmetric matrix by its eigenvalues."""
    w, v = torch.linalg.eigh((a + a.T) / 2)
    return v @ torch.diag(values(w)) @ v.T


def of_spectral(torch, a, g, mended):
    """The derivative of the square by its divided differences, which are 0 / 0 for equal eigenvalues."""
    w, v = torch.linalg.eigh((a + a.T) / 2)
    apart = w[:, None] - w[None, :]
    slopes = (w[:, None] ** 2 - w[None, :] ** 2) / torch.where(apart == 0, 1.0, apart) if mended else None
    slopes = (w[:, None] ** 2 - w[None, :] ** 2) / apart if slopes is None else slopes
    same = apart == 0 if mended else torch.eye(len(w), dtype=torch.bool)
    slopes = torch.where(same, w[:, None] + w[None, :], slopes)
    found = v @ (slopes * (v.T @ g @ v)) @ v.T
    return (found + found.T) / 2


def largest(torch, a, _):
    return torch.linalg.eigvalsh(a)[-1]


def of_largest(torch, a, g, mended):
    _, v = torch.linalg.eigh(a)
    return g * torch.outer(v[:, -1], v[:, -1])


def eigenvectors(torch, a, _):
    _, v = torch.linalg.eigh((a + a.T) / 2)
    return v * v


def of_eigenvectors(torch, a, g, mended):
    w, v = torch.linalg.eigh((a + a.T) / 2)
    apart = w[None, :] - w[:, None]
    inverse = torch.where(torch.eye(len(w), dtype=torch.bool), 0.0, 1 / apart)
    found = v @ (inverse * (v.T @ (2 * g * v))) @ v.T
    return (found + found.T) / 2


@pytest.mark.parametrize(
    ("forward", "backward", "mended", "verdict"),
    [
        (spectral, of_spectral, True, Verdict.PASSED),
        (spectral, of_spectral, False, Verdict.FAILED),
        (largest, of_largest, True, Verdict.PASSED),
        (eigenvectors, of_eigenvectors, True, Verdict.PASSED),
    ],
    ids=["right", "wrong", "a kink", "no derivative"],
)
@pytest.mark.usefixtures("unexplained")
def test_a_matrix_of_equal_eigenvalues(forward, backward, mended, verdict):
    torch = pytest.importorskip("torch")

    class OfMatrix(torch.autograd.Function):
        @staticmethod
        def forward(ctx, a):
            ctx.save_for_backward(a)
            return forward(torch, a, lambda w: w * w)

        @staticmethod
        @torch.autograd.function.once_differentiable
        def backward(ctx, g):
            return backward(torch, ctx.saved_tensors[0], g, mended)

    inputs = {"a": {"shape": [3, 3], "domain": "spd"}}
    (case,) = gradcli.check(OfMatrix, inputs, order=1, shrink=False, samples=1).cases
    assert case.verdict is verdict
    failed = [e for e in case.evidence if e.verdict is Verdict.FAILED]
    assert [e.check for e in failed] == (["other-inputs"] if verdict is Verdict.FAILED else [])
    assert all("where a is a multiple of the identity" in str(e.note) for e in failed)
    assert not any("is wrong" in note for note in case.notes)
