"""Axes whose size is fixed keep it where other sizes are tried: points have three coordinates."""

import pytest

import gradcli
from gradcli.verdict import Verdict

PROJECT = """
import {framework} as torch
from {framework}.autograd import Function


class Project(Function):
    {documentation}

    @staticmethod
    def forward(ctx, points):
        {demand}
        ctx.save_for_backward(points)
        return points[:, :2] / (2 + points[:, 2:] ** 2)

    @staticmethod
    def backward(ctx, g):
        (p,) = ctx.saved_tensors
        z = p[:, 2:]
        w = 2 + z**2
        dz = -2 * z * (g * p[:, :2]).sum(1, keepdim=True) / w**2
        return torch.cat([g / w, {factor} * dz], 1)
"""
COLUMNS = '"""Pinhole projection of points: (N, 3)."""'
WRITTEN = [
    (COLUMNS, "pass"),
    ("pass", "# points (N, 3)"),
    ("pass", "x, y, z = points.unbind(-1)"),
    ("pass", "assert points.shape[-1] == 3"),
]


@pytest.fixture(params=["gradcli.engine", "torch"])
def case_of(request, tmp_path):
    """A function that checks a program."""
    if request.param == "torch":
        pytest.importorskip("torch")

    def case(text, **values):
        file = tmp_path / "written.py"
        file.write_text(text.format(framework=request.param, **values))
        (found,) = gradcli.check(f"{file}:Project", order=1, shrink=False).cases
        return found

    return case


@pytest.mark.parametrize(("documentation", "demand"), WRITTEN)
def test_a_right_gradient_passes(case_of, documentation, demand):
    case = case_of(PROJECT, documentation=documentation, demand=demand, factor=1)
    assert case.verdict is Verdict.PASSED, (case.findings, case.error)
    assert case.inputs[0].shape[1:] == (3,)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("factor", [1.01, 0])
@pytest.mark.parametrize(("documentation", "demand"), WRITTEN[:2])
@pytest.mark.usefixtures("unexplained")
def test_a_wrong_gradient_fails(case_of, documentation, demand, factor):
    assert case_of(PROJECT, documentation=documentation, demand=demand, factor=factor).verdict is Verdict.FAILED


def test_the_other_axis_still_varies(case_of):
    wrong = "(1 if len(p) < 5 else 0.9)"
    case = case_of(PROJECT, documentation=COLUMNS, demand="pass", factor=wrong)
    assert case.verdict is Verdict.FAILED
    assert [e.check for e in case.evidence if e.verdict is Verdict.FAILED] == ["sizes"]
