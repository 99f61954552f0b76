"""A failure at another string, flag or None than the default names that value, and its flags show the failure."""

from __future__ import annotations

from pathlib import Path

import pytest

import gradcli
from gradcli.inputs.flags import parse_argument
from gradcli.results import CheckResult
from gradcli.runner.case import run_case
from gradcli.runner.planning.gather import gather
from gradcli.runner.planning.plan import plan
from gradcli.settings import Settings
from gradcli.verdict import Verdict

FRAMEWORKS = ("gradcli.engine", "torch")
SOURCE = """
import {framework} as torch
from {framework}.autograd import Function

class Loss(Function):
    @staticmethod
    def forward(ctx, pred, reduction='mean'):
        ctx.save_for_backward(pred)
        ctx.reduction = reduction
        loss = pred**2
        if reduction == 'mean':
            return loss.mean()
        return loss.sum() if reduction == 'sum' else loss

    @staticmethod
    def backward(ctx, g):
        (pred,) = ctx.saved_tensors
        n = pred.numel() if ctx.reduction in {means} else 1
        return {every} * 2 * g * pred / n, None

class Power(Function):
    @staticmethod
    def forward(ctx, x, inverse=False):
        ctx.save_for_backward(x)
        ctx.inverse = inverse
        return x**3 * (2 if inverse else 1)

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return {every} * 3 * g * x**2 * ({two} if ctx.inverse else 1), None

class Scaled(Function):
    @staticmethod
    def forward(ctx, x, scale: float | None = None):
        ctx.save_for_backward(x)
        ctx.scale = 1 / x.shape[-1] if scale is None else scale
        return x**2 * ctx.scale

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return {every} * 2 * g * x * {scale}, None
"""
RIGHT = {"means": "('mean',)", "every": "1", "two": "2", "scale": "ctx.scale"}


def target(folder: Path, framework: str, **parts: str) -> str:
    pytest.importorskip(framework)
    text = SOURCE
    for key, part in {**RIGHT, "framework": framework, **parts}.items():
        text = text.replace(f"{{{key}}}", part)
    (folder / "values.py").write_text(text)
    return str(folder / "values.py")


def failed(file: str, name: str) -> CheckResult:
    case = gradcli.check(f"{file}:{name}", order=1).cases[0]
    assert case.verdict is Verdict.FAILED
    return case


@pytest.mark.sampled(3)
@pytest.mark.parametrize("framework", FRAMEWORKS)
@pytest.mark.parametrize("name", ["Loss", "Power", "Scaled"])
def test_the_right_ones_pass(framework: str, name: str, tmp_path: Path) -> None:
    assert gradcli.check(f"{target(tmp_path, framework)}:{name}", order=1).verdict is Verdict.PASSED


@pytest.mark.sampled(3)
@pytest.mark.parametrize("framework", FRAMEWORKS)
@pytest.mark.parametrize(
    ("name", "part", "says"),
    [
        ("Loss", {"means": "('mean', 'sum')"}, "with reduction='sum' (default: 'mean')"),
        ("Power", {"two": "2.02"}, "with inverse=True (default: False)"),
        ("Scaled", {"scale": "(1 / x.shape[-1])"}, "(default: None)"),
    ],
)
def test_the_value_at_which_the_error_appears_is_named(
    framework: str, name: str, part: dict[str, str], says: str, tmp_path: Path
) -> None:
    file = target(tmp_path, framework, **part)
    case = failed(file, name)
    assert says in case.findings[0].message
    given = [parse_argument(f"{spec.name}={spec.value!r}") for spec in case.inputs if spec.kind == "value"]
    assert given
    (again,) = plan(gather([f"{file}:{name}"], given), Settings(order=1))
    assert run_case(again).verdict is Verdict.FAILED


@pytest.mark.sampled(1)
@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_no_value_is_named_where_the_default_fails_too(framework: str, tmp_path: Path) -> None:
    for name in ("Loss", "Power", "Scaled"):
        case = failed(target(tmp_path, framework, every="1.01"), name)
        assert "the error appears with" not in case.findings[0].message
