"""A factor that is an expression of sizes in the source is told from a plain number by inputs of another size."""

import pytest

import gradcli
from gradcli.verdict import Verdict

SCALED = """import math
import {framework} as torch
from {framework}.autograd import Function


class Scaled(Function):
    @staticmethod
    def forward(ctx, x, w):
        {insists}
        scale = {scale}
        ctx.save_for_backward(x, w)
        ctx.scale = scale
        return (x * w).sin() * scale

    @staticmethod
    def backward(ctx, g):
        x, w = ctx.saved_tensors
        g = g * (x * w).cos()
        return g * w * ctx.scale, {of_w}
"""
FRAMEWORKS = ("gradcli.engine", "torch")
ROOT = "1 / math.sqrt(x.shape[-1])"


@pytest.mark.sampled(6)
@pytest.mark.parametrize("framework", FRAMEWORKS)
@pytest.mark.parametrize(
    ("scale", "insists", "of_w", "said", "not_said"),
    [
        (ROOT, "pass", "g * x", "2 is the value of math.sqrt(x.shape[-1]) in line 10, and at other sizes", "may be"),
        ("x.shape[-1] ** -0.5", "pass", "g * x", "0.5 is the value of x.shape[-1] ** (-0.5) in line 10, and", "may be"),
        (ROOT, "pass", "2 * g * x * ctx.scale", "2 times the right one everywhere", "is the value of"),
        (ROOT, "pass", "-2 * g * x * ctx.scale", "-2 times the right one everywhere", "is the value of"),
        (ROOT, "pass", "1.01 * g * x * ctx.scale", "1.01 times the right one everywhere", "is the value of"),
        (ROOT, "assert x.shape[-1] == 4", "g * x", "in line 10, so at other sizes the factor may be another", "and at"),
        ("0.5", "pass", "g * x", "2 times the right one everywhere", "is the value of"),
    ],
)
def test_a_factor_of_sizes_is_named(framework, scale, insists, of_w, said, not_said, tmp_path):
    pytest.importorskip(framework.partition(".")[0])
    for wrong, verdict in ((of_w, Verdict.FAILED), ("g * x * ctx.scale", Verdict.PASSED)):
        path = tmp_path / f"{verdict.name.lower()}.py"
        path.write_text(SCALED.format(framework=framework, scale=scale, insists=insists, of_w=wrong))
        inputs = {name: {"shape": [3, 4]} for name in "xw"}
        case = gradcli.check(f"{path}:Scaled", inputs, order=1, samples=1, shrink=False).cases[0]
        assert case.verdict is verdict
        for finding in case.findings:
            assert said in finding.message
            assert not_said not in finding.message
