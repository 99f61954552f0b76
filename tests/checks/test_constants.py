"""Number arguments at other values, which may show a mistake that a neutral one hides; one that was given and only
steers backward is the user's choice."""

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
from gradcli.runner.planning.plan import case_of
from gradcli.runner.store.failures import load, save
from gradcli.runner.store.replay import replay
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


class Damped(Function):
    """The identity, whose gradient is damped on purpose."""

    @staticmethod
    def forward(ctx: Any, x: Any, strength: float = 0.0) -> Any:
        ctx.strength = strength
        return x.clone()

    @staticmethod
    def backward(ctx: Any, grad_output: Any) -> Any:
        return grad_output / (1 + ctx.strength), None


class Sampled(Damped):
    """The same with inputs that its author gives."""

    @staticmethod
    def sample_inputs() -> tuple[Any, ...]:
        return leaf(), 0.0


def leaf() -> Any:
    return tensor([0.5, -1.25, 2.0], dtype=float64, requires_grad=True)


def checked(target: type, *inputs: InputSpec, folder: Path | None = None) -> CheckResult:
    spec = CheckSpec(target=TARGET + target.__name__, inputs=inputs or None, inputs_from=InputsFrom.FLAGS)
    settings = Settings(order=1, shrink=folder is not None)  # which what is saved needs
    return run_case(case_of(spec, settings), failures=folder)


GIVEN = {
    "a tuple": lambda: gradcli.check(Damped, (leaf(), 0.0), shrink=False).cases[0],
    "a list of tuples": lambda: gradcli.check(Damped, [(leaf(), 0.0)], shrink=False).cases[0],
    "a dict": lambda: gradcli.check(Damped, {"x": leaf(), "strength": 0.0}, shrink=False).cases[0],
    "flags": lambda: checked(Damped, parse_input("x=3"), parse_argument("strength=0.0")),
    "a flag beside inferred inputs": lambda: checked(Damped, parse_argument("strength=0.0")),
    "sample_inputs": lambda: checked(Sampled),
}
NOT_GIVEN = {
    "a tuple": lambda: gradcli.check(Damped, (leaf(),), shrink=False).cases[0],
    "a dict": lambda: gradcli.check(Damped, {"x": leaf()}, shrink=False).cases[0],
    "flags": lambda: checked(Damped, parse_input("x=3")),
    "nothing": lambda: checked(Damped),
}
HIDDEN = {
    "a tuple": lambda: gradcli.check(Scaled, (leaf(), 1.0), shrink=False).cases[0],
    "flags": lambda: checked(Scaled, parse_input("x=3"), parse_argument("scale=1.0")),
    "a default": lambda: gradcli.check(Scaled, (leaf(),), shrink=False).cases[0],
    "nothing": lambda: checked(Scaled),
}


@pytest.mark.parametrize("way", GIVEN)
def test_a_number_given_that_only_steers_backward_is_told_at_other_values(way: str) -> None:
    case = GIVEN[way]()
    assert case.verdict is Verdict.PASSED
    noted = [note for note in case.notes if "not counted as a failure" in note]
    wrong_there = "the gradient of x is wrong with strength=0.375 (given: 0.0)"
    because = (
        "you gave strength and forward does not depend on it, so backward may scale or clip the gradient by it "
        "on purpose"
    )
    assert noted == [f"{wrong_there}; not counted as a failure, because {because}"]


@pytest.mark.parametrize("way", NOT_GIVEN)
def test_a_number_left_at_its_default_or_inferred_counts_at_other_values(way: str) -> None:
    case = NOT_GIVEN[way]()
    assert case.verdict is Verdict.FAILED
    assert any("strength=" in finding.message for finding in case.findings)


@pytest.mark.parametrize("way", HIDDEN)
def test_a_neutral_number_may_hide_a_mistake_however_it_came(way: str) -> None:
    case = HIDDEN[way]()
    assert case.verdict is Verdict.FAILED
    assert any("scale=0.75" in finding.message for finding in case.findings)


def test_an_exponent_for_which_backward_happens_to_be_right_hides_that_it_is_wrong_for_others() -> None:
    case = checked(Power)
    assert [each.value for each in case.inputs if each.name == "p"] == [2.5]
    assert case.verdict is Verdict.FAILED
    assert checked(Power, parse_input("x=3,domain=positive"), parse_argument("p=2.5")).verdict is Verdict.FAILED


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


