"""An argument that documentation speaks of in the plural."""

import pytest

import gradcli
from gradcli.inputs.hints.prose.sentences import in_singular
from gradcli.verdict import Verdict

WEIGHTS = """
import gradcli.engine as torch
from gradcli.engine.autograd import Function


class Transmittance(Function):
    '''The light that is left behind alphas (R, S) in (0, 1).'''

    @staticmethod
    def forward(ctx, alpha):
        left = torch.prod(1 - alpha, -1)
        ctx.save_for_backward(alpha)
        return left

    @staticmethod
    def backward(ctx, g):
        (alpha,) = ctx.saved_tensors
        return {sign}(g * torch.prod(1 - alpha, -1)).unsqueeze(-1) / (1 - alpha)
"""


@pytest.mark.parametrize("sign", ["-", ""])
def test_the_interval_of_a_plural_is_that_of_the_argument(tmp_path, sign):
    file = tmp_path / "written.py"
    file.write_text(WEIGHTS.format(sign=sign))
    (case,) = gradcli.check(f"{file}:Transmittance", shrink=False).cases
    assert case.verdict is (Verdict.FAILED if sign == "" else Verdict.PASSED), case.findings
    assert (case.inputs[0].domain, len(case.inputs[0].shape)) == ("unit", 2)


@pytest.mark.parametrize(
    ("text", "names", "expected"),
    [
        ("alphas in (0, 1)", ["alpha"], "alpha in (0, 1)"),
        ("`logits` (N, C)", ["logit"], "`logit` (N, C)"),
        ("alphas in (0, 1)", ["alpha", "alphas"], "alphas in (0, 1)"),
        ("losses in (0, 1)", ["loss"], "losses in (0, 1)"),
        ("the alphas are learned", ["alpha"], "the alphas are learned"),
        ("as (N, C)", ["a"], "as (N, C)"),
    ],
)
def test_what_counts_as_a_plural(text, names, expected):
    assert in_singular(text, names) == expected
