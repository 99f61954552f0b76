"""When two pieces of syntax say the same."""

import ast

import pytest

from gradcli.edits.source import are_alike


@pytest.mark.parametrize(
    "text", ["y = f(x)[1:, ...] + 2", "def f(x, *, k=1):\n    return x if k else None", "z = -0.0"]
)
def test_syntax_says_the_same_on_another_line(text: str) -> None:
    assert are_alike(ast.parse(text), ast.parse(f"\n\n{text}  # said again"))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("x + 1", "x + 1.0"),
        ("x + 1", "x + True"),
        ("x + 0.0", "x + -0.0"),
        ("x - y", "y - x"),
        ("x[0]", "x[0, 1]"),
        ("f(x)", "f(x=x)"),
        ("(x + y) * z", "x + y * z"),
        ("x", "x\ny"),
        ("x = y", "x = z"),
    ],
)
def test_what_differs_in_a_part_is_not_alike(one: str, other: str) -> None:
    assert not are_alike(ast.parse(one), ast.parse(other))
