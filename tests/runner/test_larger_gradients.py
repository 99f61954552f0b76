"""A failure says for which shape of a documented input the gradient is right, where the framework sums a larger one."""

from typing import Any

import pytest

from gradcli.cases import CheckSpec
from gradcli.inputs.flags import parse_input
from gradcli.results import CheckResult
from gradcli.runner.case import check_object
from gradcli.runner.planning.plan import case_of
from gradcli.settings import Settings
from gradcli.verdict import Verdict


def checked(target: Any, *flags: str) -> CheckResult:
    spec = CheckSpec(target="module:Target", inputs=tuple(parse_input(flag) for flag in flags))
    return check_object(target, case_of(spec, Settings(order=1, samples=1)))


def mean_by_weights(ns: Any, factor: float = 1.0, shape: str = "(C,)") -> Any:
    class Mean(ns.autograd.Function):
        __doc__ = f"""The weighted mean of squares.

        Args:
            pred: (N, C)
            target: (N, C)
            weight: {shape}
        """

        @staticmethod
        def forward(ctx: Any, pred: Any, target: Any, weight: Any) -> Any:
            ctx.save_for_backward(pred, target, weight)
            return (weight * (pred - target) ** 2).sum() / weight.sum()

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            pred, target, weight = ctx.saved_tensors
            diff, total = pred - target, weight.sum()
            loss = (weight * diff**2).sum() / total
            grad = g * 2 * weight * diff / total
            return grad, -grad, factor * g * (diff**2 - loss) / total

    return Mean


@pytest.mark.sampled(1)
def test_the_shape_is_named_for_which_the_gradient_is_right(ns: Any) -> None:
    result = checked(mean_by_weights(ns))
    assert result.verdict is Verdict.FAILED
    assert [f.input for f in result.findings] == ["weight"]
    assert "-i weight=3x4" in result.notes[0]
    names = [spec.name for spec in result.inputs]
    assert checked(mean_by_weights(ns), *(f"{name}=3x4" for name in names)).verdict is Verdict.PASSED


@pytest.mark.sampled(1)
@pytest.mark.parametrize(("factor", "verdict"), [(1.0, Verdict.PASSED), (1.001, Verdict.FAILED)])
def test_where_the_shape_is_open_the_gradients_own_is_chosen(ns: Any, factor: float, verdict: Verdict) -> None:
    result = checked(mean_by_weights(ns, factor, shape="weights of the entries"))
    assert result.verdict is verdict
    assert {spec.name: spec.shape for spec in result.inputs}["weight"] == (3, 4)
    if verdict is Verdict.PASSED:
        assert any("-i weight=4, but there the framework sums a gradient" in note for note in result.notes)


@pytest.mark.sampled(1)
def test_no_shape_is_named_where_the_gradient_is_wrong_for_that_too(ns: Any) -> None:
    result = checked(mean_by_weights(ns, 1.001))
    assert result.verdict is Verdict.FAILED
    assert not any("-i weight=3x4" in note for note in result.notes)
