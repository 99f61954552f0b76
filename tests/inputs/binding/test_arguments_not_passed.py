"""Optional arguments that a call leaves out, and documented sizes that are quotients by a number with a default."""

from typing import Any

import pytest

import gradcli
from gradcli.verdict import Verdict


def scaled(ns: Any, wrong: str) -> type:
    class Scaled(ns.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, weight: Any, bias: Any = None) -> Any:
            ctx.save_for_backward(x, weight)
            ctx.width = None if bias is None else bias.shape
            y = x * x * weight
            return y if bias is None else y + bias

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            x, weight = ctx.saved_tensors
            scale = 3 if wrong == "without" and ctx.width is None else 2
            of_bias = None
            if ctx.needs_input_grad[2]:
                of_bias = g.sum(0)
            elif wrong == "raises" and ctx.width is None:
                raise NotImplementedError("no bias")
            return scale * g * x * weight, (g * x * x).sum(0), of_bias

    return Scaled


@pytest.mark.parametrize("backend", ["engine", "torch"], indirect=True)
@pytest.mark.parametrize("wrong", ["", "without", "raises"])
def test_a_bias_that_has_to_be_passed_is_passed_as_none(ns: Any, wrong: str) -> None:
    case = gradcli.check(scaled(ns, wrong), order=1, shrink=False).cases[0]
    expected = {"": Verdict.PASSED, "without": Verdict.FAILED, "raises": Verdict.ERROR}
    assert case.verdict is expected[wrong], case
    if wrong == "raises":
        assert "this was raised with other inputs than the first ones: -i x=3x4 -i weight=4" in case.notes
    else:
        assert any(note.startswith("if bias is not passed, as with -i x=3x4 -i weight=4") for note in case.notes)


def grouped(ns: Any, wrong: bool, quotient: str) -> type:
    def parts(x: Any, weight: Any, groups: int) -> Any:
        width = weight.shape[1]
        return [(x[..., n * width : (n + 1) * width], weight[n::groups]) for n in range(groups)]

    class Grouped(ns.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, weight: Any, groups: int = 2) -> Any:
            assert x.shape[-1] == weight.shape[1] * groups
            ctx.save_for_backward(x, weight)
            ctx.groups = groups
            return ns.cat([rows @ own.mT for rows, own in parts(x, weight, groups)], -1)

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            x, weight = ctx.saved_tensors
            of_x, of_weight, start = [], ns.zeros_like(weight), 0
            for n, (rows, own) in enumerate(parts(x, weight, ctx.groups)):
                part = g[..., start : start + own.shape[0]]
                start += own.shape[0]
                of_x.append(part @ own)
                of_weight[n :: ctx.groups] = (part.mT @ (own.shape[0] * rows if wrong else rows)).sum(0)
            return ns.cat(of_x, -1), of_weight, None

    Grouped.__doc__ = f"x: (B, T, Cin), weight: (Cout, {quotient})"
    return Grouped


@pytest.mark.parametrize("backend", ["engine", "torch"], indirect=True)
@pytest.mark.parametrize("quotient", ["Cin / groups", "Cin // groups", "Cin/groups"])
@pytest.mark.parametrize("wrong", [False, True], ids=["right", "wrong"])
def test_a_documented_size_is_divided_by_a_number_that_has_a_default(ns: Any, wrong: bool, quotient: str) -> None:
    case = gradcli.check(grouped(ns, wrong, quotient), order=1, shrink=False).cases[0]
    x, weight = (spec.shape or () for spec in case.inputs)
    assert len(x) == 3
    assert x[2] == 2 * weight[1]
    assert case.verdict is (Verdict.FAILED if wrong else Verdict.PASSED), case
