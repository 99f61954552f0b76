"""Where forward computes a value and never uses it, a wrong gradient is placed there, and backward is not corrected."""

import pytest

import gradcli
from gradcli.verdict import Verdict

SHIFTED = """
import gradcli.engine as ns


class Shifted(ns.autograd.Function):
    @staticmethod
    def forward(ctx, x, w):
        {computed}
        rows = x.shape[0]
        ctx.save_for_backward(x, w)
        return ns.sin(x) * {used}

    @staticmethod
    def backward(ctx, g):
        x, w = ctx.saved_tensors
        return g * ns.cos(x) * {by_x}, (g * ns.sin(x)).sum(0)
"""


def checked(tmp_path, **parts):
    file = tmp_path / "shifted.py"
    file.write_text(SHIFTED.format(**parts))
    (case,) = gradcli.check(str(file), order=1, samples=1).cases
    return case


@pytest.mark.parametrize(("computed", "used"), [("scale = w + 1", "scale"), ("unused = x - w", "(1 + w)")])
def test_a_right_gradient_passes_whatever_forward_leaves_unused(tmp_path, computed, used):
    assert checked(tmp_path, computed=computed, used=used, by_x="(1 + w)").verdict is Verdict.PASSED


def test_an_unused_value_of_forward_is_the_place_of_a_wrong_gradient(tmp_path):
    case = checked(tmp_path, computed="scale = w + 1", used="w", by_x="(w + 1)")
    (finding,) = case.findings
    assert "forward computes `scale` (line 8) and never uses it" in finding.message
    assert finding.location.line == 8
    assert case.patch is None


@pytest.mark.parametrize(
    "computed", ["scale = 1 + w", "left = x - w", "columns = x.shape[1]", "_ = w + 1", "scale = w.shape[0] + 1"]
)
def test_a_size_or_a_value_that_backward_does_not_use_is_no_place_of_the_mistake(tmp_path, computed):
    used = "scale" if computed == "scale = 1 + w" else "(1 + w)"
    (finding,) = checked(tmp_path, computed=computed, used=used, by_x="w").findings
    assert "never uses" not in finding.message
    assert finding.location.line == 16
