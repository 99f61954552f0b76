"""A tensor that holds the number of an axis, of which the Function takes the only entry."""

import pytest

import gradcli
from gradcli.verdict import Verdict


def along_an_axis(ns, *, forward_reads: bool, scale: float):
    """A softmax, or the identity with a gradient that adds a sum, along the axis whose number a tensor holds."""

    class AlongAnAxis(ns.autograd.Function):
        @staticmethod
        def forward(ctx, x, dim):
            y = ns.softmax(x, dim.item()) if forward_reads else x * 1
            ctx.save_for_backward(y, dim)
            return y

        @staticmethod
        def backward(ctx, g):
            y, dim = ctx.saved_tensors
            if forward_reads:
                return y * (g - scale * (g * y).sum(dim.item(), keepdim=True)), None
            return g + (scale - 1) * g.sum(dim.item(), keepdim=True), None

    return AlongAnAxis


@pytest.mark.parametrize("forward_reads", [True, False])
@pytest.mark.parametrize("scale", [1.0, 1.01])
def test_the_number_of_an_axis_in_a_tensor(ns, forward_reads, scale):
    (case,) = gradcli.check(along_an_axis(ns, forward_reads=forward_reads, scale=scale), samples=1, shrink=False).cases
    assert [(spec.shape, spec.domain) for spec in case.inputs[1:]] == [((), "indices")]
    assert case.verdict is (Verdict.PASSED if scale == 1 else Verdict.FAILED)
