"""Edits of calls: the other triangle or diagonal, and a reduction over one more axis."""

import ast

import pytest

from gradcli.edits.expressions import swaps
from gradcli.edits.flow import only_indexes
from gradcli.edits.idiom import Idiom
from gradcli.edits.scope import Scope

EMPTY = Scope(atoms=(), values={})


def edits(text: str) -> set[str]:
    idiom = Idiom(namespace="torch", by_methods=True, from_last=True)
    node = ast.parse(text, mode="eval").body
    return {ast.unparse(new) for c in swaps(node, EMPTY, idiom) if isinstance(new := c.changes[0].new, ast.AST)}


@pytest.mark.parametrize(
    ("text", "has", "lacks"),
    [
        ("torch.tril(x)", "torch.tril(x, -1)", "torch.tril(x, 2)"),
        ("x.triu()", "x.triu(1)", "x.triu(0)"),
        ("x.triu(1)", "x.tril(1)", "x.triu(1, -1)"),
        ("torch.tril(x, 1)", "torch.triu(x, 1)", "torch.tril(x, 1, -1)"),
        ("x.mean(2, keepdim=True)", "x.mean((1, 2), keepdim=True)", "x.mean((2, 1), keepdim=True)"),
        ("x.sum(dim=-1)", "x.sum(dim=(-2, -1))", "x.sum(dim=(-1, 0))"),
        ("x.sum(0)", "x.sum((0, 1))", "x.sum((-1, 0))"),
    ],
)
def test_the_edits_of_a_call(text: str, has: str, lacks: str) -> None:
    assert has in edits(text)
    assert lacks not in edits(text)


@pytest.mark.parametrize(
    ("use", "is_index"),
    [
        ("out.scatter_add(1, cols, g)", True),
        ("torch.gather(g, -1, cols)", True),
        ("g[:, cols]", True),
        ("g[:, cols] * cols", False),
        ("out.scatter_add(1, i, cols)", False),
        ("torch.gather(cols, 1, i)", False),
        ("g * cols", False),
    ],
)
def test_an_index_is_a_name_that_is_read_as_one_alone(use: str, is_index: bool) -> None:
    definition = ast.parse(f"def backward(ctx, g):\n    cols = a + b\n    return {use}\n").body[0]
    (made,) = [n for n in ast.walk(definition) if isinstance(n, ast.BinOp) and ast.unparse(n) == "a + b"]
    assert only_indexes(made, definition) is is_index
