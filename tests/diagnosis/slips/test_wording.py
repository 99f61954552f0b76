"""What a correction says where it takes a name of forward's that backward does not have."""

import pytest

import gradcli
from gradcli.verdict import Verdict

SOURCE = """
import {framework} as torch
from {framework}.autograd import Function

class Shifted(Function):
    @staticmethod
    def forward(ctx, x, weight, unit_offset=False):
        ctx.save_for_backward(x, weight)
        w = weight + 1 if unit_offset else weight
        return x * w

    @staticmethod
    def backward(ctx, g):
        x, weight = ctx.saved_tensors
        w = weight
        return g * w, (g * x).sum_to_size(weight.shape), None
"""


@pytest.mark.sampled(1)
@pytest.mark.parametrize("framework", ["gradcli.engine", "torch"])
def test_a_name_of_forward_is_said_to_be_forwards(framework, tmp_path):
    pytest.importorskip(framework)
    file = tmp_path / "shifted.py"
    file.write_text(SOURCE.format(framework=framework))
    case = gradcli.check(f"{file}:Shifted", order=1, shrink=False).cases[0]
    assert case.verdict is Verdict.FAILED
    assert (
        "`w = weight` in backward (line 15) should use the value that `w` has in forward, not `weight`"
        in case.findings[0].message
    )
