"""A correction is told only if it holds for the other inputs' gradients, and for inputs in other proportions."""

import pytest

import gradcli
from gradcli.diagnosis.slips.wording import CORRECTED
from gradcli.verdict import Verdict

torch = pytest.importorskip("torch")

HEADER = """
import torch
import torch.nn.functional as F
from torch.autograd import Function


"""
LAGGED = """
def earlier(x):
    return F.pad(x, (1, 0))[..., :-1]


class Lagged(Function):
    @staticmethod
    def forward(ctx, x, y):
        ctx.save_for_backward(x, y)
        return x * earlier(y)

    @staticmethod
    def backward(ctx, g):
        x, y = ctx.saved_tensors
        t = g * x
        return g * earlier(y), {by_y}
"""
LAGGED_RIGHT, LAGGED_WRONG = "earlier(t.flip(-1)).flip(-1)", "earlier(t)"
SOFTMAX = """
class Softmax(Function):
    @staticmethod
    def forward(ctx, x):
        y = torch.softmax(x, -1)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, g):
        (y,) = ctx.saved_tensors
        return y * (g {sign} (g * y).sum(1, keepdim=True))
"""
BESIDE = """
class Beside(Function):
    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        return -(torch.softmax(x, -1) * w).sum()

    @staticmethod
    def backward(ctx, g):
        x, w = ctx.saved_tensors
        y = torch.softmax(x, -1)
        post = y * (w - (y * w).sum(-1, keepdim=True))
        return {slope} * g, -y * g
"""
RATIO = """
class Ratio(Function):
    @staticmethod
    def forward(ctx, x, step):
        \"\"\"step is a positive number.\"\"\"
        ctx.save_for_backward(x, step)
        return (x / step).clamp(-4, 4) ** 2 * step

    @staticmethod
    def backward(ctx, g):
        x, step = ctx.saved_tensors
        q = x / step
        inside = (q.abs() < 4).to(g.dtype)
        by_step = {by_step}
        return 2 * g * inside * q, by_step.reshape(step.shape)
"""
RATIO_RIGHT = "(g * ((1 - inside) * 16 - inside * q * q)).sum()"
OUTER = """
class Outer(Function):
    @staticmethod
    def forward(ctx, a, b):
        ctx.save_for_backward(a, b)
        return torch.sin(torch.outer(a, b))

    @staticmethod
    def backward(ctx, g):
        a, b = ctx.saved_tensors
        t = g * torch.cos(torch.outer(a, b))
        t = t.reshape(b.shape[0], a.shape[0]).t() if {condition} else t
        return (t * b).sum(1), (t * a[:, None]).sum(0)
"""
WAVE = """
class Wave(Function):
    @staticmethod
    def forward(ctx, x, height):
        ctx.save_for_backward(x, height)
        return torch.sin(x) * height

    @staticmethod
    def backward(ctx, g):
        x, height = ctx.saved_tensors
        s = torch.sin(x)
        return {returned}
"""
ROOT = """
class Root(Function):
    @staticmethod
    def forward(ctx, x, w, low=1e-4):
        power = x * w
        ctx.save_for_backward(x, w)
        ctx.low = low
        return power.clamp(min=low).sqrt()

    @staticmethod
    def backward(ctx, g):
        x, w = ctx.saved_tensors
        m = {mask}g / (x * w).clamp(min=ctx.low).sqrt() / 2
        return m * w, m * x, None
"""


def checked(tmp_path, source, *, samples=1):
    file = tmp_path / "proportions.py"
    file.write_text(HEADER + source)
    (case,) = gradcli.check(str(file), order=1, samples=samples, only=["gradient"]).cases
    return case


@pytest.mark.parametrize(
    "source",
    [
        LAGGED.format(by_y=LAGGED_RIGHT),
        SOFTMAX.format(sign="-"),
        RATIO.format(by_step=RATIO_RIGHT),
        BESIDE.format(slope="-post"),
        SOFTMAX.format(sign="-").replace("Function):", 'Function):\n    """x: (rows, columns)"""\n'),
        OUTER.format(condition="False"),
        WAVE.format(returned="g * torch.cos(x) * height, g * s"),
        ROOT.format(mask="(x * w > ctx.low) * "),
    ],
)
def test_the_right_twins_pass(tmp_path, source):
    assert checked(tmp_path, source).verdict is Verdict.PASSED


def test_an_axis_that_is_the_last_one_of_a_matrix_is_named_as_the_last(tmp_path):
    (finding,) = checked(tmp_path, LAGGED.format(by_y=LAGGED_WRONG)).findings
    assert "flip(-1)" in finding.message
    assert finding.message.endswith(CORRECTED)


def test_a_correction_for_matrices_alone_says_so(tmp_path):
    (finding,) = checked(tmp_path, SOFTMAX.format(sign="+")).findings
    assert f"{CORRECTED} for inputs with as many axes as these, but not for others" in finding.message


@pytest.mark.parametrize(("shape", "is_limited"), [("(rows, columns)", False), ("(*, columns)", True)])
def test_a_correction_for_matrices_is_limited_to_them_unless_documentation_is(tmp_path, shape, is_limited):
    documented = SOFTMAX.replace("class Softmax(Function):", f'class Softmax(Function):\n    """x: {shape}"""\n')
    (finding,) = checked(tmp_path, documented.format(sign="+")).findings
    assert finding.message.endswith(CORRECTED) is not is_limited


def test_a_term_too_many_is_named_as_such_and_not_as_a_lack_of_its_opposite(tmp_path):
    (finding,) = checked(tmp_path, BESIDE.format(slope="(torch.exp(x) - post)")).findings
    assert "`(torch.exp(x) - post) * g` where `-post * g` belongs" in finding.message


def test_a_correction_has_to_hold_where_one_input_is_larger_than_the_other(tmp_path):
    """A clamp of a quotient is not reached where both inputs grow."""
    case = checked(tmp_path, RATIO.format(by_step="-(g * q).sum()"))
    assert case.verdict is Verdict.FAILED
    assert not any(CORRECTED in finding.message for finding in case.findings)


def test_a_comparison_of_sizes_is_corrected_only_for_sizes_in_any_order(tmp_path):
    case = checked(tmp_path, OUTER.format(condition="a.shape[0] != b.shape[0]"))
    assert case.verdict is Verdict.FAILED
    assert not any("shape[0] > " in f.message or "shape[0] == " in f.message for f in case.findings)
    assert not any("b.shape[0] != b.shape[0]" in f.message for f in case.findings)


def test_a_correction_of_one_gradient_may_not_change_another_wrong_one(tmp_path):
    """With the cosine for `s`, the gradient of x is right, and that of height is wrong in another way."""
    case = checked(tmp_path, WAVE.format(returned="g * s * height, g * s / 2"))
    assert {finding.input for finding in case.findings} == {"x", "height"}
    assert not any("line 17" in finding.message for finding in case.findings)


def test_a_comparison_with_zero_is_no_correction_where_forward_clamps_at_another_number(tmp_path):
    """Hardly any product lies between zero and the limit until that is as large as they are."""
    case = checked(tmp_path, ROOT.format(mask=""))
    assert {finding.input for finding in case.findings} == {"x", "w"}
    assert not any(CORRECTED in finding.message for finding in case.findings)
