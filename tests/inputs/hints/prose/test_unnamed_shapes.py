"""Shapes that a line gives without the names of the arguments."""

import pytest

from gradcli.inputs.hints.prose.unnamed_shapes import unnamed_shapes

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
