"""Edits of matrix products: the transpose of one, and one with the sum of a matrix and its transpose."""

import ast
from collections.abc import Iterator
from typing import Any

from gradcli.edits.expressions import Candidate
from gradcli.edits.idiom import Idiom, build
from gradcli.edits.render import Change


def turned(node: Any, idiom: Idiom) -> Iterator[Candidate]:
    """A matrix product as its transpose: `a.t().mm(b)` as `b.t().mm(a)`, and `a @ b` as `(a @ b).T`."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult):
        left, right = node.left, node.right
    elif _calls_method(node, "mm", "matmul") and len(node.args) == 1:
        left, right = node.func.value, node.args[0]
    else:
        return
    sign = left.op if isinstance(left, ast.UnaryOp) else None
    left = left.operand if isinstance(left, ast.UnaryOp) else left  # `-a @ b.T` becomes `-b @ a.T`
    first, second = untransposed(right), untransposed(left)
    if first is None and second is None:
        yield Candidate(1.2, (Change(node, idiom.transposes(node, 2)[0]),))
        if isinstance(node, ast.BinOp):
            for one, other in ((idiom.transposes(node.left, 2)[0], right), (node.left, idiom.transposes(right, 2)[0])):
                yield Candidate(1.3, (Change(node, ast.BinOp(left=one, op=ast.MatMult(), right=other)),))
        return
    first, second = first or idiom.transposes(right, 2)[0], second or idiom.transposes(left, 2)[0]
    first = first if sign is None else ast.UnaryOp(op=sign, operand=first)
    if isinstance(node, ast.BinOp):
        yield Candidate(1.2, (Change(node, ast.BinOp(left=first, op=ast.MatMult(), right=second)),))
    else:
        func = ast.Attribute(value=first, attr=node.func.attr, ctx=ast.Load())
        yield Candidate(1.2, (Change(node, ast.Call(func=func, args=[second], keywords=[])),))


def _calls_method(node: Any, *names: str) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in names


def untransposed(node: Any) -> ast.expr | None:
    """What is transposed in an expression that is a transposed matrix; None for any other."""
    if isinstance(node, ast.Attribute) and node.attr in ("T", "mT"):
        return node.value
    if _calls_method(node, "t", "transpose", "swapaxes"):
        inner: ast.expr = node.func.value
        return inner
    return None


def symmetrised(node: ast.expr, idiom: Idiom, rank: int) -> Iterator[Candidate]:
    """A product with a matrix, or with twice a matrix, as one with the sum of it and its transpose.

    A matrix by name as the mean of both: the 2 of a quadratic form may stand elsewhere, as in `2 * g * (A @ x)`.
    """
    if isinstance(node, ast.Name) and rank > 1:
        yield Candidate(3.5, (Change(node, build("(A + T) / 2", A=node, T=idiom.transposes(node, rank)[0])),))
    if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.MatMult):
        return
    left, right = _undoubled(node.left), node.right
    rank = max(rank, 2)  # the operands' where one of them is a vector
    for turned_left in _turned_alone(left, idiom, rank):
        yield Candidate(3, (Change(node, build("(A + T) @ B", A=left, T=turned_left, B=right)),))
    for turned_right in _turned_alone(right, idiom, rank):
        yield Candidate(3, (Change(node, build("A @ (B + T)", A=left, T=turned_right, B=right)),))


def _turned_alone(node: ast.expr, idiom: Idiom, rank: int) -> list[ast.expr]:
    """The transpose of a matrix, without a second one where it is one already."""
    inner = node.value if isinstance(node, ast.Attribute) and node.attr in ("T", "mT") else None
    return idiom.transposes(node, rank)[:1] if inner is None else [inner]


def _undoubled(node: ast.expr) -> ast.expr:
    """The other operand of a product with the number 2; any other expression as it is."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        for one, other in ((node.left, node.right), (node.right, node.left)):
            if isinstance(one, ast.Constant) and one.value == 2:
                return other
    return node
