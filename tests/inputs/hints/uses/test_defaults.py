"""Numbers that a helper has defaults for: other numbers may be none that the code is meant for."""

from typing import Any

import pytest

import gradcli
from gradcli.engine.autograd import Function
from gradcli.inputs.hints.uses.defaults import defaults_of_helpers
from gradcli.sources import tree_of
from gradcli.verdict import Verdict


def guarded(x: Any, floor: float = 1e-14) -> Any:
    return x / (x * x + floor)


def powered(x: Any, exponent: float = 1.0, negate: bool = True) -> Any:
    return -(x**exponent) if negate else x**exponent


def lengths(factor: float) -> type[Function]:
    """The norms of rows, divided by with a small guard."""

    class Lengths(Function):
        @staticmethod
        def forward(ctx, rows, smallest):
            norms = (rows * rows).sum(-1).sqrt()
            ctx.save_for_backward(rows, norms)
            ctx.smallest = smallest
            return norms

        @staticmethod
        def backward(ctx, g):
            rows, norms = ctx.saved_tensors
            return factor * (g * guarded(norms, ctx.smallest)).unsqueeze(-1) * rows, None

    return Lengths


@pytest.mark.parametrize("factor", [1.0, 1.01])
def test_a_number_is_the_default_of_the_helper_that_it_is_passed_to(factor: float, unexplained: None) -> None:
    case = gradcli.check(lengths(factor), shrink=False, order=1).cases[0]
    assert case.verdict is (Verdict.PASSED if factor == 1.0 else Verdict.FAILED)
    assert [spec.value for spec in case.inputs if spec.kind == "value"] == [1e-14]


def test_defaults_that_say_how_large_a_number_is() -> None:
    tree = tree_of("def forward(ctx, x, a, b, c):\n    return guarded(x, floor=a) + powered(x, b, ctx.c) + abs(c)\n")
    known = {"guarded": guarded, "powered": powered}
    assert defaults_of_helpers((tree,), ("x", "a", "b", "c"), known) == {"a": (1e-14,)}
