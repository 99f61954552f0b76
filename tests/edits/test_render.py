"""New syntax becomes text that means it, with parentheses only where they are needed."""

import ast

import pytest

from gradcli.edits.idiom import build
from gradcli.edits.render import Change, Tree
from gradcli.edits.source import SourceFile

TEXT = "def f(a, b, c):\n    x = a + b  # é\n    return (a  # first\n            * c) @ x, -b\n"


def tree() -> Tree:
    return Tree(SourceFile(path="f.py", text=TEXT, tree=ast.parse(TEXT)))


def found(in_tree: Tree, text: str) -> ast.expr:
    expressions = (n for n in ast.walk(in_tree.file.tree) if isinstance(n, ast.expr))
    return next(
        n for n in expressions if ast.unparse(n) == text and isinstance(getattr(n, "ctx", ast.Load()), ast.Load)
    )


@pytest.mark.parametrize(
    ("old", "pattern", "line"),
    [
        ("a + b", "E * 2", "x = (a + b) * 2  # é"),
        ("a + b", "E - 1", "x = a + b - 1  # é"),
        ("a + b", "1 - E", "x = 1 - (a + b)  # é"),
        ("-b", "E.sum(0)", "* c) @ x, (-b).sum(0)"),
        ("x", "E + 1", "* c) @ (x + 1), -b"),
        ("c", "E.t()", "* c.t()) @ x, -b"),
    ],
)
def test_parentheses_stand_where_they_are_needed(old, pattern, line):
    own = tree()
    node = found(own, old)
    text = own.text([Change(node, build(pattern, E=node))])
    assert text is not None
    assert line in [each.strip() for each in text.splitlines()]
    assert "# first" in text


def test_the_tree_is_as_before_after_a_trial():
    own = tree()
    before = ast.dump(own.file.tree)
    node = found(own, "a + b")
    with own.having([Change(node, ast.Constant(value=1))]):
        assert ast.dump(own.file.tree) != before
    assert ast.dump(own.file.tree) == before


def test_a_statement_may_become_two():
    own = tree()
    statement = own.file.tree.body[0].body[0]
    copied = ast.parse("a = a.clone()").body[0]
    text = own.text([Change(statement, (copied, statement))])
    assert text is not None
    assert text.splitlines()[1:3] == ["    a = a.clone()", "    x = a + b  # é"]


def test_a_change_inside_another_one_is_refused():
    own = tree()
    whole, part = found(own, "a + b"), found(own, "b")
    assert own.text([Change(whole, build("E * 2", E=whole)), Change(part, ast.Name(id="c", ctx=ast.Load()))]) is None


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("x = 1\ny = 2\nz = 3\n", "x = 1\nz = 3\n"),
        ("x = 1\ny = 2  # why\nz = 3\n", "x = 1\n  # why\nz = 3\n"),
        ("x = 1; y = 2\nz = 3\n", "x = 1; \nz = 3\n"),
    ],
)
def test_a_statement_that_is_left_out_takes_its_line_along(text, left):
    own = Tree(SourceFile(path="f.py", text=text, tree=ast.parse(text)))
    second = own.file.tree.body[1]
    assert own.text([Change(second, ())]) == left
