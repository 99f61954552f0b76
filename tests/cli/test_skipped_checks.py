"""A check that was left out is named, and nothing is claimed for the derivative that it would have compared."""

from pathlib import Path
from typing import Any

import pytest

import gradcli
from gradcli.results import Report
from gradcli.verdict import Reason, Verdict

FRAMEWORKS = ("gradcli.engine", "torch")
UNCOMPARED = ("gradient", "other-inputs", "sizes")
SOURCE = """
from {framework}.autograd import Function

class Square(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return {factor} * x * g
"""


def checked(folder: Path, framework: str, factor: int, **options: Any) -> Report:
    """The report on x², or x² with a wrong gradient where `factor` is not 2."""
    pytest.importorskip(framework)
    (folder / "square.py").write_text(SOURCE.format(framework=framework, factor=factor))
    return gradcli.check(f"{folder / 'square.py'}:Square", **options)


@pytest.mark.parametrize("framework", FRAMEWORKS)
@pytest.mark.parametrize("order", [1, 2, 3])
def test_a_right_second_derivative_is_no_comparison_of_the_first(tmp_path: Path, framework: str, order: int) -> None:
    report = checked(tmp_path, framework, 3, order=order, skip=UNCOMPARED)
    (case,) = report.cases
    assert (case.verdict, case.reason, report.exit_code) == (Verdict.INCONCLUSIVE, Reason.NO_SIGNAL, 4)
    assert case.orders == tuple(range(2, order + 1))
    assert "reason=no-signal" in str(report)
    assert "skipped: gradient, sizes, other-inputs (left out on request)" in str(report)
    assert checked(tmp_path, framework, 3).verdict is Verdict.FAILED


def test_a_spec_that_skips_the_gradient_is_inconclusive(tmp_path: Path) -> None:
    checked(tmp_path, "gradcli.engine", 3, only=("returns",))
    spec = tmp_path / "square.yaml"
    cases = "cases: [{inputs: {x: {shape: [3]}}, skip: [gradient, other-inputs, sizes]}]"
    spec.write_text(f"target: {tmp_path / 'square.py'}:Square\n{cases}\n")
    (case,) = gradcli.check(str(spec)).cases
    assert (case.verdict, case.orders) == (Verdict.INCONCLUSIVE, (2,))


def test_the_second_derivative_alone_can_be_asked_for(tmp_path: Path) -> None:
    report = checked(tmp_path, "gradcli.engine", 2, only=("higher-order",))
    assert (report.verdict, report.cases[0].orders) == (Verdict.PASSED, (2,))
    assert "orders=2 " in str(report)
    assert "skipped: all checks but higher-order (left out on request)" in str(report)


def test_a_pass_names_the_checks_that_were_left_out(tmp_path: Path) -> None:
    said = str(checked(tmp_path, "gradcli.engine", 2, skip=("sizes", "empty")))
    assert "PASS" in said
    assert "orders=1,2" in said
    assert "skipped: sizes, empty (left out on request)" in said
    assert "skipped" not in str(checked(tmp_path, "gradcli.engine", 2))


@pytest.mark.parametrize("value", [[0], []])
def test_a_case_in_which_nothing_was_compared_has_a_reason(tmp_path: Path, value: list[int]) -> None:
    inputs = {"x": {"value": value}} if value else {"x": {"shape": [0]}}
    (case,) = checked(tmp_path, "gradcli.engine", 2, inputs=inputs, only=("gradient",)).cases
    assert (case.verdict, case.reason, case.orders) == (Verdict.INCONCLUSIVE, Reason.NO_SIGNAL, ())
