"""Documentation of one input leaves the others what they can be without it: a single number beside a matrix, say."""

from typing import Any

import pytest

import gradcli
from gradcli.verdict import Verdict


def action_of(ns: Any, documentation: str, factor: float) -> type:
    class Action(ns.autograd.Function):
        __doc__ = documentation

        @staticmethod
        def forward(ctx: Any, theta: Any, beta: Any) -> Any:
            ctx.save_for_backward(theta, beta)
            return beta * (1 - ns.cos(theta)).sum()

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            theta, beta = ctx.saved_tensors
            return g * beta * ns.sin(theta), factor * g * (1 - ns.cos(theta)).sum()

    return Action


@pytest.mark.sampled(9)
@pytest.mark.parametrize("factor", [1, 1.01, 0])
@pytest.mark.parametrize("documentation", ["", "Action of the angles theta: (X, Y)", "theta: (2, X, Y), periodic"])
def test_a_number_beside_a_documented_array(ns: Any, documentation: str, factor: float) -> None:
    (case,) = gradcli.check(action_of(ns, documentation, factor), order=1, shrink=False).cases
    assert case.inputs[1].shape == ()
    assert case.verdict is (Verdict.PASSED if factor == 1 else Verdict.FAILED), case.error
    assert {f.input for f in case.findings} == (set() if factor == 1 else {"beta"})
