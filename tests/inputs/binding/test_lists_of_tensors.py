"""Lists of tensors, by the annotation of an operator, or by flags for their elements."""

import functools
from typing import Any

import pytest

import gradcli
from gradcli.verdict import Verdict


@functools.cache
def summed_squares(factor: float) -> Any:
    torch = pytest.importorskip("torch")

    def total(parts: list[torch.Tensor], scale: int) -> torch.Tensor:
        return scale * torch.stack([(part * part).sum() for part in parts])

    def remember(ctx: Any, inputs: Any, output: Any) -> None:
        parts, ctx.scale = inputs
        ctx.save_for_backward(*parts)

    def backward(ctx: Any, g: Any) -> Any:
        return [factor * 2 * ctx.scale * g[i] * part for i, part in enumerate(ctx.saved_tensors)], None

    name = f"gradcli_tests::summed_squares_{round(1000 * factor)}"
    total.__annotations__ = {"parts": list[torch.Tensor], "scale": int, "return": torch.Tensor}
    operator = torch.library.custom_op(name, total, mutates_args=())
    operator.register_autograd(backward, setup_context=remember)
    return operator


GIVEN = {"parts[0]": {"shape": [2, 3]}, "parts[1]": {"shape": [2]}, "scale": 3}


@pytest.mark.parametrize(("factor", "verdict"), [(1.0, Verdict.PASSED), (1.01, Verdict.FAILED)])
@pytest.mark.parametrize("inputs", [None, GIVEN])
@pytest.mark.usefixtures("unexplained")
def test_the_elements_are_inputs(inputs: Any, factor: float, verdict: Verdict) -> None:
    (case,) = gradcli.check(summed_squares(factor), inputs, order=1, samples=1, shrink=False).cases
    assert case.verdict is verdict, (case.findings, case.error)
    assert {"parts[0]", "parts[1]"} <= {spec.name for spec in case.inputs}
