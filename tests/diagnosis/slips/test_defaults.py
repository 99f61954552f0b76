"""A correction is named only if the gradient is right with it for forward's defaults too."""

import pytest

import gradcli
from gradcli.verdict import Verdict

FRAMEWORKS = ("gradcli.engine", "torch")
SOURCE = """
import {framework} as torch
from {framework}.autograd import Function

class Scaled(Function):
    @staticmethod
    def forward(ctx, x, dim=-1):
        ctx.save_for_backward(x)
        ctx.dim = dim
        return x * x.sum(dim, keepdim=True)

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * x.sum(ctx.dim, keepdim=True) + (g * x).sum({axis}, keepdim=True), None

class Gated(Function):
    @staticmethod
    def forward(ctx, x, training=True):
        ctx.training = training
        ctx.save_for_backward(x)
        return x.sin() if training else x * 1

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        if ctx.training == {flag}:
            return g * x.cos(), None
        return {other}, None
"""


@pytest.fixture(params=FRAMEWORKS)
def checked(request, tmp_path):
    if request.param == "torch":
        pytest.importorskip("torch")

    def check(name: str, axis: str = "ctx.dim", flag: str = "True", other: str = "g * 1"):
        file = tmp_path / "scaled.py"
        file.write_text(SOURCE.format(framework=request.param, axis=axis, flag=flag, other=other))
        return gradcli.check(f"{file}:{name}", order=1, shrink=False).cases[0]

    return check


@pytest.mark.sampled(1)
def test_an_axis_that_is_right_only_for_the_default_is_the_argument(checked):
    case = checked("Scaled", axis="-1")
    assert case.verdict is Verdict.FAILED
    assert "where `(g * x).sum(ctx.dim, keepdim=True)` belongs" in case.findings[0].message


@pytest.mark.sampled(1)
def test_an_edit_that_breaks_the_default_is_not_named(checked):
    case = checked("Gated", other="g * x.cos() * 2")  # with `!=` for `==` training would be wrong
    assert case.verdict is Verdict.FAILED
    assert "ctx.training" not in case.findings[0].message


def test_an_edit_that_is_right_for_both_is_named(checked):
    case = checked("Gated", flag="False", other="g * 1")
    assert case.verdict is Verdict.FAILED
    assert "with this corrected, the returned gradient is right" in case.findings[0].message


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", ["Scaled", "Gated"])
def test_the_right_twins_pass(checked, name):
    assert checked(name).verdict is Verdict.PASSED
