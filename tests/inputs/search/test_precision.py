"""Functions that refuse float64 get float32 inputs, and it is told; other refusals change no precision."""

from typing import Any

import pytest

import gradcli
from gradcli.engine import float32
from gradcli.engine.autograd import Function
from gradcli.inputs.search.error_messages import complains_of_precision
from gradcli.results import CheckResult
from gradcli.verdict import Verdict


class Single(Function):
    """The square of a float32 tensor, and of no other."""

    @staticmethod
    def forward(ctx: Any, x: Any, scale: float) -> Any:
        if x.dtype != float32:
            raise RuntimeError("expected both tensors to have the same dtype, but got: double != float")
        ctx.save_for_backward(x)
        ctx.scale = scale
        return x * x * scale

    @staticmethod
    def backward(ctx: Any, grad_output: Any) -> Any:
        (x,) = ctx.saved_tensors
        return 2 * grad_output * x * ctx.scale, None


class HalfAsMuch(Single):
    @staticmethod
    def backward(ctx: Any, grad_output: Any) -> Any:
        return Single.backward(ctx, grad_output / 2)


class Nothing(Function):
    """Refuses everything, for a reason of precision at first sight."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        raise RuntimeError("expected dtype quad")

    @staticmethod
    def backward(ctx: Any, grad_output: Any) -> Any:
        return grad_output


def checked(target: type, dtype: str = "float64") -> CheckResult:
    (case,) = gradcli.check(
        f"{__name__}:{target.__name__}", order=1, dtype=dtype, samples=1, shrink=False, only=["gradient"]
    ).cases
    return case


@pytest.mark.parametrize(("target", "verdict"), [(Single, Verdict.PASSED), (HalfAsMuch, Verdict.FAILED)])
@pytest.mark.usefixtures("unexplained")
def test_inputs_are_float32_where_float64_is_refused(target: type, verdict: Verdict) -> None:
    case = checked(target)
    assert case.verdict is verdict
    assert [spec.dtype for spec in case.inputs if spec.kind == "tensor"] == ["float32"]
    assert [note for note in case.notes if note.startswith("the inputs are float32, because")]


def test_a_run_in_float32_needs_no_note() -> None:
    case = checked(Single, dtype="float32")
    assert case.verdict is Verdict.PASSED
    assert not [note for note in case.notes if note.startswith("inputs are float32")]


def test_the_first_refusal_is_shown_where_float32_does_not_help() -> None:
    case = checked(Nothing)
    assert case.verdict is Verdict.ERROR
    assert "expected dtype quad" in str(case.error)


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("expected scalar type Float but found Double", True),
        ("heaviside is not yet implemented for tensors with different dtypes.", True),
        ("mat1 and mat2 must have the same dtype, but got Double and Float", True),
        ("array has dtype float64, expected float32", True),
        ("'float' object is not iterable", False),
        ("must be Tensor, not float", False),
        ("mat1 and mat2 shapes cannot be multiplied (3x4 and 5x6)", False),
    ],
)
def test_complaints_of_precision_are_told_from_others(message: str, expected: bool) -> None:
    assert complains_of_precision(message) is expected
