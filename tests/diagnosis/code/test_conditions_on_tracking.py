"""A gradient that depends on what else requires one: the condition at fault is shown, and all such inputs are named."""

from pathlib import Path

import pytest

import gradcli
from gradcli.verdict import Verdict

pytestmark = pytest.mark.usefixtures("uncorrected")

QUARTERS = """
from {framework}.autograd import Function

class Quarters(Function):
    @staticmethod
    def forward(ctx, x, a, b, c):
        ctx.save_for_backward(x, a, b, c)
        return x * (a + b + c)

    @staticmethod
    def backward(ctx, g):
        x, a, b, c = ctx.saved_tensors
        grad_x = grad_a = grad_b = grad_c = None
        if ctx.needs_input_grad[0]:
            grad_x = g * (a + b + c)
        {condition}:
            whole = g * x
            grad_a = whole
            grad_b = whole
            grad_c = whole
        return grad_x, grad_a, grad_b, grad_c
"""
CONDITIONS = {
    "if ctx.needs_input_grad[1]": False,
    "if any(ctx.needs_input_grad[1:])": True,
    "if ctx.needs_input_grad[1] or ctx.needs_input_grad[2] or ctx.needs_input_grad[3]": True,
}


@pytest.mark.parametrize("framework", ["gradcli.engine", "torch"])
@pytest.mark.parametrize("condition", CONDITIONS)
def test_the_condition_on_another_input_is_shown(framework: str, condition: str, tmp_path: Path) -> None:
    pytest.importorskip(framework)
    file = tmp_path / "quarters.py"
    file.write_text(QUARTERS.format(framework=framework, condition=condition))
    case = gradcli.check(f"{file}:Quarters", order=1, shrink=False).cases[0]
    assert (case.verdict is Verdict.PASSED) == CONDITIONS[condition]
    for finding in case.findings:
        assert finding.kind.value == "needs-input-grad"
        assert finding.input == "b"
        assert finding.message.endswith("so does that of c, if it alone does")
        assert finding.location is not None
        assert condition in file.read_text().splitlines()[finding.location.line - 1]
