"""Number arguments at other values: one that the user gave is the user's choice, any other may hide a mistake."""

from pathlib import Path
from typing import Any

import pytest

import gradcli
from gradcli.cases import CheckSpec, InputsFrom, InputSpec
from gradcli.engine import float64, tensor
from gradcli.engine.autograd import Function
from gradcli.inputs.flags import parse_argument, parse_input
from gradcli.results import CheckResult
from gradcli.runner.case import run_case
from gradcli.runner.failures import load, save
from gradcli.runner.plan import case_of
from gradcli.runner.replay import replay
from gradcli.settings import Settings
from gradcli.verdict import Verdict

TARGET = f"{__name__}:"


class Scaled(Function):
    """backward leaves the factor out, which shows for any but 1."""

    @staticmethod
    def forward(ctx: Any, x: Any, scale: float = 1.0) -> Any:
        return x * scale

    @staticmethod
    def backward(ctx: Any, grad_output: Any) -> Any:
        return grad_output, None


class Power(Function):
    """backward is right for the exponent 2.5 alone, which is what inference tries first."""

    @staticmethod
    def forward(ctx: Any, x: Any, p: float) -> Any:
        ctx.save_for_backward(x)
        ctx.p = p
        return x**p

    @staticmethod
    def backward(ctx: Any, grad_output: Any) -> Any:
        (x,) = ctx.saved_tensors
        return grad_output * ctx.p * x * x.sqrt(), None


class Sampled(Scaled):
    """The same with inputs that its author gives."""

    @staticmethod
    def sample_inputs() -> tuple[Any, ...]:
        return leaf(), 1.0


def leaf() -> Any:
    return tensor([0.5, -1.25, 2.0], dtype=float64, requires_grad=True)


def checked(target: type, *inputs: InputSpec, folder: Path | None = None) -> CheckResult:
    spec = CheckSpec(target=TARGET + target.__name__, inputs=inputs or None, inputs_from=InputsFrom.FLAGS)
    return run_case(case_of(spec, Settings()), failures=folder)


GIVEN = {
    "a tuple": lambda: gradcli.check(Scaled, (leaf(), 1.0)).cases[0],
    "a list of tuples": lambda: gradcli.check(Scaled, [(leaf(), 1.0)]).cases[0],
    "a dict": lambda: gradcli.check(Scaled, {"x": leaf(), "scale": 1.0}).cases[0],
    "flags": lambda: checked(Scaled, parse_input("x=3"), parse_argument("scale=1.0")),
    "a flag beside inferred inputs": lambda: checked(Scaled, parse_argument("scale=1.0")),
    "sample_inputs": lambda: checked(Sampled),
}
NOT_GIVEN = {
    "a tuple": lambda: gradcli.check(Scaled, (leaf(),)).cases[0],
    "a dict": lambda: gradcli.check(Scaled, {"x": leaf()}).cases[0],
    "flags": lambda: checked(Scaled, parse_input("x=3")),
    "nothing": lambda: checked(Scaled),
}


@pytest.mark.parametrize("way", GIVEN)
def test_a_value_that_was_given_fails_by_itself_alone_and_others_are_told(way: str) -> None:
    case = GIVEN[way]()
    assert case.verdict is Verdict.PASSED
    told = [note for note in case.notes if "not counted" in note]
    wrong_there = "the gradient of x is wrong with scale=1.5625 (given: 1.0)"
    assert told == [f"{wrong_there}; not counted here, since scale was given"]


@pytest.mark.parametrize("way", NOT_GIVEN)
def test_a_default_may_hide_a_mistake(way: str) -> None:
    case = NOT_GIVEN[way]()
    assert case.verdict is Verdict.FAILED
    assert any("scale=1.5625" in finding.message for finding in case.findings)


def test_an_inferred_value_may_hide_a_mistake_and_the_same_value_given_does_not_fail() -> None:
    case = checked(Power)
    assert [each.value for each in case.inputs if each.name == "p"] == [2.5]
    assert case.verdict is Verdict.FAILED
    assert checked(Power, parse_input("x=3,domain=positive"), parse_argument("p=2.5")).verdict is Verdict.PASSED


def test_a_value_given_that_shows_the_mistake_fails() -> None:
    assert checked(Scaled, parse_argument("scale=3.0")).verdict is Verdict.FAILED


def test_a_saved_failure_remembers_which_values_were_given(tmp_path: Path) -> None:
    assert checked(Power, folder=tmp_path).verdict is Verdict.FAILED
    (file,) = tmp_path.glob("*.json")
    failure = load(file)
    assert [argument.fixed for argument in failure.arguments] == [False, False]
    assert replay(failure).verdict is Verdict.FAILED
    assert checked(Scaled, parse_argument("scale=3.0"), folder=tmp_path / "other").replay is not None
    (file,) = (tmp_path / "other").glob("*.json")
    assert [argument.fixed for argument in load(file).arguments] == [False, True]
    assert load(save(load(file), tmp_path)).arguments[1].fixed
