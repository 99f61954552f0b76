"""What a correction says where it takes a name of forward's that backward does not have."""

import pytest

import gradcli
from gradcli.findings import FindingKind
from gradcli.verdict import Verdict

SOURCE = """
import {framework} as torch
from {framework}.autograd import Function

class Shifted(Function):
    @staticmethod
    def forward(ctx, x, weight, unit_offset=False):
        ctx.save_for_backward(x, weight)
        w = weight + 1 if unit_offset else weight
        return x * w

    @staticmethod
    def backward(ctx, g):
        x, weight = ctx.saved_tensors
        w = weight
        return g * w, (g * x).sum_to_size(weight.shape), None
"""


@pytest.mark.sampled(1)
@pytest.mark.parametrize("framework", ["gradcli.engine", "torch"])
def test_a_name_of_forward_is_said_to_be_forwards(framework, tmp_path):
    pytest.importorskip(framework)
    file = tmp_path / "shifted.py"
    file.write_text(SOURCE.format(framework=framework))
    case = gradcli.check(f"{file}:Shifted", order=1, shrink=False).cases[0]
    assert case.verdict is Verdict.FAILED
    assert (
        "`w = weight` in backward (line 15) should use the value that `w` has in forward, not `weight`"
        in case.findings[0].message
    )


MIRROR = """
import {framework} as torch
from {framework}.autograd import Function

class Mirror(Function):
    @staticmethod
    def forward(ctx, x, slope):
        y = x - 2 * (x * slope).sum(-1, keepdim=True) * slope
        ctx.save_for_backward(y, slope)
        return y

    @staticmethod
    def backward(ctx, g):
        y, slope = ctx.saved_tensors
        x = {again}
        of_slope = (g * slope).sum(-1, keepdim=True)
        return g - 2 * of_slope * slope, -2 * (of_slope * x + (x * slope).sum(-1, keepdim=True) * g)
"""
UNIT = "y - 2 * (y * slope).sum(-1, keepdim=True) * slope"
RIGHT = f"{UNIT} / (2 * (slope * slope).sum(-1, keepdim=True) - 1)"


@pytest.mark.sampled(2)
@pytest.mark.parametrize("framework", ["gradcli.engine", "torch"])
@pytest.mark.parametrize("again", [RIGHT, UNIT])
def test_an_input_that_is_computed_again_is_not_explained_by_itself(framework, again, tmp_path):
    pytest.importorskip(framework)
    file = tmp_path / f"mirror_{len(again)}.py"
    file.write_text(MIRROR.format(framework=framework, again=again))
    shapes = {name: {"shape": [3, 4]} for name in ("x", "slope")}
    case = gradcli.check(f"{file}:Mirror", shapes, order=1, samples=1, shrink=False).cases[0]
    assert case.verdict is (Verdict.PASSED if again == RIGHT else Verdict.FAILED)
    for finding in case.findings:
        assert finding.kind is FindingKind.WRONG_GRADIENT
        assert "should be the value that `x` has in forward" in finding.message


ROWS = """
import {framework} as torch
from {framework}.autograd import Function

class Rows(Function):
    @staticmethod
    def forward(ctx, x, w):
        total = (w * w).sum(1, keepdim=True)
        ctx.save_for_backward(total)
        ctx.T = x.shape[1]
        return x / total

    @staticmethod
    def backward(ctx, g):
        (total,) = ctx.saved_tensors
        return g / {by}, None
"""


@pytest.mark.sampled(2)
@pytest.mark.parametrize("framework", ["gradcli.engine", "torch"])
@pytest.mark.parametrize("by", ["total", "ctx.T"])
def test_a_number_kept_on_ctx_is_no_transposition(framework, by, tmp_path):
    pytest.importorskip(framework)
    file = tmp_path / f"rows_{len(by)}.py"
    file.write_text(ROWS.format(framework=framework, by=by))
    shapes = {"x": {"shape": [3, 4]}, "w": {"shape": [3, 4], "requires_grad": False}}
    case = gradcli.check(f"{file}:Rows", shapes, order=1, samples=1, shrink=False).cases[0]
    assert case.verdict is (Verdict.PASSED if by == "total" else Verdict.FAILED)
    for finding in case.findings:
        assert finding.kind is FindingKind.WRONG_FACTOR
        assert "where `g / total` belongs" in finding.message


UNSAVED = """
import {framework} as torch
from {framework}.autograd import Function


class Blend(Function):
    @staticmethod
    def forward(ctx, x, w, alpha=0.3):
        mix = torch.sigmoid(w * w + alpha) * torch.cos(w)
        ctx.save_for_backward(x, {saved})
        return torch.sin(x) * mix

    @staticmethod
    def backward(ctx, g):
        x, {saved} = ctx.saved_tensors
        return g * torch.cos(x) * {by_x}, None, None
"""


@pytest.mark.sampled(1)
@pytest.mark.parametrize("framework", ["gradcli.engine", "torch"])
@pytest.mark.parametrize(("saved", "by_x"), [("mix", "mix"), ("w", "1"), ("mix", "1")])
def test_a_local_name_of_forward_is_said_to_be_saved(framework, saved, by_x, tmp_path):
    pytest.importorskip(framework)
    file = tmp_path / f"blend_{saved}_{by_x}.py"
    file.write_text(UNSAVED.format(framework=framework, saved=saved, by_x=by_x))
    inputs = {"x": {"shape": [3, 4]}, "w": {"shape": [3, 4], "requires_grad": False}}
    case = gradcli.check(f"{file}:Blend", inputs, order=1, samples=1, shrink=False).cases[0]
    assert case.verdict is (Verdict.PASSED if by_x == "mix" else Verdict.FAILED)
    for finding in case.findings:
        assert ("forward has to save `mix` for this" in finding.message) is (saved == "w")
        assert "`mix`" in finding.message or "* mix" in finding.message


BRANCH = """
import {framework} as torch
from {framework}.autograd import Function


class Branch(Function):
    @staticmethod
    def forward(ctx, x, w, alpha=0.3):
        mix = torch.sigmoid(w * w + alpha) * torch.cos(w)
        ctx.save_for_backward(x, w)
        return torch.where(torch.sin(7 * x) > 0, torch.sin(x) * mix, x)

    @staticmethod
    def backward(ctx, g):
        x, w = ctx.saved_tensors
        return torch.where(torch.sin(7 * x) > 0, g * torch.cos(x){factor}, g), None, None
"""


@pytest.mark.usefixtures("unshrunk")
@pytest.mark.parametrize("factor", [" * torch.sigmoid(w * w + 0.3) * torch.cos(w)", ""])
def test_a_correction_is_said_once(factor, tmp_path):
    file = tmp_path / f"branch_{len(factor)}.py"
    file.write_text(BRANCH.format(framework="gradcli.engine", factor=factor))
    inputs = {"x": {"shape": [3, 4]}, "w": {"shape": [3, 4], "requires_grad": False}}
    case = gradcli.check(f"{file}:Branch", inputs, order=1, samples=1, only=("gradient",)).cases[0]
    assert case.verdict is (Verdict.PASSED if factor else Verdict.FAILED)
    for finding in case.findings:
        assert finding.kind is FindingKind.WRONG_ENTRIES
        assert finding.message.count("with this corrected") == 1, finding.message
        assert finding.message.count("forward has to save `mix`") == 1
