"""A note says at which inputs a call of the search did not return."""

from typing import Any

import gradcli
from gradcli import engine
from gradcli.errors import OverrunError
from gradcli.verdict import Verdict


def shifted(*, stops: bool) -> type:
    """A sum of a matrix and a vector, which does not return for two matrices."""

    class Shifted(engine.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, y: Any) -> Any:
            if stops and x.ndim == y.ndim == 2:
                raise OverrunError("stopped after 10 s", phase="inference of inputs")
            if y.ndim != 1:
                raise ValueError("a vector is wanted")
            ctx.save_for_backward(x)
            return x.exp() + y

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (x,) = ctx.saved_tensors
            return g * x.exp(), g.sum(0)

    return Shifted


def test_the_inputs_of_a_call_that_did_not_return_are_told() -> None:
    (case,) = gradcli.check(shifted(stops=True), order=1, samples=1, shrink=False).cases
    assert case.verdict is Verdict.PASSED
    (note,) = [each for each in case.notes if "did not return" in each]
    assert note.startswith("a call with -i x=3x4 -i y=")
    (case,) = gradcli.check(shifted(stops=False), order=1, samples=1, shrink=False).cases
    assert not any("did not return" in each for each in case.notes)
