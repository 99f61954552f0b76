"""A patch for one mode of a Function must leave the others right."""

import runpy

import numpy as np
import pytest

import gradcli
from benchmarks.fix.corpus import Specimen
from benchmarks.fix.run import case_of
from gradcli import engine
from gradcli.runner.arguments.prepare import prepared
from gradcli.runner.outcome.modes import other_modes
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
