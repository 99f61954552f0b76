"""Names that stand for a flag alone stand for tensors in pairs: the lower and the upper limit of a clamp."""

import pytest

import gradcli
from gradcli.verdict import Verdict

PROGRAM = """
import {framework} as torch
from {framework}.autograd import Function


class Between(Function):
    @staticmethod
    def forward(ctx, x, lower, upper):
        ctx.save_for_backward(x, lower, upper)
        return torch.minimum(torch.maximum(x, lower), upper)

    @staticmethod
    def backward(ctx, g):
        given = x, lower, upper = ctx.saved_tensors
        zero = torch.zeros_like(g)
        parts = (x > lower) & (x < upper), x <= lower, x >= upper
        return tuple({factor} * torch.where(part, g, zero).sum_to_size(a.shape) for part, a in zip(parts, given))
"""


@pytest.mark.sampled(2)
@pytest.mark.parametrize("framework", ["gradcli.engine", "torch"])
@pytest.mark.parametrize(("factor", "verdict"), [(1.0, Verdict.PASSED), (1.01, Verdict.FAILED)])
def test_a_lower_and_an_upper_limit_are_tensors(framework, factor, verdict, tmp_path):
    if framework == "torch":
        pytest.importorskip("torch")
    file = tmp_path / "written.py"
    file.write_text(PROGRAM.format(framework=framework, factor=factor))
    case = gradcli.check(f"{file}:Between", order=1, shrink=False).cases[0]
    assert case.verdict is verdict, case.error
    assert [spec.kind for spec in case.inputs] == ["tensor"] * 3
