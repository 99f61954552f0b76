"""A backward that iterates to an absolute tolerance may not end for the large cotangents of checks."""

import pytest

import gradcli
from gradcli.verdict import Verdict

PROGRAM = """
import {framework} as torch
from {framework}.autograd import Function


class Solved(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.sin()

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        while float(g.abs().max()) > {limit}:  # rounding exceeds the tolerance
            pass
        return {factor} * g * x.cos()
"""


@pytest.mark.sampled(2)
@pytest.mark.parametrize("framework", ["gradcli.engine", "torch"])
@pytest.mark.parametrize(("factor", "verdict"), [(1.0, Verdict.PASSED), (1.01, Verdict.FAILED)])
@pytest.mark.usefixtures("unexplained")
def test_the_check_goes_on_without_them(framework, factor, verdict, tmp_path):
    if framework == "torch":
        pytest.importorskip("torch")
    file = tmp_path / "solved.py"
    file.write_text(PROGRAM.format(framework=framework, factor=factor, limit=2000.0))
    (case,) = gradcli.check(f"{file}:Solved", {"x": {"shape": [3]}}, order=1, shrink=False).cases
    assert case.verdict is verdict, (case.findings, case.error)
    assert any("were stopped after 1 s" in note for note in case.notes)
