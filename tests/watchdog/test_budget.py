"""The budget: a slow forward is called sparingly, optional checks end with it, and no verdict becomes an error."""

import time
from typing import Any

import pytest

import gradcli
import gradcli.engine as engine
from gradcli.errors import UsageError
from gradcli.findings import FindingKind
from gradcli.results import CheckResult
from gradcli.verdict import Verdict

OPTIONAL = {"sizes", "empty", "other-inputs"}


def cube(factor: float, seconds: float) -> Any:
    class Cube(engine.autograd.Function):
        calls = 0

        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            Cube.calls += 1
            time.sleep(seconds)
            ctx.save_for_backward(x)
            return x * x * x

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (x,) = ctx.saved_tensors
            return factor * x * x * g

    return Cube


def checked(target: Any, **options: Any) -> CheckResult:
    (case,) = gradcli.check(target, **options, shrink=False).cases
    return case


def skipped(case: CheckResult) -> set[str]:
    return {e.check for e in case.evidence if e.verdict is Verdict.SKIPPED and e.note}


@pytest.mark.sampled(1)
@pytest.mark.parametrize("inputs", [None, {"x": {"shape": [3, 4]}}])
def test_a_right_slow_forward_is_called_forty_times_at_most(inputs: Any) -> None:
    target = cube(3.0, 0.06)
    case = checked(target, inputs=inputs)
    assert case.verdict is Verdict.PASSED
    assert case.resolution is not None
    assert case.resolution <= 1e-9
    assert target.calls <= 40
    assert {"gradient", "higher-order"} <= {e.check for e in case.evidence if e.verdict is Verdict.PASSED}


def test_a_spent_budget_leaves_out_what_is_optional_alone() -> None:
    case = checked(cube(3.0, 0.0), budget=1e-6)
    assert case.verdict is Verdict.PASSED
    assert skipped(case) == OPTIONAL
    assert all("budget" in str(e.note) for e in case.evidence if e.check in OPTIONAL)
    assert not skipped(checked(cube(3.0, 0.0)))


def test_a_mistake_fails_without_time_for_its_name() -> None:
    case = checked(cube(2.0, 0.0), budget=1e-6)
    assert case.verdict is Verdict.FAILED
    assert [finding.kind for finding in case.findings] == [FindingKind.WRONG_GRADIENT]
    assert case.findings[0].entries
    assert checked(cube(2.0, 0.0)).findings[0].kind is FindingKind.WRONG_FACTOR


@pytest.mark.parametrize("budget", [0.0, -1.0, float("nan")])
def test_a_budget_is_a_number_above_zero(budget: float) -> None:
    with pytest.raises(UsageError, match="budget"):
        checked(cube(3.0, 0.0), budget=budget)


def test_the_entries_of_a_wrong_slow_forward_are_measured_as_time_allows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gradcli.watchdog.case.ENTRIES_SECONDS", 0.3)
    target = cube(2.0, 0.055)
    case = checked(target, inputs={"x": {"shape": [20, 20]}}, budget=1e-6)
    assert case.verdict is Verdict.FAILED
    assert target.calls <= 70
