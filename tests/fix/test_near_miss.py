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


LINEAR = """from FRAMEWORK.autograd import Function


class Own(Function):
    @staticmethod
    def forward(ctx, x, w, b=None):
        ctx.save_for_backward(x, w)
        y = x @ w.t() if b is None else x @ w.t() + b
        ctx.kept = KEPT
        return y

    @staticmethod
    def backward(ctx, g):
        x, w = ctx.saved_tensors
        gx = gw = gb = None
        if ctx.needs_input_grad[0]:
            gx = g @ w
        if ctx.needs_input_grad[0]:
            gw = g.t() @ x
        if ctx.needs_input_grad[2]:
            gb = g.sum(0)
        return gx, gw, gb
"""


@pytest.mark.parametrize("framework", ["gradcli.engine", "torch"])
@pytest.mark.parametrize("kept", ["[y]", "None"])
def test_a_condition_that_is_corrected_is_named_where_something_else_fails(tmp_path, framework, kept):
    """Without b there is no `needs_input_grad[2]`: None is passed for it."""
    pytest.importorskip(framework.partition(".")[0])
    text, name = LINEAR.replace("FRAMEWORK", framework).replace("KEPT", kept), framework.rpartition(".")[2]
    result = patched(Specimen("own", "", name, "Own", text, text, frozenset()), tmp_path)[0]
    if kept == "None":
        assert "if ctx.needs_input_grad[1]:" in result.patch.after
        return
    assert result.patch is None
    assert "with line 18 as `if ctx.needs_input_grad[1]:` the gradient of w is right" in result.reason
