"""A patch for one mode of a Function must leave the others right, and hold at other numbers."""

import runpy

import numpy as np
import pytest

import gradcli
from benchmarks.fix.corpus import Specimen
from benchmarks.fix.run import case_of
from gradcli import engine
from gradcli.cases import CheckSpec, InputsFrom, InputSpec
from gradcli.edits.draft import draft_for
from gradcli.runner.arguments.prepare import prepared
from gradcli.runner.case import check_object
from gradcli.runner.outcome.modes import other_modes
from gradcli.runner.outcome.ranks import OtherNumbers
from gradcli.runner.planning.plan import plan
from gradcli.settings import Settings
from gradcli.spec.resolve import resolve
from tests import warm

TEXT = """from gradcli import engine as torch
from gradcli.engine.autograd import Function


class Loss(Function):
    @staticmethod
    def forward(ctx, x, reduction="sum", halved=False):
        ctx.save_for_backward(x)
        ctx.reduction, ctx.halved = reduction, halved
        loss = x * x / 2 if halved else x * x
        if reduction in ("none", "rows"):
            return loss if reduction == "none" else loss.sum(1)
        return loss.sum() if reduction == "sum" else loss.mean()

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        grad = x if ctx.halved else 2 * x
        if ctx.reduction == "rows":
            return g[:, None] * grad, None, None
        if CONDITION:
            grad = grad / x.numel()
        return grad * g, None, None
"""
RIGHT = TEXT.replace("CONDITION", "ctx.reduction not in ('sum', 'none')")
WRONG = TEXT.replace("CONDITION", "ctx.reduction != 'none'")


def test_the_words_that_the_code_compares_with_and_the_other_truth_value_are_tried(tmp_path):
    specimen = Specimen("own-modes", "", "engine", "Loss", RIGHT, RIGHT, frozenset(), inputs="x=nm")
    case, target = case_of(specimen, tmp_path)
    found = dict(other_modes(prepared(target, case)))
    assert set(found) == {"reduction='none'", "reduction='rows'", "reduction='another'", "halved=True"}
    assert [spec.value for spec in found["halved=True"]][1:] == ["sum", True]


@pytest.mark.sampled(1)
@pytest.mark.parametrize("given", [(), ("-i", "x=3x4", "-a", "reduction='sum'")])
def test_a_patch_of_one_mode_is_right_in_the_others(tmp_path, given):
    (tmp_path / "own.py").write_text(WRONG)
    done = warm.run_for_text(["fix", "own.py:Loss", *given, "--write", "--force"], tmp_path)
    assert done.returncode == 0, done.stdout
    words = "with reduction='none', with reduction='rows', with reduction='another', with halved=True"
    assert f"it passes {words}" in done.stdout
    loss = runpy.run_path(str(tmp_path / "own.py"))["Loss"]
    x = engine.tensor(np.random.default_rng(0).normal(size=(3, 4)), requires_grad=True)
    for mode in ("sum", "mean", "none", "rows"):
        report = gradcli.check(loss, (x, mode), shrink=False, only=["gradient"])
        assert report.ok, (tmp_path / "own.py").read_text()


NUMBERS = """import FRAMEWORK as torch
from FRAMEWORK.autograd import Function


class Own(Function):
    @staticmethod
    def forward(ctx, x, c, d=-0.7):
        ctx.save_for_backward(x)
        ctx.c, ctx.d = c, d
        return FORWARD

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * (BACKWARD), None, None
"""
HUBER = "torch.where(x.abs() <= c, 0.5 * x * x, c * (x.abs() - 0.5 * c)) + 0 * d"
HARDTANH = "x.clamp(d, c)"
DECAYED = "x.sin() * (1 - c * c) ** 0.5 + 0 * d"
ROOTED = "x.sin() * (1 - c + 0 * x).sqrt() + 0 * d"
FRAMEWORKS = ["gradcli.engine", "torch"]


