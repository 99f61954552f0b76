"""Whole numbers up to a documented size, and sizes that are at least others."""

import pytest

import gradcli
from gradcli import engine as torch
from gradcli.engine.autograd import Function
from gradcli.inputs.hints.documented_order import documented_least
from gradcli.inputs.hints.prose.index_ranges import index_ranges
from gradcli.inputs.hints.source_hints import IndexRange
from gradcli.verdict import Verdict

SHAPES = {"x": ("T", "C"), "y": ("S",), "count": ()}


@pytest.mark.parametrize(
    ("text", "low", "owner", "more"),
    [
        ("x: (T, C), y: (S,) class labels in [1, C)", 1, "x", 0),
        ("y: (S,) in {0, ..., C - 1}", 0, "x", 0),
        ("y: (S,) class labels between 0 and C - 1", 0, "x", 0),
        ("y: (S,), 0 <= y < C", 0, "x", 0),
        ("y: (S,) indices in [0, count)", 0, "count", 0),
        ("y: (S,) indices in [0, C]", 0, "x", 0),
        ("y: (S,) indices in [0, T - 1)", 0, "x", -1),
    ],
)
def test_ranges_of_indices_are_read(text, low, owner, more):
    axis = None if owner == "count" else 0 if "T - 1" in text else 1
    found = index_ranges([*SHAPES], [text], SHAPES)
    assert found == {"y": IndexRange(low=low, owner=owner, axis=axis, more=more)}


@pytest.mark.parametrize(
    ("text", "least"),
    [
        ("T >= 2 * S + 1", (("T", "2 * S + 1"),)),
        ("T, C > 1.", (("T", "1 + 1"), ("C", "1 + 1"))),
        ("2*S <= T", (("T", "2*S"),)),
        ("T must be at least two", (("T", "2"),)),
        ("T >= S + count", (("T", "S + count"),)),
        ("T >= S", ()),
        ("if T > 2 it converges", ()),
        ("T >= 1000 for accuracy", ()),
        ("x > 1", ()),
    ],
)
def test_what_sizes_are_at_least_is_read(text, least):
    assert documented_least(SHAPES, "", text, {"count"}) == least


class LabelPath(Function):
    """The sum of the scores of labels, each on every second step, and of the squares of those of class 0 between.

    scores: (T, C), labels: (S,) class labels in [1, C), T >= 2 * S + 1.
    """

    factor = 2.0

    @classmethod
    def forward(cls, ctx, scores, labels):
        steps = 2 * torch.arange(len(labels)) + 1
        if len(scores) <= 2 * len(labels) or int(labels.min()) < 1:
            raise ValueError("too few steps")
        ctx.save_for_backward(scores, labels, steps)
        return scores[steps, labels].sum() + (scores[::2, 0] ** 2).sum()

    @classmethod
    def backward(cls, ctx, g):
        scores, labels, steps = ctx.saved_tensors
        found = torch.zeros_like(scores)
        found[steps, labels] = 1.0
        found[::2, 0] = cls.factor * scores[::2, 0]
        return g * found, None


class LabelPathOff(LabelPath):
    factor = 2.002


@pytest.mark.parametrize("target", [LabelPath, LabelPathOff])
def test_sizes_and_labels_are_in_the_documented_ranges(target):
    case = gradcli.check(target, order=1, shrink=False).cases[0]
    assert case.verdict is (Verdict.PASSED if target is LabelPath else Verdict.FAILED), (case.findings, case.error)
    scores, labels = case.inputs
    assert scores.shape[0] >= 2 * labels.shape[0] + 1
    assert dict(labels.parameters) == {"low": 1, "high": scores.shape[1]}
