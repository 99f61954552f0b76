"""Of several findings, those of wrong values come first: they are the headline."""

import pytest

import gradcli
from gradcli.findings import FindingKind as K

KEPT = """import {framework} as torch
from {framework}.autograd import Function


class Kept(Function):
    @staticmethod
    def forward(ctx, x, rate):
        y = x * torch.exp(-rate)
        ctx.save_for_backward(x, rate)
        ctx.out = y
        return y

    @staticmethod
    def backward(ctx, g):
        x, rate = ctx.saved_tensors
        return g * torch.exp(-rate), {of_rate}
"""


@pytest.mark.sampled(4)
@pytest.mark.parametrize("framework", ["gradcli.engine", "torch"])
@pytest.mark.parametrize(
    ("of_rate", "is_wrong"),
    [("-g * x * torch.exp(-rate)", False), ("-1.01 * g * x * torch.exp(-rate)", True), ("-g * x.tanh() * rate", True)],
)
def test_a_wrong_gradient_comes_before_memory_that_is_kept(framework, of_rate, is_wrong, tmp_path):
    pytest.importorskip(framework.partition(".")[0])
    path = tmp_path / "kept.py"
    path.write_text(KEPT.format(framework=framework, of_rate=of_rate))
    case = gradcli.check(f"{path}:Kept", {n: {"shape": [3, 4]} for n in ("x", "rate")}, order=1, samples=1).cases[0]
    kinds = [finding.kind for finding in case.findings]
    assert kinds[-1] is K.LEAKS_MEMORY
    assert len(kinds) == 1 + is_wrong
    assert case.findings[0].input == ("rate" if is_wrong else None)
