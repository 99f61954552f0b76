"""The factor that a product lacks, merged with a number that the product has."""

import ast

import pytest

from gradcli.edits.constants import merged, undoubled
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
    "a name in its place": ("x * g / n", "x * g / n", "OLD * n / 4", "x * g / 4"),
    "a name that is divided by": ("x * g / n", "x * g / n", "OLD * n", "x * g"),
    "a count that is divided by": ("x * g / x.numel()", "x * g / x.numel()", "OLD * x.numel() / 4", "x * g / 4"),
    "another name that is divided by": ("x * g / n", "x * g / n", "OLD * x / 4", "x * g / n * x / 4"),
    "two whole numbers": ("g * 2 * x", "x", "OLD * 3", "g * 2 * (x * 3)"),
    "a number of a sum": ("g * (2 + x)", "x", "OLD * (1 / 2)", "g * (2 + x * (1 / 2))"),
    "a number below a fraction bar": ("g / (2 * x)", "x", "OLD * (1 / 2)", "g / x"),
    "an exponent": ("g * x ** 2", "g * x ** 2", "OLD * (1 / 2)", "g * x ** 2 * (1 / 2)"),
    "no number among the factors": ("g * x", "x", "OLD * (2 / 3)", "g * (x * (2 / 3))"),
    "a whole number that is not a divisor": ("g * 3 * x", "x", "OLD * (1 / 2)", "g * 3 * (x * (1 / 2))"),
}


DOUBLED = {
    "half of a sum": ("g * (a + b) / 2", "a", "b", "g * b"),
    "half of a sum before": ("0.5 * (a + b) * g", "b", "a", "a * g"),
    "a quarter of a sum": ("g * (a + b) / 4", "a", "b", "g * (2 * b) / 4"),
    "a sum": ("g + a", "a", "g", "2 * g"),
    "a divisor": ("g / (a + b)", "a", "b", "g / (2 * b)"),
    "another sum": ("g * (a + b) / 2", "a", "g", "g * (g + b) / 2"),
    "a call": ("(f(a) + f(b)) / 2", "f(a)", "f(b)", "(f(b) + f(b)) / 2"),
    "a difference": ("(a - b) / 2", "a", "b", "(b - b) / 2"),
}


@pytest.mark.parametrize("case", DOUBLED)
def test_no_sum_of_a_thing_with_itself(case):
    text, old, new, expected = DOUBLED[case]
    file = parsed("own.py", f"y = {text}\n")
    tree = Tree(file)
    (place, *_) = [n for n in ast.walk(file.tree) if isinstance(n, ast.expr) and ast.unparse(n) == old]
    made = tree.text(undoubled((Change(place, build(new)),), tree))
    assert made is not None
    assert ast.unparse(ast.parse(made)) == ast.unparse(ast.parse(f"y = {expected}"))


class Number(float):
    """A number with as many entries."""

    def numel(self):
        return 7


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
    names = {"g": 1.7, "x": Number(-0.6), "n": 5.0}
    before = eval(text.replace(old, f"({pattern.replace('OLD', f'({old})')})", 1), dict(names))
    assert eval(made.removeprefix("y = "), dict(names)) == pytest.approx(before)
