"""Shapes whose sizes have whole words as names, and the checks with inputs of these shapes."""

import pytest

import gradcli
from gradcli.engine.autograd import Function
from gradcli.inputs.hints.documented_shapes import documented_shapes
from gradcli.verdict import Verdict


@pytest.mark.parametrize(
    ("text", "source", "shapes"),
    [
        ("x: (seqlen, half), w: (half,)", "", {"x": ("seqlen", "half"), "w": ("half",)}),
        ("x: (head_dim, half)", "", {"x": ("head_dim", "half")}),
        ("x: (rank, word), w: (word, other)", "", {"x": ("rank", "word"), "w": ("word", "other")}),
        ("x: (rank, word), w: (word // 2)", "", {"x": ("rank", "word"), "w": ("word // 2",)}),
        ("x: (rank, word), w: (word)", "", {"x": ("rank", "word"), "w": ("word",)}),
        ("x (rank, word)", "def f(x, w):\n    rank, word = x.shape\n    return x", {"x": ("rank", "word")}),
        ("x (rank, word)", "def f(x, w):\n    rank, word = x\n    return x", {}),
        ("x: (loc, spread), w: (loc, spread)", "", {}),
        ("x: (float, optional), w: (bool, optional)", "", {}),
        ("the pair x: (mean, spread) of the (mean, skewness) of w", "", {}),
    ],
)
def test_words_that_are_sizes(text, source, shapes):
    assert documented_shapes(["x", "w"], source, text) == shapes


class Faded(Function):
    factor = 1.0

    @classmethod
    def forward(cls, ctx, signal, gain):
        ctx.save_for_backward(signal, gain)
        return signal * gain.unsqueeze(1).exp()

    @classmethod
    def backward(cls, ctx, g):
        signal, gain = ctx.saved_tensors
        scale = gain.unsqueeze(1).exp()
        return g * scale, cls.factor * (g * signal * scale).sum(1)


@pytest.mark.parametrize(
    "text",
    [
        "signal: (frames, voices, bands)\ngain: (frames, bands), for all voices",
        "signal F V B, gain F B (for all voices)",
        "(F, V, B), (F, B) -> (F, V, B)",
    ],
)
def test_inputs_have_the_shapes(text):
    right, wrong = (type("Faded", (Faded,), {"factor": factor, "__doc__": text}) for factor in (1.0, 1.001))
    case = gradcli.check(right, shrink=False, order=1).cases[0]
    assert case.verdict is Verdict.PASSED
    assert [spec.shape for spec in case.inputs] == [(3, 4, 5), (3, 5)]
    failed = gradcli.check(wrong, shrink=False, order=1).cases[0]
    assert {finding.input for finding in failed.findings} == {"gain"}
