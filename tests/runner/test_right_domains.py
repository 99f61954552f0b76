"""A domain is said to hold a right gradient only where it is right at inputs of it that would show the error."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gradcli
from gradcli.results import CheckResult
from gradcli.verdict import Verdict

FRAMEWORKS = ("gradcli.engine", "torch")
SOURCE = """
import {framework} as torch
from {framework}.autograd import Function

class Hinge(Function):
    @staticmethod
    def forward(ctx, b, c):
        d = b * b - c * c - 4
        hit = d > 0
        ctx.save_for_backward(b, c, hit)
        return torch.where(hit, torch.where(hit, d, torch.ones_like(d)).sqrt(), torch.zeros_like(d))

    @staticmethod
    def backward(ctx, g):
        b, c, hit = ctx.saved_tensors
        r = torch.where(hit, b * b - c * c - 4, torch.ones_like(b)).sqrt()
        k = torch.where(hit, g / r, torch.zeros_like(g))
        return k * b, -k * {hinge}

class Pairs(Function):
    @staticmethod
    def forward(ctx, pos):
        ctx.save_for_backward(pos)
        d = pos[:, None] - pos[None]
        return ((9 - (d * d).sum(-1)).clamp(min=0) ** 2).sum()

    @staticmethod
    def backward(ctx, g):
        (pos,) = ctx.saved_tensors
        d = pos[:, None] - pos[None]
        r2 = (d * d).sum(-1)
        near = torch.where(r2 < {cutoff}, 9 - r2, torch.zeros_like(r2))
        return -8 * g * (near[:, :, None] * d).sum(1)

class Kernel(Function):
    @staticmethod
    def forward(ctx, x, y):
        d = x[:, None] - y[None]
        k = torch.exp(-0.5 * (d * d).sum(-1))
        ctx.save_for_backward(x, y)
        return k

    @staticmethod
    def backward(ctx, g):
        x, y = ctx.saved_tensors
        d = x[:, None] - y[None]
        k = g * torch.exp({rounded})
        return -(k[:, :, None] * d).sum(1), (k[:, :, None] * d).sum(0)
