"""Shapes that a line gives without the names of the arguments."""

import pytest

import gradcli
from gradcli import engine
from gradcli.engine.autograd import Function
from gradcli.inputs.hints.prose.unnamed_shapes import says_scalars, unnamed_shapes
from gradcli.verdict import Verdict

SHAPES = {"x": ("B", "N", 3), "w": ("B", "M", 3)}


@pytest.mark.parametrize(
    ("body", "shapes"),
    [
        ("# (B, N, 3), (B, M, 3)\ny = x - w", SHAPES),
        ("# [B, N, 3] and [B, M, 3]\ny = x - w", SHAPES),
        ("# the distances: (B, N, 3), (B, M, 3) -> (B, N, M)\ny = x - w", SHAPES),
        ('"""Distances.\n\n(B, N, 3), (B, M, 3) -> (B, N, M)\n"""\ny = x - w', SHAPES),
        ("y = x - w\n# (B, N, 3), (B, M, 3)\nz = y", {}),
        ("# (B, N, 3)\ny = x - w", {}),
        ("# (B, N, 3), (B, M, 3), (B,)\ny = x - w", {}),
        ("# x as (B, N, 3), (B, M, 3) -> (B, N, M)\ny = x - w", {}),
        ("# the centres (B, N, 3), (B, M, 3)\ny = x - w", {}),
        ("# (mean, spread), (mean, skew) -> sample\ny = x - w", {}),
        ("y = x - w", {}),
    ],
)
def test_shapes_in_the_order_of_arguments(body, shapes):
    source = "def forward(ctx, x, w):\n    " + body.replace("\n", "\n    ")
    assert unnamed_shapes(["x", "w"], source) == shapes


def test_a_single_shape_needs_an_arrow():
    assert unnamed_shapes(["x"], "", "(N, D) -> (N,)") == {"x": ("N", "D")}
    assert unnamed_shapes(["x"], "", "(N, D)") == {}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("It accepts a scalar value as an input; map it over vectors.", True),
        ("Takes only scalars as inputs.", True),
        ("The rule supports scalar\n    arguments only.", True),
        ("Both arguments must be scalars.", True),
        ("scalar inputs only", True),
        ("Takes a scalar x and a matrix.", False),
        ("It accepts scalar inputs and vectors.", False),
        ("Returns a scalar, which takes the gradient.", False),
        ("All inputs are scalar-valued fields.", False),
    ],
)
def test_a_text_says_that_all_arguments_are_single_numbers(text, expected):
    assert says_scalars(text) is expected


@pytest.mark.parametrize("factor", [1.0, 1.01])
def test_single_numbers_where_a_sum_over_a_table_would_mix_entries(factor, unexplained):
    table = engine.linspace(0.1, 0.9, 5, dtype=engine.float64)

    class Series(Function):
        """A series with five terms.

        Returns:
            the sum

        Examples:
            Series.apply(x, y) accepts a scalar value as an input. Use vmap for vectors.
        """

        @staticmethod
        def forward(ctx, x, y):
            ctx.save_for_backward(x, y)
            return y * engine.exp(x * table).sum()

        @staticmethod
        def backward(ctx, g):
            x, y = ctx.saved_tensors
            return factor * g * y * (table * engine.exp(x * table)).sum(), g * engine.exp(x * table).sum()

    case = gradcli.check(Series, shrink=False, order=1).cases[0]
    assert case.verdict is (Verdict.PASSED if factor == 1.0 else Verdict.FAILED)
    assert [spec.shape for spec in case.inputs] == [(), ()]
