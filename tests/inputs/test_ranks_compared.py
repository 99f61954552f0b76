"""A comparison of the numbers of axes of two inputs shows that both numbers may be equal, which is checked as well."""

import pytest

import gradcli
from gradcli.inputs.hints.source_hints import SourceHints
from gradcli.verdict import Verdict

PROGRAM = """
import {framework} as torch
from {framework}.autograd import Function


class Tempered(Function):
    '''alpha is a vector for all rows of x, or one for each row.'''

    @staticmethod
    def forward(ctx, x, alpha):
        ctx.save_for_backward(x, alpha)
        return (x * alpha).sum(-1) + {domain}(alpha).exp().sum(-1).log()

    @staticmethod
    def backward(ctx, g):
        x, alpha = ctx.saved_tensors
        g = g.unsqueeze(-1)
        inner = {domain}(alpha).exp()
        slope = 1 / (2 * alpha.sqrt()) if {rooted} else 1
        galpha = g * (x + slope * inner / inner.sum({axis}, keepdim=True))
        {test}
            galpha = galpha.sum(0)
        return g * alpha, galpha
"""
TESTS = ["if alpha.dim() < x.dim():", "while galpha.dim() > alpha.dim():"]


@pytest.mark.sampled(4)
@pytest.mark.parametrize("framework", ["gradcli.engine", "torch"])
@pytest.mark.parametrize("test", TESTS)
@pytest.mark.parametrize("rooted", [False, True])
@pytest.mark.parametrize(("axis", "verdict"), [(-1, Verdict.PASSED), (0, Verdict.FAILED)])
@pytest.mark.usefixtures("unexplained")
def test_the_rank_of_the_other_input_is_tried(framework, test, rooted, axis, verdict, tmp_path):
    if framework == "torch":
        pytest.importorskip("torch")
    file = tmp_path / "written.py"
    domain = "torch.sqrt" if rooted else ""
    file.write_text(PROGRAM.format(framework=framework, test=test, rooted=rooted, domain=domain, axis=axis))
    cases = gradcli.check(f"{file}:Tempered", order=1, shrink=False).cases
    assert [case.verdict for case in cases] == [verdict], cases


def test_a_loop_over_ranks_counts_as_a_branch():
    source = "def backward(ctx, g):\n    while g.dim() > b.ndim:\n        g = g.sum(0)\n    return g"
    assert SourceHints(forward="", backward=source, gradients=()).branches_on_rank == {"g", "b"}
