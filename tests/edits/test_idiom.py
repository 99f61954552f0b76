"""Patches are written as the file writes such things, and are named by what they change."""

import pytest

from benchmarks.fix.corpus import Specimen
from benchmarks.fix.run import named, patched

HEAD = "from gradcli import engine as torch\nfrom gradcli.engine.autograd import Function\n\n\n"
CASES = {
    "masks joined by or": (
        "torch.where((x > -0.5) & (x < 0.5), x * x, 0.0 * x) * w",
        "g * 2 * x * w * ((x > -0.5) | (x < 0.5)), g * torch.where((x > -0.5) & (x < 0.5), x * x, 0.0 * x)",
        "wrong-entries",
        "g * 2 * x * w * ((x > -0.5) & (x < 0.5)), g",
    ),
    "a quadratic form taken for symmetric": (
        "(x * (x @ w)).sum(1)",
        "g.unsqueeze(1) * (2 * x @ w), (g.unsqueeze(1) * x).t() @ x",
        "transposed",
        "g.unsqueeze(1) * (x @ (w + w.t())), (g",
    ),
    "an axis of the file's kind": (
        "x - x.mean(1, keepdim=True) + w",
        "g, g",
        "missing-term",
        "g - g.mean(1, keepdim=True), g",
    ),
    "an axis counted from the last": (
        "x - x.mean(-1, keepdim=True) + w",
        "g, g",
        "missing-term",
        "g - g.mean(-1, keepdim=True), g",
    ),
}


def source(forward: str, backward: str) -> str:
    return (
        f"{HEAD}class Own(Function):\n    @staticmethod\n    def forward(ctx, x, w):\n"
        f"        ctx.save_for_backward(x, w)\n        return {forward}\n\n    @staticmethod\n"
        f"    def backward(ctx, g):\n        x, w = ctx.saved_tensors\n        return {backward}\n"
    )


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", CASES)
def test_a_patch_is_written_as_the_file_writes(name, tmp_path):
    forward, backward, kind, line = CASES[name]
    text = source(forward, backward)
    result, _ = patched(Specimen("own", "", "engine", "Own", text, text, frozenset()), tmp_path)
    assert result.sentences[0].endswith(f"[{kind}]")
    assert result.patch is not None
    assert line in result.patch.after


@pytest.mark.parametrize(("spelt", "other"), [("w.T", "x.T"), ("w.t()", "x.t()")])
def test_a_transposition_is_spelt_as_elsewhere_in_the_file(spelt, other, tmp_path):
    text = source("x @ w", f"g @ w, {other} @ g")
    result, _ = named(Specimen("own", "", "engine", "Own", text, text, frozenset()), tmp_path)
    assert result.sentences[0].endswith("[transposed]")
    assert result.patch is not None
    assert f"g @ {spelt}, {other} @ g" in result.patch.after


def test_a_patch_that_gives_nan_at_zero_is_not_offered(tmp_path):
    """`g - g * excess / size` is right wherever the residual is not zero."""
    text = source(
        "torch.where(torch.abs(x) < 1.0, 0.5 * x * x, torch.abs(x) - 0.5) + 0.0 * w",
        "g * x, 0.0 * g",
    )
    result, _ = patched(Specimen("own", "", "engine", "Own", text, text, frozenset()), tmp_path)
    assert result.patch is None or "/" not in result.patch.after


def test_the_step_of_a_slice_is_a_shift(tmp_path):
    text = (
        "import numpy as np\n\n\ndef smooth(x, w):\n    return np.cumsum(x * w)\n\n\n"
        "def smooth_vjp(x, w, g):\n    after = np.cumsum(g[::-1])[::1]\n    return after * w, after * x\n"
    )
    specimen = Specimen("own", "", "numpy", "smooth", text, text, frozenset(), grad="smooth_vjp")
    result, _ = named(specimen, tmp_path)
    assert result.sentences[0].endswith("[wrong-shift]")
    assert result.patch is not None
    assert "np.cumsum(g[::-1])[::-1]" in result.patch.after
