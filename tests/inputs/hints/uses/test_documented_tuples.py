"""Arguments that documentation calls tuples of numbers."""

import pytest

import gradcli
from gradcli.inputs.hints.uses.objects import documented_tuples
from gradcli.verdict import Verdict


def test_tuples_and_lists_of_numbers_are_read():
    text = "x (N, D), levels: tuple of floats in (0, 2); sizes: a list of ints, others: tuple of tensors"
    assert documented_tuples([text], ["x", "levels", "sizes", "others"]) == {
        "levels": ((0.6, 1.6),),
        "sizes": ([2, 3],),
    }


PROGRAM = '''
import {framework} as torch
from {framework}.autograd import Function


class Pinball(Function):
    """pred (N, Q), y (N,), quantiles: tuple of floats in (0, 1); sum over all"""

    @staticmethod
    def forward(ctx, pred, y, quantiles):
        tau = pred.new_tensor(quantiles)
        e = y[:, None] - pred
        ctx.save_for_backward(e, tau)
        return torch.maximum(tau * e, (tau - 1) * e).sum()

    @staticmethod
    def backward(ctx, g):
        e, tau = ctx.saved_tensors
        de = torch.where(e > 0, tau.expand_as(e), {below})
        return -g * de, g * de.sum(1), None
'''


@pytest.mark.parametrize("framework", ["gradcli.engine", "torch"])
@pytest.mark.parametrize("below", ["tau.expand_as(e) - 1", "1 - tau.expand_as(e)"])
def test_quantiles_are_between_0_and_1(framework, below, tmp_path):
    pytest.importorskip(framework)
    file = tmp_path / "written.py"
    file.write_text(PROGRAM.format(framework=framework, below=below))
    (case,) = gradcli.check(f"{file}:Pinball", order=1, samples=1, shrink=False).cases
    assert case.verdict is (Verdict.PASSED if below.startswith("tau") else Verdict.FAILED), case
    pred, y, quantiles = case.inputs
    assert quantiles.value == (0.3, 0.8)
    assert pred.shape == (*y.shape, 2)
