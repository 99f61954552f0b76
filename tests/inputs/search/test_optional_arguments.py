"""Arguments that default to None: given where forward takes them, though backward be wrong about them."""

from typing import Any

import pytest

import gradcli
from gradcli.engine.autograd import Function


def shifted(bias_gradient: Any) -> type[Function]:
    class Shifted(Function):
        @staticmethod
        def forward(ctx, x, bias=None):
            ctx.save_for_backward(x)
            ctx.biased = bias is not None
            return x.exp() if bias is None else x.exp() + bias

        @staticmethod
        def backward(ctx, g):
            return g * ctx.saved_tensors[0].exp(), bias_gradient(g) if ctx.biased else None

    return Shifted


def affine(**names: Any) -> type[Function]:
    """x·scale + shift with both or none of them; `names` are those of the two arguments, and a factor on the second."""

    class Affine(Function):
        @staticmethod
        def forward(ctx, x, weight=None, bias=None):
            ctx.save_for_backward(x, weight)
            return x.exp() if weight is None else x.exp() * weight + bias  # fails where one alone is given

        @staticmethod
        def backward(ctx, g):
            x, weight = ctx.saved_tensors
            if weight is None:
                return g * x.exp(), None, None
            return g * x.exp() * weight, (g * x.exp()).sum(0), g.sum(0) * names.get("factor", 1)

    return Affine


def findings(function: type[Function]) -> list[tuple[str, str | None]]:
    report = gradcli.check(function, shrink=False)
    assert report.verdict in (gradcli.Verdict.PASSED, gradcli.Verdict.FAILED)
    return [(finding.kind.value, finding.input) for case in report.cases for finding in case.findings]


@pytest.mark.parametrize(
    ("gradient", "expected"),
    [
        (lambda g: g.sum(0), []),
        (lambda g: None, [("missing-gradient", "bias")]),
        (lambda g: g.sum(1), [("wrong-shape", "bias")]),
        (lambda g: 2 * g.sum(0), [("wrong-factor", "bias")]),
    ],
)
def test_a_bias_is_given_whatever_backward_makes_of_it(gradient: Any, expected: list[tuple[str, str]]) -> None:
    assert findings(shifted(gradient)) == expected


def test_arguments_that_forward_takes_only_together_are_given_together() -> None:
    case = gradcli.check(affine(), shrink=False).cases[0]
    assert [spec.name for spec in case.inputs] == ["x", "weight", "bias"]
    assert findings(affine()) == []
    assert findings(affine(factor=2)) == [("wrong-factor", "bias")]


def test_what_may_be_no_differentiable_tensor_is_left_out_with_a_note() -> None:
    class Weighted(Function):
        @staticmethod
        def forward(ctx, x, weight=None):
            ctx.weight = weight
            return x * 2 if weight is None else x * weight

        @staticmethod
        def backward(ctx, g):
            return (g * 2 if ctx.weight is None else g * ctx.weight), None

    case = gradcli.check(Weighted, shrink=False).cases[0]
    assert case.verdict is gradcli.Verdict.PASSED
    assert [spec.name for spec in case.inputs] == ["x"]
    (note,) = [note for note in case.notes if note.startswith("not checked")]
    assert note == "not checked with -i weight=3x4: forward accepts it, but backward returns None for it"


def test_each_of_few_optional_arguments_is_also_left_out_alone() -> None:
    class Both(Function):
        @staticmethod
        def forward(ctx, x, weight=None, bias=None):
            ctx.save_for_backward(x, weight, bias)
            scaled = x * 1.0 if weight is None else x * weight
            return scaled if bias is None else scaled + bias

        @staticmethod
        def backward(ctx, g):
            x, weight, bias = ctx.saved_tensors
            wrong = 2 if bias is None else 1
            by_weight = None if weight is None else wrong * g * x
            return (g if weight is None else g * weight), by_weight, None if bias is None else g.sum(0)

    assert findings(Both) == [("wrong-factor", "weight")]