def with_numbers(folder, framework, forward, backward):
    pytest.importorskip(framework.partition(".")[0])
    text = NUMBERS.replace("FRAMEWORK", framework).replace("FORWARD", forward)
    file = folder / f"numbers_{framework.partition('.')[0]}.py"
    file.write_text(text.replace("BACKWARD", backward))
    return file


@pytest.mark.parametrize("framework", FRAMEWORKS)
@pytest.mark.parametrize(
    ("forward", "before", "after", "value"),
    [
        (HUBER, "x.clamp(-1, 1)", "x.clamp(-ctx.c, ctx.c)", None),
        (HUBER, "x.clamp(-1, 1)", "x.clamp(-1, 1).clamp(-ctx.c, ctx.c)", "c=1.5625"),
        (HARDTANH, "(x > -1) & (x < 1)", "(x > ctx.d) & (x < ctx.c)", None),
        (HARDTANH, "(x > -1) & (x < 1)", "(x > -ctx.c) & (x < ctx.c)", "c="),
        (DECAYED, "x.cos() * (1 + ctx.c * ctx.c) ** 0.5", "x.cos() * (1 - ctx.c * ctx.c) ** 0.5", None),
        (ROOTED, "x.cos() * (1 - ctx.c + 0 * x).exp()", "x.cos() * (1 - ctx.c + 0 * x).sqrt()", None),
    ],
)
def test_an_edit_is_tried_at_numbers_beyond_those_written_in_it(tmp_path, framework, forward, before, after, value):
    """A right one passes, also where forward has no values beyond: sqrt(1 - c) for c above 1."""
    file = with_numbers(tmp_path, framework, forward, before)
    inputs = (InputSpec(name="x", kind="tensor", shape=(3, 4)), InputSpec(name="c", kind="value", value=0.7))
    (case,) = plan([CheckSpec(target=f"{file}:Own").with_inputs(inputs, InputsFrom.SPEC)], Settings())
    target = resolve(f"{file}:Own").object
    ready = prepared(target, case)
    draft = draft_for(ready.info)
    assert draft is not None
    made = draft.at(draft.file.text.replace(before, after))
    assert made is not None
    found = OtherNumbers(ready=ready, target=target, check=check_object).wrong_with(made.codes)
    assert (found is None) if value is None else (found is not None and found.startswith(value)), found


@pytest.mark.sampled(2)
@pytest.mark.parametrize("framework", FRAMEWORKS)
@pytest.mark.parametrize(
    ("forward", "wrong", "right"),
    [
        (HUBER, "x.clamp(-1.0, 1.0)", "x.clamp(-ctx.c, ctx.c)"),
        (HUBER, "x.clamp(min=-1.0, max=1.0)", "x.clamp(min=-ctx.c, max=ctx.c)"),
        (HARDTANH, "(x > -1) & (x < 1)", "(x > ctx.d) & (x < ctx.c)"),
    ],
)
def test_two_numbers_written_are_replaced_by_arguments(tmp_path, framework, forward, wrong, right):
    file = with_numbers(tmp_path, framework, forward, wrong)
    imports = "torch" if framework == "torch" else None
    done = warm.run_for_text(["fix", f"{file.name}:Own", "--write", "--force"], tmp_path, imports=imports)
    assert f"g * ({right})" in file.read_text() or f"g * {right}" in file.read_text(), done.stdout
    assert "not proven" not in done.stdout


@pytest.mark.sampled(1)
@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_a_correction_that_is_wrong_beyond_a_number_is_not_told(tmp_path, framework):
    """The second clamp, at 2, stays in the way of `x.clamp(-ctx.c, ctx.c)`."""
    file = with_numbers(tmp_path, framework, HUBER, "x.clamp(-1.0, 1.0).clamp(-2.0, 2.0) + 0 * x")
    imports = "torch" if framework == "torch" else None
    done = warm.run_for_text(["fix", f"{file.name}:Own"], tmp_path, imports=imports)
    shown = [line for line in done.stdout.splitlines() if "with this corrected" in line or line.startswith("+  ")]
    assert not any("2.0" in line for line in shown), done.stdout
