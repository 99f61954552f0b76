"""Vectors whose entries forward names one by one, and arguments whose rows it names."""

import ast

import pytest

from gradcli.inputs.hints.entries_read import entries_read, without_components


@pytest.mark.parametrize(
    ("body", "shapes"),
    [
        ("a, b = x\n    return a * b", {"x": (2,)}),
        ("return x[0] * x[1] + x[2]", {"x": (3,)}),
        ("a, b = x\n    return a.sin() * b", {"x": (2,)}),
        ("a, b = x[0], x[1]\n    return h[a] * h[b]", {}),
        ("a, b = x\n    return h[a] * h[b]", {}),
        ("return h[x[0]] * h[x[1]]", {}),
        ("return h.index_add(0, x[0], h).index_add(0, x[1], h)", {}),
        ("a, b = x\n    return a.sum() + b.sum()", {}),
        ("return x[0] * x[1] + x.sum()", {}),
        ("return h * x[2].cos() + x[:2]", {"x": (3,)}),
        ("return h * x[0] + x[1:3].sum()", {"x": (3,)}),
        ("return h * x[0] + x[2:4]", {}),
        ("ctx.save_for_backward(x)\n    return h * x[0:2] + x[2:4]", {}),
        ("return h * x[0] + x[1:]", {}),
        ("return h * x[:, 0] + x[0:2]", {}),
        ("out = []\n    out += [h * x[0], h * x[1]]\n    return out", {"x": (2,)}),
        ("() = out = []\n    return h * x[0] + x[1]", {"x": (2,)}),
        ("a, *rest = x[0], x[1]\n    return h * a", {"x": (2,)}),
        ("a = b = x[0]\n    return h[b] * h[x[1]]", {}),
        ("(a, b), c = (x[0], x[1]), x[2]\n    return h * a", {"x": (3,)}),
        ("(a, b), c = x, h\n    return h * c", {}),
    ],
)
def test_entries_fix_a_length_unless_they_are_indices_or_arrays(body, shapes):
    tree = ast.parse(f"def forward(ctx, h, x):\n    {body}")
    assert entries_read(tree, ["h", "x"]) == shapes


def test_names_of_entries_are_no_axes() -> None:
    shapes = {"pose": ("x", "y", "angle"), "points": ("N", 2), "state": ("x", "v")}
    read = {"pose": (3,), "state": (2,)}
    assert without_components(shapes, read) == {"points": ("N", 2), "state": ("x", "v")}
