"""The factor that a product lacks, merged with a number that the product has."""

import ast

import pytest

from gradcli.edits.constants import merged
from gradcli.edits.idiom import build
from gradcli.edits.render import Change, Tree
from gradcli.edits.source import parsed

CASES = {
    "the number stands for a name": ("g * 2 * x * 4", "g * 2 * x * 4", "OLD * (1 / 4 * n)", "g * 2 * x * n"),
    "the name is divided by it": ("g * 2 * x * 4", "g * 2 * x * 4", "OLD * n / 4", "g * 2 * x * n"),
    "another number": ("g * 2 * x", "g * 2 * x", "OLD * (3 / 2)", "g * 3 * x"),
    "a sign as well": ("g * 2 * x", "x", "-(OLD * (3 / 2))", "g * -3 * x"),
    "a part of the product replaced": ("g * 3 * x ** 2", "x ** 2", "2 / 3 * x", "g * 2 * x"),
    "nothing remains of it": ("g * 0.5 * x", "x", "OLD * 2", "g * x"),
    "nothing remains of a divisor": ("g * x / 2", "x", "OLD * 2", "g * x"),
    "another divisor": ("g * x / 4", "g * x / 4", "OLD * 4 / 3", "g * x / 3"),
    "a decimal number": ("1.5 * g * x", "x", "OLD * (1 / 3)", "0.5 * g * x"),
    "a decimal number and a whole one": ("0.5 * g * x", "x", "OLD * 3", "0.5 * g * (x * 3)"),
    "a name in its place": ("x * g / n", "x * g / n", "OLD * n / 4", "x * g / n * n / 4"),
    "two whole numbers": ("g * 2 * x", "x", "OLD * 3", "g * 2 * (x * 3)"),
    "a number of a sum": ("g * (2 + x)", "x", "OLD * (1 / 2)", "g * (2 + x * (1 / 2))"),
    "a number below a fraction bar": ("g / (2 * x)", "x", "OLD * (1 / 2)", "g / x"),
    "an exponent": ("g * x ** 2", "g * x ** 2", "OLD * (1 / 2)", "g * x ** 2 * (1 / 2)"),
    "no number among the factors": ("g * x", "x", "OLD * (2 / 3)", "g * (x * (2 / 3))"),
    "a whole number that is not a divisor": ("g * 3 * x", "x", "OLD * (1 / 2)", "g * 3 * (x * (1 / 2))"),
}


@pytest.mark.parametrize("case", CASES)
def test_the_edit_with_fewer_numbers(case):
    text, old, pattern, expected = CASES[case]
    file = parsed("own.py", f"y = {text}\n")
    tree = Tree(file)
    (place, *_) = [n for n in ast.walk(file.tree) if isinstance(n, ast.expr) and ast.unparse(n) == old]
    changes = merged(Change(place, build(pattern, OLD=place)), tree)
    made = tree.text(changes)
    assert made is not None
    assert ast.unparse(ast.parse(made)) == ast.unparse(ast.parse(f"y = {expected}"))
    names = {"g": 1.7, "x": -0.6, "n": 5.0}
    before = eval(text.replace(old, f"({pattern.replace('OLD', f'({old})')})", 1), dict(names))
    assert eval(made.removeprefix("y = "), dict(names)) == pytest.approx(before)
