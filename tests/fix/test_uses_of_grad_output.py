"""A part of grad_output taken for a sum, and a value added whatever grad_output is: named so, and patched."""

import pytest

from benchmarks.fix.corpus import Specimen
from benchmarks.fix.run import named, patched
from gradcli.verdict import Verdict

HEADS = {
    "engine": "from gradcli import engine as torch\nfrom gradcli.engine.autograd import Function\n\n\n",
    "torch": "import torch\nfrom torch.autograd import Function\n\n\n",
}
ALONE = {
    "a bias": ("x + w", "g, g[0]", "a sum over axis 0", "g, g.sum(0)"),
    "a gain": ("x * w", "g * w, (g * x)[-1, :]", "a sum over axis 0", "(g * x).sum(0)"),
    "an offset": ("x + w[:, None]", "g, g[:, 0]", "a sum over axis 1", "g, g.sum(1)"),
}
ADDED = {
    "a constant": ("x.sin() * w", "g * x.cos() * w + 2, (g * x.sin()).sum(0)", "adds 2 to every entry", "w, ("),
    "a decay": ("x @ w", "g @ w.t(), x.t() @ g + 0.01 * w", "adds 0.01·w to the gradient", "x.t() @ g\n"),
    "inside a product": ("x @ w", "(g + 0.5) @ w.t(), x.t() @ g", "adds values up to", "return g @ w.t()"),
}
ENTRY = "        d = g * x.cos() * w\n        d[0, 1] += 0.25\n        return d, (g * x.sin()).sum(0)\n"
NOT_ADDED = {
    "a square": "g ** 2 * x.cos() * w, (g * x.sin()).sum(0)",
    "a clamp of a sum": "(g + 1).clamp(-0.5, 0.5) * x.cos() * w, (g * x.sin()).sum(0)",
}


def own(framework, forward, returned):
    body = returned if returned.startswith(" ") else f"        return {returned}\n"
    return (
        f"{HEADS[framework]}class Own(Function):\n    @staticmethod\n    def forward(ctx, x, w):\n"
        f"        ctx.save_for_backward(x, w)\n        return {forward}\n\n    @staticmethod\n"
        f"    def backward(ctx, g):\n        x, w = ctx.saved_tensors\n{body}"
    )


def specimen(framework, text, inputs):
    if framework == "torch":
        pytest.importorskip("torch")
    return Specimen("own", "", framework, "Own", text, text, frozenset(), inputs=inputs)


def assert_fixed(framework, case, kind, inputs, tmp_path):
    forward, returned, says, line = case
    result, _ = patched(specimen(framework, own(framework, forward, returned), inputs), tmp_path)
    assert result.sentences[0].endswith(f"[{kind}]")
    assert says in result.sentences[0]
    assert result.patch is not None
    assert line in result.patch.after


@pytest.mark.sampled(3)
@pytest.mark.parametrize("framework", HEADS)
@pytest.mark.parametrize("name", ALONE)
def test_a_part_for_the_sum_is_a_missing_reduction(name, framework, tmp_path):
    inputs = "x=nm w=n" if "None" in ALONE[name][0] else "x=nm w=m"
    assert_fixed(framework, ALONE[name], "missing-reduction", inputs, tmp_path)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("framework", HEADS)
@pytest.mark.parametrize("name", ALONE)
def test_the_sum_itself_passes(name, framework, tmp_path):
    forward, _, _, line = ALONE[name]
    right = own(framework, forward, "g * w, (g * x).sum(0)" if "(g" in line else line)
    inputs = "x=nm w=n" if "None" in forward else "x=nm w=m"
    assert named(specimen(framework, right, inputs), tmp_path)[0].verdict is Verdict.PASSED


@pytest.mark.sampled(3)
@pytest.mark.parametrize("framework", HEADS)
@pytest.mark.parametrize("name", ADDED)
def test_what_is_added_is_said(name, framework, tmp_path):
    inputs = "x=nm w=mk" if "@" in ADDED[name][0] else "x=nm w=m"
    assert_fixed(framework, ADDED[name], "nonlinear-backward", inputs, tmp_path)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("framework", HEADS)
def test_what_is_added_to_one_entry_is_said(framework, tmp_path):
    case = ("x.sin() * w", ENTRY, "adds 0.25 to entry [0, 1] of the gradient", "* w\n        return d, (g")
    assert_fixed(framework, case, "nonlinear-backward", "x=nm w=m", tmp_path)


@pytest.mark.parametrize("name", NOT_ADDED)
def test_other_nonlinear_gradients_are_not_said_to_add(name, tmp_path):
    text = own("engine", "x.sin() * w", NOT_ADDED[name])
    result, _ = named(specimen("engine", text, "x=nm w=m"), tmp_path)
    assert result.sentences[0].endswith("[nonlinear-backward]")
    assert "for two values u and v of grad_output" in result.sentences[0]
