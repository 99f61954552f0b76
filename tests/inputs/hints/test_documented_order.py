"""Documented inequalities of sizes: the sizes tried first satisfy them, and differ."""

import pytest

import gradcli
from gradcli.inputs.hints.documented_order import documented_order
from gradcli.verdict import Verdict

PROGRAM = """
import {framework} as torch
from {framework}.autograd import Function


class LeastSquares(Function):
    '''argmin |A x - b|^2, A: (m, n) {words}, b: (m,)'''

    @staticmethod
    def forward(ctx, A, b):
        x = torch.linalg.solve(A.t() @ A if A.shape[0] >= A.shape[1] else A, A.t() @ b)
        ctx.save_for_backward(A, b, x)
        return x

    @staticmethod
    def backward(ctx, g):
        A, b, x = ctx.saved_tensors
        t = torch.linalg.solve(A.t() @ A, g)
        residual = b - A @ x if {right} else 0 * b
        gb = A @ t
        return torch.outer(residual, t) - torch.outer(gb, x), gb
"""


@pytest.mark.parametrize("framework", ["gradcli.engine", "torch"])
@pytest.mark.parametrize("words", ["with m >= n", "where n < m", "a tall matrix"])
@pytest.mark.parametrize(("right", "verdict"), [(True, Verdict.PASSED), (False, Verdict.FAILED)])
def test_a_tall_matrix_is_tried(framework, words, right, verdict, tmp_path):
    if framework == "torch":
        pytest.importorskip("torch")
    file = tmp_path / "written.py"
    file.write_text(PROGRAM.format(framework=framework, words=words, right=right))
    case = gradcli.check(f"{file}:LeastSquares", order=1, shrink=False).cases[0]
    assert case.verdict is verdict, case.findings
    assert {spec.name: spec.shape for spec in case.inputs} == {"A": (4, 3), "b": (4,)}


SHAPES = {"A": ("m", "n"), "b": ("m",)}


@pytest.mark.parametrize(
    ("text", "order"),
    [
        ("A: (m, n) with m >= n", (("m", "n"),)),
        ("A: (m, n), m ≥ n", (("m", "n"),)),
        ("n <= m", (("m", "n"),)),
        ("m < n", (("n", "m"),)),
        ("a tall and thin matrix", (("m", "n"),)),
        ("a wide matrix", (("n", "m"),)),
        ("m > 1", ()),
        ("k >= n", ()),
        ("m >= n or m <= n", ()),
        ("m >= n(x)", ()),
        ("m -> n", ()),
    ],
)
def test_inequalities_of_named_sizes_are_read(text, order):
    assert documented_order(SHAPES, "", text) == order
