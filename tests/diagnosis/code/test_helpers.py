"""The line shown is in a helper function, where backward only calls that for a gradient."""

import pytest

import gradcli
from gradcli.verdict import Verdict

SOURCE = """
import {framework} as torch
from {framework}.autograd import Function

{decorator}
def slope(x, g):
    inside = (x.abs() < 1) * {slope}
    return g * inside

class Cubed(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        {before}
        return torch.where(x.abs() < 1, torch.sin(x * x) * x, torch.zeros_like(x))

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return {call}
"""
RIGHT = "(torch.sin(x * x) + 2 * x * x * torch.cos(x * x))"
WRONG = "(torch.sin(x * x) + torch.cos(x) * torch.cos(3 * x) * x)"


@pytest.mark.parametrize(
    ("framework", "decorator"), [("gradcli.engine", ""), ("torch", ""), ("torch", "@torch.jit.script")]
)
@pytest.mark.parametrize(
    ("text", "call", "before", "marked"),
    [
        (RIGHT, "slope(x, g)", "", None),
        (WRONG, "slope(x, g)", "", "inside ="),
        (WRONG, "slope(x, g * 1)", "", "return slope("),
        (WRONG, "slope(x, g)", "slope(x, x)", "return slope("),
    ],
)
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_the_line_is_that_of_the_helper(framework, decorator, text, call, before, marked, tmp_path):
    pytest.importorskip(framework)
    path = tmp_path / "helped.py"
    source = SOURCE.format(framework=framework, decorator=decorator, slope=text, call=call, before=before)
    path.write_text(source)
    inputs = {"x": {"shape": [3, 4], "domain": "open-interval", "lo": -0.9, "hi": 0.9}}
    case = gradcli.check(f"{path}:Cubed", inputs, order=1, samples=1, only=("gradient",), shrink=False).cases[0]
    assert case.verdict is (Verdict.PASSED if marked is None else Verdict.FAILED)
    for finding in case.findings:
        assert marked in source.splitlines()[finding.location.line - 1]
