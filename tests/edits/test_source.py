"""When two pieces of syntax say the same."""

import ast

import pytest

from gradcli.edits.source import TextEdit, are_alike, edited, indent_of, parsed


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


@pytest.mark.parametrize("indent", ["\t", "    ", "\t    "])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_lines_are_put_in_with_the_indent_and_the_line_ends_of_the_file(indent: str, end: str) -> None:
    text = f"def f(x):{end}{indent}y = x{end}{indent}return y{end}"
    file = parsed("own.py", text)
    (function,) = file.tree.body
    first = function.body[0]  # type: ignore[attr-defined]  # a function, as just written
    assert indent_of(file, first) == indent
    made = edited(
        file, [TextEdit(start=text.index("y"), stop=text.index("y"), text=f"z = 1\n{indent_of(file, first)}")]
    )
    assert made == text.replace("y = x", f"z = 1{end}{indent}y = x")
    ast.parse(made)