@pytest.mark.sampled(4)
@pytest.mark.parametrize("twin", ["right", "wrong"])
@pytest.mark.parametrize("given", [{}, {"ignore_index": -100}, {"ignore_index": 1}])
def test_some_entries_are_ignored_where_an_argument_says_which(ns: Any, given: dict[str, int], twin: str) -> None:
    class MeanSquare(ns.autograd.Function):  # type: ignore[misc]
        @staticmethod
        def forward(ctx: Any, x: Any, labels: Any, ignore_index: int = -100) -> Any:
            keep = ns.where(labels != ignore_index, 1.0, 0.0).to(x.dtype)
            ctx.save_for_backward(x, keep)
            return ((x**2).sum(-1) * keep).sum() / keep.sum()

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            x, keep = ctx.saved_tensors
            count = keep.sum() if twin == "right" else keep.numel()
            return 2 * g * x * keep.unsqueeze(-1) / count, None, None

    x = ns.tensor([[1.0, -2.0], [0.5, 3.0], [1.5, 0.25]], dtype=ns.float64, requires_grad=True)
    case = gradcli.check(MeanSquare, (x, ns.tensor([0, 2, 0]), *given.values()), shrink=False).cases[0]
    assert case.verdict is (Verdict.PASSED if twin == "right" else Verdict.FAILED), case.notes
    if twin == "wrong":
        assert "with ignore_index=2" in case.findings[0].message


MASKED = """
import {framework} as torch
from {framework}.autograd import Function


class Picked(Function):
    @staticmethod
    def forward(ctx, logp, labels, {name}):
        keep = {comparison}
        safe = torch.where(keep, labels, torch.zeros_like(labels))
        ctx.save_for_backward(safe, keep)
        ctx.shape = logp.shape
        return -(logp.gather(1, safe[:, None])[:, 0] * keep).sum()

    @staticmethod
    def backward(ctx, g):
        safe, keep = ctx.saved_tensors
        one_hot = torch.zeros(ctx.shape, dtype=g.dtype).scatter(1, safe[:, None], 1.0)
        return -g * one_hot{masked}, None, None
"""


@pytest.mark.sampled(3)
@pytest.mark.parametrize("twin", ["right", "wrong"])
@pytest.mark.parametrize(
    ("name", "comparison"),
    [
        ("lb_ignore", "~labels.eq(lb_ignore)"),
        ("padding_idx", "labels != padding_idx"),
        ("skip", "labels != skip"),
        ("skip", "torch.ne(labels, skip)"),
        ("code", "~(code == labels.view(-1))"),
    ],
)
def test_what_is_compared_with_indices_becomes_one_of_them(
    tmp_path: Path, ns: Any, name: str, comparison: str, twin: str
) -> None:
    masked = " * keep[:, None].to(g.dtype)" if twin == "right" else ""
    file = tmp_path / "masked.py"
    file.write_text(MASKED.format(framework=ns.__name__, name=name, comparison=comparison, masked=masked))
    logp = ns.tensor([[1.0, -2.0, 0.3], [0.5, 3.0, 1.1], [1.5, 0.25, 0.7]], dtype=ns.float64, requires_grad=True)
    case = gradcli.check(f"{file}:Picked", (logp, ns.tensor([0, 2, 0]), -100), shrink=False).cases[0]
    assert case.verdict is (Verdict.PASSED if twin == "right" else Verdict.FAILED), case
    assert twin == "right" or f"with {name}=2 (given: -100)" in case.findings[0].message


def windowed(ns: Any, twin: str) -> Any:
    class WindowedMean(ns.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, width: int = 3) -> Any:
            ctx.width, ctx.n = width, x.shape[-1]
            return sum(x[..., i : ctx.n - width + 1 + i] for i in range(width)) / width

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            if twin == "raises" and ctx.width != 3:
                raise NotImplementedError(ctx.width)
            found = ns.zeros((*g.shape[:-1], ctx.n), dtype=g.dtype)
            for i in range(ctx.width):
                found[..., i : ctx.n - ctx.width + 1 + i] += g
            return found / (3 if twin == "wrong" else ctx.width), None

    return WindowedMean


@pytest.mark.sampled(3)
@pytest.mark.parametrize("twin", ["right", "wrong", "raises"])
def test_a_number_that_changes_the_outputs_shape_is_tried_too(ns: Any, twin: str) -> None:
    (case,) = gradcli.check(windowed(ns, twin), order=1, shrink=False).cases
    assert case.verdict is (Verdict.FAILED if twin == "wrong" else Verdict.PASSED), case
    assert twin != "wrong" or any("width=4 (default: 3)" in note for note in (*case.notes, str(case)))


def cumulated(ns: Any, twin: str) -> Any:
    class Cumulated(ns.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, dim: int = 0) -> Any:
            ctx.dim = dim
            return x.cumsum(dim)

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            if twin == "raises" and ctx.dim:
                raise NotImplementedError("the first axis only")
            dim = 0 if twin == "wrong" else ctx.dim
            return g.flip(dim).cumsum(dim).flip(dim), None

    return Cumulated


@pytest.mark.sampled(3)
@pytest.mark.parametrize("twin", ["right", "wrong", "raises"])
def test_another_axis_is_tried_too(ns: Any, twin: str) -> None:
    (case,) = gradcli.check(cumulated(ns, twin), order=1, shrink=False).cases
    assert case.verdict is (Verdict.FAILED if twin == "wrong" else Verdict.PASSED), case
    assert twin != "wrong" or "the error appears with dim=1 (default: 0)" in case.findings[0].message
    assert any("with dim=1 (default: 0), forward runs but backward raised" in n for n in case.notes) is (
        twin == "raises"
    )