"""
EXACT = "-0.5 * (d * d).sum(-1)"
ROUNDED = "((-0.5 * (d * d).sum(-1)) * 2**20).round() / 2**20"


def checked(folder: Path, framework: str, name: str, **parts: str) -> CheckResult:
    pytest.importorskip(framework)
    text = SOURCE
    for key, part in {"hinge": "c", "cutoff": "9", "rounded": EXACT, "framework": framework, **parts}.items():
        text = text.replace(f"{{{key}}}", part)
    file = folder / "domains.py"
    file.write_text(text)
    return gradcli.check(f"{file}:{name}", order=1).cases[0]


def told(case: CheckResult) -> str:
    return " ".join((*(f.message for f in case.findings), *case.notes))


@pytest.mark.sampled(3)
@pytest.mark.parametrize("framework", FRAMEWORKS)
@pytest.mark.parametrize("name", ["Hinge", "Pairs", "Kernel"])
def test_the_right_ones_pass(framework: str, name: str, tmp_path: Path) -> None:
    assert checked(tmp_path, framework, name).verdict is Verdict.PASSED


@pytest.mark.sampled(2)
@pytest.mark.parametrize("framework", FRAMEWORKS)
@pytest.mark.parametrize(("name", "part"), [("Hinge", {"hinge": "b"}), ("Pairs", {"cutoff": "3"})])
def test_inputs_at_which_the_error_cannot_show_excuse_nothing(
    framework: str, name: str, part: dict[str, str], tmp_path: Path
) -> None:
    case = checked(tmp_path, framework, name, **part)
    assert case.verdict is Verdict.FAILED
    assert "right where" not in told(case)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_an_error_near_the_resolution_is_not_called_absent_anywhere(framework: str, tmp_path: Path) -> None:
    case = checked(tmp_path, framework, "Kernel", rounded=ROUNDED)
    assert case.verdict is Verdict.FAILED
    assert "right w" not in told(case)
    assert "the others are right" not in told(case)


def test_a_rounded_factor_in_backward_is_named_with_its_line(tmp_path: Path) -> None:
    """No entry of the gradient is a float32 value. The engine keeps the precision of grad_output."""
    case = checked(tmp_path, "torch", "Kernel", rounded=f"({EXACT} + 8).float() - 8")
    assert case.verdict is Verdict.FAILED
    assert {f.kind.value for f in case.findings} == {"low-precision"}, told(case)
    location = case.findings[0].location
    assert location is not None
    assert ".float()" in Path(location.file).read_text().splitlines()[location.line - 1]
    assert "right w" not in told(case)


def contrastive(least: float) -> Callable[..., Any]:
    def loss_and_grads(x1, x2, same, margin=1.0):
        """x1, x2: (N, D); same: (N,) boolean mask"""
        diff = x1 - x2
        d = np.sqrt((diff**2).sum(1) + 1e-12)
        gap = margin - d
        loss = np.mean(np.where(same, d**2, np.maximum(gap, 0) ** 2))
        k = np.where(same, 2.0, np.where(gap > least, -2 * gap / d, 0.0)) / len(x1)
        return loss, k[:, None] * diff, -k[:, None] * diff

    return loss_and_grads


def test_a_threshold_on_a_difference_is_not_excused_by_positive_inputs() -> None:
    (right,) = gradcli.check(contrastive(0.0)).cases
    (wrong,) = gradcli.check(contrastive(1.0)).cases
    assert (right.verdict, wrong.verdict) == (Verdict.PASSED, Verdict.FAILED)
    assert "right where" not in told(wrong)


CLAMPED = """
import gradcli.engine as ns

class Inner(ns.autograd.Function):
    low = 0.5

    @staticmethod
    def forward(ctx, x, w):
        x = ns.clamp(x, {low})
        ctx.save_for_backward(x, w)
        return {value}

    @staticmethod
    def backward(ctx, g):
        x, w = ctx.saved_tensors
        return {by_x}, {by_w}
"""
ROOT = {"low": "min=1 - 0.5", "value": "w * (x - 0.25).sqrt()", "by_w": "g * (x - 0.25).sqrt()"}
RANGE = "the gradient is right for values between 0.5 and 2.5"


@pytest.mark.parametrize(
    ("parts", "fails", "says"),
    [
        ({**ROOT, "by_x": "g * w / (2 * (x - 0.25).sqrt()) * (x > 0.5)"}, False, False),
        ({**ROOT, "by_x": "g * w / (2 * (x - 0.25).sqrt())"}, True, True),
        ({**ROOT, "by_x": "g * w / (3 * (x - 0.25).sqrt())"}, True, False),
        ({**ROOT, "by_x": "g * w / (2 * (x - 0.25).sqrt())", "low": "min=Inner.low"}, True, True),
        ({**ROOT, "by_x": "g * w / (3 * (x - 0.25).sqrt())", "low": "min=Inner.low"}, True, False),
        ({"low": "min=0.5", "value": "x * 3 + w", "by_x": "g * 3", "by_w": "g"}, True, False),
    ],
)
def test_a_range_that_forward_clamps_to_is_named_where_the_gradient_is_right_in_it(
    parts: dict[str, str], fails: bool, says: bool, tmp_path: Path
) -> None:
    file = tmp_path / "inner.py"
    file.write_text(CLAMPED.format(**parts))
    (case,) = gradcli.check(str(file), order=1, samples=1).cases
    assert (case.verdict is Verdict.FAILED) == fails
    assert any(RANGE in note and "-i x=3x4,domain=open-interval,lo=0.5,hi=2.5" in note for note in case.notes) == says
    assert not (says and any("surrogate" in finding.message for finding in case.findings))
