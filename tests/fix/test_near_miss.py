"""Where an edit makes a gradient right and something else still fails, `gradcli fix` says what."""

import pytest

from benchmarks.fix.corpus import Specimen
from benchmarks.fix.run import patched

TEXT = """from gradcli import engine as torch
from gradcli.engine.autograd import Function


class Own(Function):
    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        y = x.sin() * w
        ctx.kept = KEPT
        return y

    @staticmethod
    def backward(ctx, g):
        x, w = ctx.saved_tensors
        return g * x.cos(), g * x.sin()
"""


def fixed(tmp_path, kept):
    text = TEXT.replace("KEPT", kept)
    return patched(Specimen("own", "", "engine", "Own", text, text, frozenset(), inputs="x=nm w=nm"), tmp_path)[0]


def test_what_still_fails_is_said(tmp_path):
    result = fixed(tmp_path, "[y]")
    assert result.patch is None
    assert "with line 16 as `return g * x.cos() * w, g * x.sin()` the gradient of x is right" in result.reason
    assert result.reason.endswith("[leaks-memory]")


@pytest.mark.parametrize("kept", ["None", "y.shape"])
def test_nothing_is_said_where_a_patch_is_found(tmp_path, kept):
    result = fixed(tmp_path, kept)
    assert result.patch is not None
    assert result.reason is None
