"""A flag whose other value needs another rank is checked there: what is behind it may have a gradient of its own."""

import pytest

import gradcli
from gradcli.verdict import Verdict

PROGRAM = """
import {framework} as torch
from {framework}.autograd import Function


class OverTime(Function):
    @staticmethod
    def forward(ctx, x, last=False):
        y = x.sin()
        if last:
            length, batch, width = x.shape
            y = y * torch.arange(1.0, length + 1, dtype=torch.float64).reshape(length, 1, 1)
        ctx.save_for_backward(x)
        ctx.last = last
        return y

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        g = g * x.cos()
        if ctx.last and {minds}:
            g = g * torch.arange(1.0, x.shape[0] + 1, dtype=torch.float64).reshape(-1, 1, 1)
        return g, None
"""


@pytest.mark.sampled(2)
@pytest.mark.parametrize("framework", ["gradcli.engine", "torch"])
@pytest.mark.parametrize(("minds", "verdict"), [(True, Verdict.PASSED), (False, Verdict.FAILED)])
@pytest.mark.usefixtures("unexplained")
def test_the_other_value_of_a_flag_is_tried_at_another_rank(framework, minds, verdict, tmp_path):
    if framework == "torch":
        pytest.importorskip("torch")
    file = tmp_path / "written.py"
    file.write_text(PROGRAM.format(framework=framework, minds=minds))
    cases = gradcli.check(f"{file}:OverTime", order=1, shrink=False).cases
    assert verdict in {case.verdict for case in cases}, cases
    assert {case.verdict for case in cases} <= {verdict, Verdict.PASSED}


def kept(ns, mistake):
    class Kept(ns.autograd.Function):
        @staticmethod
        def forward(ctx, x, keepdim=False):
            ctx.save_for_backward(x)
            ctx.keepdim = keepdim
            return (x * x).sum(-1, keepdim=keepdim)

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            if ctx.keepdim and mistake == "raises":
                raise NotImplementedError("keepdim")
            if ctx.keepdim and mistake == "refused":
                return g.reshape(-1), None
            return 2 * (g if ctx.keepdim else g.unsqueeze(-1)) * x, None

    return Kept


@pytest.mark.parametrize(
    ("mistake", "said"),
    [(None, None), ("raises", "fails"), ("refused", "returns gradients of the wrong shape or number")],
)
def test_a_flag_at_which_backward_fails_is_noted(ns, mistake, said):
    (case,) = gradcli.check(kept(ns, mistake), order=1, shrink=False).cases
    assert case.verdict is Verdict.PASSED
    told = [note for note in case.notes if "keepdim" in note]
    assert told == (
        [] if said is None else [f"not checked with -a keepdim=True: forward accepts it, but backward {said}"]
    )
