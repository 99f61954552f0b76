"""Arguments that forward only adds are found in its source, and an optional one lacks its gradient if that is None."""

import ast
from typing import Any

import pytest

import gradcli
from gradcli.inputs.hints.added_terms import added_terms
from gradcli.results import CheckResult
from gradcli.verdict import Verdict


@pytest.mark.parametrize(
    ("body", "added"),
    [
        ("y = x if shift is None else x - shift", True),
        ("ctx.save_for_backward(x, shift); y = x * 2; y += shift[:, None]", True),
        ("ctx.shift = shift; y = torch.add(x, shift.view(1, -1))", True),
        ("y = x + 2 * shift", False),
        ("y = x[shift + 1] + table[shift]", False),
        ("y = x + shift.mean()", False),
        ("y = x * (shift > 0) + shift", False),
        ("ctx.shift = shift", False),
    ],
)
def test_a_term_is_added_and_nothing_else(body: str, added: bool) -> None:
    found = added_terms(ast.parse(f"def forward(ctx, x, shift=None):\n    {body}\n    return y"), ["shift"])
    assert found == (frozenset(["shift"]) if added else frozenset())


def test_without_source_nothing_is_known() -> None:
    assert added_terms(None, ["shift"]) == frozenset()


def dequantised(ns: Any, gradient: Any, documentation: str = "") -> Any:
    class Dequantised(ns.autograd.Function):
        __doc__ = documentation

        @staticmethod
        def forward(ctx: Any, x: Any, scale: Any, shift: Any = None) -> Any:
            ctx.save_for_backward(x, scale, shift)
            return (x if shift is None else x - shift) * scale

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            x, scale, shift = ctx.saved_tensors
            base = x if shift is None else x - shift
            return g * scale, (g * base).sum_to_size(scale.shape), gradient(g * scale, shift)

    return Dequantised


def case(target: Any) -> CheckResult:
    return gradcli.check(target, order=1, shrink=False).cases[0]


def of_its_shape(g: Any, shift: Any) -> Any:
    return None if shift is None else -g.sum_to_size(shift.shape)


def none(g: Any, shift: Any) -> Any:
    return None


@pytest.mark.sampled(2)
@pytest.mark.parametrize("wrong", [False, True])
def test_a_shift_without_a_gradient_is_no_integer(ns: Any, wrong: bool) -> None:
    result = case(dequantised(ns, none if wrong else of_its_shape))
    assert result.verdict is (Verdict.FAILED if wrong else Verdict.PASSED), result
    found = [(each.kind.value, each.input) for each in result.findings]
    assert found == ([("missing-gradient", "shift")] if wrong else [])


def test_a_shift_that_is_documented_as_an_integer_is_one(ns: Any) -> None:
    result = case(dequantised(ns, none, "shift: integer zero points, shape (4,)"))
    assert result.verdict is Verdict.PASSED, result


@pytest.mark.sampled(2)
@pytest.mark.parametrize("factor", [1.0, 1.01])
def test_statistics_beside_nothing_that_learns_are_left_out_with_a_note(ns: Any, factor: float) -> None:
    class Centred(ns.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, centre: Any = None) -> Any:
            ctx.save_for_backward(x, centre)
            return ns.exp(x if centre is None else x - centre)

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            x, centre = ctx.saved_tensors
            return factor * g * ns.exp(x if centre is None else x - centre), None

    result = case(Centred)
    assert result.verdict is (Verdict.PASSED if factor == 1 else Verdict.FAILED), result
    assert any("not checked with -i centre=" in note for note in result.notes)
