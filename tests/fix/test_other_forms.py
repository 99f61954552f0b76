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
CHAIN = """class Own(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return torch.exp(x[:-1] * x[1:]).sum()

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        n = len(x)
        gx = torch.zeros_like(x)
        for t in range(n - 2, -1, -1):
            gx[t] += torch.exp(x[t] * x[t + 1]) * x[t + 1]
        for t in range(0, n - 1):
            gx[t + 1] += torch.exp(x[t] * x[t + 1]) * x[t]
        return g * gx
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
INVERSE = """class Own(Function):
    @staticmethod
    def forward(ctx, a):
        b = torch.linalg.inv(a)
        ctx.save_for_backward(b)
        return b

    @staticmethod
    def backward(ctx, g):
        (b,) = ctx.saved_tensors
        return -b.mT @ g @ b.mT
"""
LOGSUMEXP = """class Own(Function):
    @staticmethod
    def forward(ctx, x):
        out = torch.logsumexp(x, -1)
        ctx.save_for_backward(x, out)
        return out

    @staticmethod
    def backward(ctx, g):
        x, out = ctx.saved_tensors
        return torch.exp(x - out[..., None]) * g[..., None]
"""
RUNNING = """class Own(Function):
    @staticmethod
    def forward(ctx, x):
        return x.cumsum(-1)

    @staticmethod
    def backward(ctx, g):
        return g.flip(-1).cumsum(-1).flip(-1)
"""
LEFT = """class Own(Function):
    @staticmethod
    def forward(ctx, x):
        return x.cumsum(0)

    @staticmethod
    def backward(ctx, g):
        r = g.flip(0).cumsum(0).flip(0)
        return r
"""
SCALED = """        for k in range(1, len(r)):
            r[k] = r[k] * 1.01
        return r
"""
GATE = """class Own(Function):
    @staticmethod
    def forward(ctx, x, k):
        ctx.k = k
        ctx.save_for_backward(x)
        return x * torch.sigmoid(k * x)

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        s = torch.sigmoid(ctx.k * x)
        return g * (s + ctx.k * x * s * (1 - s)), None
"""
THRESHOLD = """class Own(Function):
    @staticmethod
    def forward(ctx, x, thr):
        ctx.save_for_backward(x)
        ctx.thr = thr
        return torch.where(x > thr, x * x, torch.zeros_like(x) + thr)

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return torch.where(x > ctx.thr, 2 * x * g, torch.zeros_like(g)), None
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


SHORT = {
    "a loop after one with the same variable": (CHAIN, ("(0, n - 1)", "(1, n - 1)"), [], "range(0, n - 1)"),
    "a matrix transposed everywhere": (INVERSE, ("-b.mT @ g @ b.mT", "-b @ g @ b"), [], "-b.mT @ g @ b.mT"),
    "an axis": (LOGSUMEXP, ("g[..., None]", "g"), [], "* g[..., None]"),
    "a negative axis": (RUNNING, ("g.flip(-1).", "g."), [], "g.flip(-1).cumsum(-1).flip(-1)"),
    "a statement too many": (LEFT, ("        return r\n", SCALED), ["-i", "x=3x4"], "flip(0)\n        return r\n"),
    "an argument, not its value": (GATE, ("ctx.k * x * s", "x * s"), ["-i", "x=3x4", "-a", "k=2"], "ctx.k * x * s"),
    "a threshold": (THRESHOLD, ("> ctx.thr", "> 0"), ["-i", "x=5x6", "-a", "thr=2"], "x > ctx.thr, 2 * x"),
}
TOLD = {
    "a statement too many": "`for k in range(1, len(r)): r[k] = r[k] * 1.01`, should not be there; with this corrected",
    "an argument, not its value": "`g * (s + ctx.k * x * s * (1 - s))` belongs",
    "a threshold": "`torch.where(x > ctx.thr, 2 * x * g, torch.zeros_like(g))` belongs",
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("framework", ["torch", "gradcli.engine"])
@pytest.mark.parametrize("name", SHORT)
def test_a_short_edit_is_preferred_to_running_forward_again(name, framework, tmp_path):
    text, (right, wrong), inputs, patched = SHORT[name]
    own, imports = tmp_path / "own.py", "torch" if framework == "torch" else None
    head = f"import {framework} as torch\nfrom {framework}.autograd import Function\n\n\n"
    own.write_text(head + text)
    assert warm.run_for_text(["check", "own.py:Own", *inputs], tmp_path, imports=imports).returncode == 0
    own.write_text(head + text.replace(right, wrong))
    fixed = warm.run_for_text(["fix", "own.py:Own", *inputs, "--write", "--force"], tmp_path, imports=imports)
    assert fixed.returncode == 0, fixed.stdout
    assert patched in own.read_text(), fixed.stdout
    assert "not proven" not in fixed.stdout
    assert TOLD.get(name, "") in fixed.stdout
