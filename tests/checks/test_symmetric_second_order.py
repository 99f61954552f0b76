"""Second derivatives of a forward that reads one triangle of a symmetric matrix: right ones pass, wrong ones fail."""

import pytest

import gradcli
from gradcli.verdict import Verdict

PROGRAM = """
import {framework} as torch
from {framework}.autograd import Function


class CholeskySolve(Function):
    @staticmethod
    def forward(ctx, a, b):
        lower = torch.linalg.cholesky(a)
        y = torch.linalg.solve_triangular(lower, b, upper=False)
        x = torch.linalg.solve_triangular(lower.mT, y, upper=True)
        ctx.save_for_backward(a, x)
        return x

    @staticmethod
    def backward(ctx, g):
        a, x = ctx.saved_tensors
        of_b = torch.linalg.solve(a, g)
        of_a = -of_b @ x.mT
        of_a = 0.5 * (of_a + of_a.mT)
        return {of_a}, {of_b}
"""
INPUTS = {"a": {"shape": [3, 3], "domain": "spd"}, "b": {"shape": [3, 2]}}


@pytest.mark.sampled(5)
@pytest.mark.parametrize("framework", ["gradcli.engine", "torch"])
@pytest.mark.parametrize(
    ("of_a", "of_b", "verdict"),
    [
        ("of_a", "of_b", Verdict.PASSED),
        ("of_a.detach()", "of_b", Verdict.FAILED),
        ("of_a * (1 + 0.01 * (a - a.detach()).sum())", "of_b", Verdict.FAILED),
        ("of_a", "of_b * (1 + 0.01 * (a - a.detach()).sum())", Verdict.FAILED),
        ("1.01 * of_a", "of_b", Verdict.FAILED),
    ],
    ids=["right", "cut", "one percent of a", "one percent of b", "first order"],
)
@pytest.mark.usefixtures("unexplained")
def test_both_orders_hold_for_symmetric_changes(framework, of_a, of_b, verdict, tmp_path):
    if framework == "torch":
        pytest.importorskip("torch")
    file = tmp_path / "solved.py"
    file.write_text(PROGRAM.format(framework=framework, of_a=of_a, of_b=of_b))
    (case,) = gradcli.check(f"{file}:CholeskySolve", INPUTS, samples=1, shrink=False).cases
    assert case.verdict is verdict, (case.findings, case.error)
    assert verdict is Verdict.FAILED or case.orders == (1, 2)
