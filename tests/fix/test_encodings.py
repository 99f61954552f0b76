"""A file is read and written in the encoding and with the line ends that it has."""

import codecs
import subprocess

import pytest

from tests import warm

TEXT = """from gradcli import engine as torch
from gradcli.engine.autograd import Function


class Own(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return torch.sin(x)  # été

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * x.sin()
"""
FILES = {
    "utf-8": TEXT.encode(),
    "with a mark of byte order": codecs.BOM_UTF8 + TEXT.encode(),
    "latin-1": b"# -*- coding: latin-1 -*-\n" + TEXT.encode("latin-1"),
    "Windows line ends": TEXT.replace("\n", "\r\n").encode(),
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("kind", FILES)
def test_only_the_corrected_bytes_change(kind, tmp_path):
    path = tmp_path / "own.py"
    path.write_bytes(FILES[kind])
    done = warm.run_for_text(["fix", "own.py:Own", "-i", "x=3x4", "--write", "--force"], tmp_path)
    assert done.returncode == 0, done.stdout
    assert "\\x0d" not in done.stdout
    assert path.read_bytes() == FILES[kind].replace(b"g * x.sin()", b"g * x.cos()")


CHANGED = TEXT.replace("g * x.sin()", "g * x.sin()  # été")
DIFFS = {
    **FILES,
    "latin-1 on the changed line": b"# -*- coding: latin-1 -*-\n" + CHANGED.encode("latin-1"),
    "Shift JIS": b"# -*- coding: shift_jis -*-\n" + CHANGED.replace("été", "夏").encode("shift_jis"),
    "a mark on a line of the diff": codecs.BOM_UTF8
    + b"from gradcli.engine.autograd import Function\nclass Own(Function):\n    @staticmethod\n"
    + b"    def backward(ctx, g): return g * ctx.saved_tensors[0].sin()\n    @staticmethod\n"
    + b"    def forward(ctx, x): ctx.save_for_backward(x); return x.sin()\n",
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("kind", DIFFS)
def test_git_applies_the_diff(kind, tmp_path):
    """It compares bytes, whatever the encoding of the file."""
    path = tmp_path / "own.py"
    path.write_bytes(DIFFS[kind])
    done = warm.run(["fix", "own.py:Own", "-i", "x=3x4", "--diff"], tmp_path)
    assert done.returncode == 0, done.stdout
    applied = subprocess.run(["git", "apply", "-"], cwd=tmp_path, input=done.stdout, capture_output=True)
    assert applied.returncode == 0, applied.stderr
    after = DIFFS[kind].replace(b"g * x.sin()", b"g * x.cos()").replace(b"[0].sin()", b"[0].cos()")
    assert path.read_bytes() == after
