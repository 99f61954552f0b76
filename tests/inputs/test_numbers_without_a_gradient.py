"""An argument that forward computes with, and that gets no gradient from backward, may be a number."""

from typing import Any

import pytest

import gradcli
from gradcli.results import CheckResult
from gradcli.verdict import Verdict


def dice(ns: Any, factor: float) -> type:
    class Dice(ns.autograd.Function):
        @staticmethod
        def forward(ctx: Any, logits: Any, labels: Any, smooth: Any) -> Any:
            p = ns.sigmoid(logits)
            num = 2 * (p * labels).sum(1) + smooth
            den = (p + labels).sum(1) + smooth
            ctx.save_for_backward(p, labels, num, den)
            return 1 - num / den

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            p, labels, num, den = ctx.saved_tensors
            d = num[:, None] / den[:, None] ** 2 - factor * 2 * labels / den[:, None]
            return g[:, None] * d * p * (1 - p), None, None

    return Dice


def saved(ns: Any, factor: float) -> type:
    class Saved(ns.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, level: Any) -> Any:
            row = (x * x).sum(1) + level
            ctx.save_for_backward(x, level)
            return row

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            x, _ = ctx.saved_tensors
            return factor * 2 * g[:, None] * x, None

    return Saved


def described(ns: Any, factor: float) -> type:
    class Described(ns.autograd.Function):
        """x: (N, C), level: (N,)"""

        @staticmethod
        def forward(ctx: Any, x: Any, level: Any) -> Any:
            ctx.save_for_backward(x)
            return (x * x).sum(1) + level

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (x,) = ctx.saved_tensors
            return factor * 2 * g[:, None] * x, None

    return Described


def checked(target: Any) -> CheckResult:
    return gradcli.check(target, shrink=False, order=1).cases[0]


@pytest.mark.sampled(1)
def test_a_number(ns: Any) -> None:
    right = checked(dice(ns, 1.0))
    assert right.verdict is Verdict.PASSED
    assert right.inputs[2].kind == "value"
    assert any(note.startswith("smooth is taken for a number") for note in right.notes)
    wrong = checked(dice(ns, 1.01))
    assert [finding.input for finding in wrong.findings] == ["logits"]


@pytest.mark.parametrize("made", [saved, described])
def test_a_tensor_that_lacks_its_gradient(ns: Any, made: Any) -> None:
    case = checked(made(ns, 1.0))
    assert [(finding.kind.value, finding.input) for finding in case.findings] == [("missing-gradient", "level")]
