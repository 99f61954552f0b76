"""Mistakes that other forms of one expression correct: named by what belongs there, and patched; right twins pass."""

import pytest

from tests import warm

pytest.importorskip("torch", reason="the Functions are written on PyTorch")

HEAD = """import torch
import torch.nn.functional as F
from torch.autograd import Function


"""
CONVOLUTION = """class Own(Function):
    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        return F.pad(x, (len(w) - 1, 0)).unfold(1, len(w), 1) @ w.flip(0)

    @staticmethod
    def backward(ctx, g):
        x, w = ctx.saved_tensors
        k = len(w)
        after = F.pad(g, (0, k - 1)).unfold(1, k, 1)
        before = F.pad(x, (k - 1, 0)).unfold(1, k, 1)
        return after @ w, torch.einsum("nt,ntk->k", g, before).flip(0)
"""
CLAMP = """class Own(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.clamp(-0.5, 0.5)

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        below, above = x < -0.5, x > 0.5
        return g * ~(below | above)
"""
DETERMINANT = """class Own(Function):
    @staticmethod
    def forward(ctx, a):
        ctx.save_for_backward(a)
        return torch.logdet(a)

    @staticmethod
    def backward(ctx, g):
        (a,) = ctx.saved_tensors
        return g * a.inverse().t()
"""
POOL = """class Own(Function):
    @staticmethod
    def forward(ctx, x, size):
        ctx.size = size
        return x.view(len(x), -1, size).mean(-1)

    @staticmethod
    def backward(ctx, g):
        return g.repeat_interleave(ctx.size, 1) / ctx.size, None
"""
RUNNING_MEAN = """class Own(Function):
    @staticmethod
    def forward(ctx, x):
        return x.cumsum(1) / torch.arange(1, x.shape[1] + 1)

    @staticmethod
    def backward(ctx, g):
        counts = torch.arange(0, g.shape[1]) + 1
        return (g / counts).flip(1).cumsum(1).flip(1)
"""
FILTER = """class Own(Function):
    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(w)
        return F.conv2d(x, w.detach(), padding=1)

    @staticmethod
    def backward(ctx, g):
        (w,) = ctx.saved_tensors
        return F.conv_transpose2d(g, w, padding=1), None
"""
KERNEL = ["-i", "x=2x2x4x4", "-i", "w=3x2x3x3,grad=false"]
CASES = {
    "the side of padding": (
        CONVOLUTION,
        ("F.pad(g, (0, k - 1))", "F.pad(g, (k - 1, 0))"),
        ["-i", "x=3x6", "-i", "w=3"],
    ),
    "a mask": (CLAMP, ("~(below | above)", "(below | above)"), ["-i", "x=3x4"]),
    "an inverse": (DETERMINANT, (".inverse()", ""), ["-i", "a=3x3,domain=spd"]),
    "entries repeated": (
        POOL,
        ("repeat_interleave(ctx.size, 1)", "repeat(1, ctx.size)"),
        ["-i", "x=3x4", "-a", "size=2"],
    ),
    "a number off by one": (RUNNING_MEAN, ("shape[1]) + 1", "shape[1]) + 2"), ["-i", "x=3x4"]),
    "a kernel": (
        FILTER,
        ("conv_transpose2d(g, w,", "conv2d(g, w.transpose(0, 1),"),
        ["-i", "x=2x2x4x4", "-i", "w=3x2x3x3,grad=false"],
    ),
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", CASES)
def test_another_form_is_named_and_patched(name, tmp_path):
    text, (right, wrong), inputs = CASES[name]
    own = tmp_path / "own.py"
    only = ["--only", "gradient"]
    own.write_text(HEAD + text)
    assert warm.run_for_text(["check", "own.py:Own", *inputs, *only], tmp_path, imports="torch").returncode == 0
    own.write_text(HEAD + text.replace(right, wrong))
    checked = warm.run_for_text(["check", "own.py:Own", *inputs, *only], tmp_path, imports="torch")
    assert checked.returncode == 1, checked.stdout
    assert "with this corrected, the returned gradient is right" in checked.stdout
    assert "wrong-gradient" not in checked.stdout
    fixed = warm.run_for_text(["fix", "own.py:Own", *inputs, "--write", "--force"], tmp_path, imports="torch")
    assert fixed.returncode == 0, fixed.stdout
    assert "runs forward again" not in fixed.stdout
    assert warm.run_for_text(["check", "own.py:Own", *inputs], tmp_path, imports="torch").returncode == 0
