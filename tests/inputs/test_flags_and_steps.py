"""Arguments that are only tested are flags, and a step that is asserted to be positive is one positive entry."""

from typing import Any

import pytest

import gradcli
from gradcli import engine
from gradcli.engine.autograd import Function
from gradcli.results import CheckResult


def of_flags(factor: float) -> type:
    class Kept(Function):
        @staticmethod
        def forward(ctx: Any, x: Any, weight: Any, offload_input: Any, use_double: Any, shift: Any) -> Any:
            kept = x.clone() if offload_input else x
            y = x @ weight.t()
            if not use_double:
                y = y + shift
            ctx.save_for_backward(kept, weight)
            ctx.use_double = use_double
            return y * 2 if use_double else y

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            x, weight = ctx.saved_tensors
            g = g * factor if ctx.use_double else g
            return g @ weight, g.t() @ x, None, None, None

    return Kept


def checked(target: type) -> CheckResult:
    return gradcli.check(target, only=("forward", "gradient"), samples=1).cases[0]


def test_what_is_only_tested_is_a_flag_and_what_is_calculated_with_a_number() -> None:
    values = {spec["name"]: spec["value"] for spec in checked(of_flags(2)).to_dict()["inputs"] if "value" in spec}
    assert values["offload_input"] is False
    assert values["use_double"] is False
    assert type(values["shift"]) in (int, float)


@pytest.mark.parametrize(("factor", "verdict"), [(2, "passed"), (3, "failed")])
def test_the_other_value_of_a_flag_is_checked_too(factor: float, verdict: str) -> None:
    assert checked(of_flags(factor)).verdict.value == verdict


def of_step(factor: float, *, all_of_it: bool) -> type:
    class Step(Function):
        @staticmethod
        def forward(ctx: Any, weight: Any, step: Any, low: Any, high: Any) -> Any:
            if all_of_it:
                assert (step > 0).all()
            else:
                assert step > 0, "that is no step"
            ctx.save_for_backward(weight, step)
            ctx.ends = low, high
            return engine.tanh(weight / step) * step * (high - low)

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            weight, step = ctx.saved_tensors
            low, high = ctx.ends
            t = engine.tanh(weight / step)
            inner, g = 1 - t * t, g * (high - low)
            along = g * (t - factor * inner * weight / step)
            return g * inner, along.sum() if step.ndim == 0 else along.sum_to_size(step.shape), None, None

    return Step


@pytest.mark.parametrize("all_of_it", [False, True])
@pytest.mark.parametrize(("factor", "verdict"), [(1, "passed"), (2, "failed")])
def test_a_step_that_is_asserted_to_be_positive_is_found(factor: float, verdict: str, all_of_it: bool) -> None:
    case = checked(of_step(factor, all_of_it=all_of_it))
    assert case.verdict.value == verdict, case
    step = next(spec for spec in case.to_dict()["inputs"] if spec["name"] == "step")
    assert step["domain"] == "positive"
    assert all_of_it or step["shape"] == []
