"""A flag whose other value needs another rank is checked there: what is behind it may have a gradient of its own."""

import pytest

import gradcli
from gradcli.verdict import Verdict

PROGRAM = """
import {framework} as torch
from {framework}.autograd import Function


class OverTime(Function):
    @staticmethod
    def forward(ctx, x, last=False):
        y = x.sin()
        if last:
            length, batch, width = x.shape
            y = y * torch.arange(1.0, length + 1, dtype=torch.float64).reshape(length, 1, 1)
        ctx.save_for_backward(x)
        ctx.last = last
        return y

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        g = g * x.cos()
        if ctx.last and {minds}:
            g = g * torch.arange(1.0, x.shape[0] + 1, dtype=torch.float64).reshape(-1, 1, 1)
        return g, None
"""


@pytest.mark.sampled(2)
@pytest.mark.parametrize("framework", ["gradcli.engine", "torch"])
@pytest.mark.parametrize(("minds", "verdict"), [(True, Verdict.PASSED), (False, Verdict.FAILED)])
@pytest.mark.usefixtures("unexplained")
def test_the_other_value_of_a_flag_is_tried_at_another_rank(framework, minds, verdict, tmp_path):
    if framework == "torch":
        pytest.importorskip("torch")
    file = tmp_path / "written.py"
    file.write_text(PROGRAM.format(framework=framework, minds=minds))
    cases = gradcli.check(f"{file}:OverTime", order=1, shrink=False).cases
    assert verdict in {case.verdict for case in cases}, cases
    assert {case.verdict for case in cases} <= {verdict, Verdict.PASSED}
