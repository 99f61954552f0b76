"""Documented inequalities of sizes: the sizes tried first satisfy them, and differ."""

import ast

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


@pytest.mark.sampled(6)
@pytest.mark.parametrize("framework", ["gradcli.engine", "torch"])
@pytest.mark.parametrize("words", ["with m >= n", "where n < m", "a tall matrix"])
@pytest.mark.parametrize(("right", "verdict"), [(True, Verdict.PASSED), (False, Verdict.FAILED)])
@pytest.mark.usefixtures("unexplained")
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
        ("A has at least as many rows as columns", (("m", "n"),)),
        ("A with more columns than rows", (("n", "m"),)),
        ("Raises ValueError if m < n.", ()),
        ("If m >= n, the inverse from the left. A: (m, n)", ()),
        ("defined only if m >= n", (("m", "n"),)),
        ("economy or full SVD of A: (m, n) with m >= n", (("m", "n"),)),
    ],
)
def test_inequalities_of_named_sizes_are_read(text, order):
    assert documented_order(SHAPES, "", text) == order


MEAN = """
import {framework} as torch
from {framework}.autograd import Function


class MeanSquare(Function):
    '''The mean square of the singular values. A: (m, n){words}'''

    @staticmethod
    def forward(ctx, A):
        ctx.save_for_backward(A)
        return (A * A).sum() / min(A.shape)

    @staticmethod
    def backward(ctx, g):
        (A,) = ctx.saved_tensors
        return {factor} * g * A / A.shape[{axis}]
"""


@pytest.fixture(params=["gradcli.engine", "torch"])
def mean_square(request, tmp_path):
    """A function that checks a backward that is right for tall matrices, or for wide ones."""
    if request.param == "torch":
        pytest.importorskip("torch")

    def case(words, factor=2, axis=1):
        file = tmp_path / "written.py"
        file.write_text(MEAN.format(framework=request.param, words=words, factor=factor, axis=axis))
        (found,) = gradcli.check(f"{file}:MeanSquare", order=1).cases
        return found

    return case


@pytest.mark.sampled(4)
@pytest.mark.parametrize(("words", "axis"), [(", m >= n", 1), (", a tall matrix", 1), (", m < n", 0), (", n >= m", 0)])
def test_other_sizes_are_in_the_documented_order(mean_square, words, axis):
    case = mean_square(words, axis=axis)
    assert case.verdict is Verdict.PASSED, case.findings


@pytest.mark.sampled(3)
@pytest.mark.parametrize("words", ["", ", m < n", ". If m >= n it has full rank."])
def test_a_gradient_that_is_wrong_where_documentation_allows_fails(mean_square, words):
    assert mean_square(words).verdict is Verdict.FAILED


@pytest.mark.sampled(3)
@pytest.mark.parametrize("factor", [2.02, -2, 1])
def test_a_wrong_gradient_of_a_tall_matrix_fails(mean_square, factor):
    assert mean_square(", m >= n", factor).verdict is Verdict.FAILED


@pytest.mark.sampled(1)
def test_the_smallest_failing_input_is_in_the_documented_order(mean_square):
    case = mean_square(", m >= n", "(2.02 if A.shape[1] > 1 else 2)")
    assert case.verdict is Verdict.FAILED
    (matrix,) = [ast.literal_eval(line.partition(" = ")[2]) for line in case.smallest]
    assert len(matrix) == len(matrix[0]) == 2
