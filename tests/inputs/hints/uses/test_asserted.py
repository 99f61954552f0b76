"""Shapes that forward or a helper demands by an assertion are those of the inputs."""

import pytest

import gradcli
from gradcli.inputs.hints.uses.asserted import asserted_shapes
from gradcli.verdict import Verdict

SOURCE = """
def forward(ctx, A, b, c):
    B, M, _ = A.shape
    assert b.shape == (B, M, 1) and len(c) > 2
    if c.size() != (M - 1, 2):
        raise ValueError("c")
    x = b + 1
    if x.sum() > 0:
        assert A.shape == (3, 3)
"""
HELPER = """
def solved(A, b, n):
    assert tuple(b.shape) == (n, K)
    b = b * 2
"""


def test_whole_shapes_that_every_call_demands_are_read():
    demanded, unpacked = asserted_shapes((SOURCE, HELPER), ("A", "b", "c", "n"))
    assert demanded == {"b": ("B", "M", 1), "c": ("M - 1", 2)}
    assert unpacked == {"A": ("B", "M", "A_2")}
    helper = HELPER.replace("b = b", "y = b")
    assert asserted_shapes((helper,), ("b", "n")) == ({"b": ("n", "K")}, {})
    assert asserted_shapes(("def forward(ctx, x): return x", helper), ("b", "n")) == ({"b": ("n", "K_1")}, {})


PROGRAM = """
import {framework} as torch
from {framework}.autograd import Function


def solved(diagonal, upper, right):
    rows, n, k = right.shape
    assert diagonal.shape == (rows, n), "diagonal"
    assert upper.shape == (rows, n - 1), "upper"
    found = [right[:, -1] / diagonal[:, -1:]]
    for i in reversed(range(n - 1)):
        found.insert(0, (right[:, i] - upper[:, i : i + 1] * found[0]) / diagonal[:, i : i + 1])
    return torch.stack(found, 1)


class Bidiagonal(Function):
    @staticmethod
    def forward(ctx, diagonal, upper, right):
        x = solved(diagonal, upper, right)
        ctx.save_for_backward(diagonal, upper, x)
        return x

    @staticmethod
    def backward(ctx, g):
        diagonal, upper, x = ctx.saved_tensors
        z = [g[:, 0] / diagonal[:, :1]]
        for i in range(1, g.shape[1]):
            z.append((g[:, i] - upper[:, i - 1 : i] * z[-1]) / diagonal[:, i : i + 1])
        z = torch.stack(z, 1)
        return -(z * x).sum(-1), -(z[:, {place}] * x[:, 1:]).sum(-1), z
"""


@pytest.mark.parametrize("framework", ["gradcli.engine", "torch"])
@pytest.mark.parametrize("place", [":-1", "1:"])
def test_the_shapes_that_a_helper_asserts_are_found(framework, place, tmp_path):
    pytest.importorskip(framework)
    file = tmp_path / "written.py"
    file.write_text(PROGRAM.format(framework=framework, place=place))
    (case,) = gradcli.check(f"{file}:Bidiagonal", order=1, samples=1, shrink=False).cases
    (rows, n), upper, right = (spec.shape for spec in case.inputs)
    assert upper == (rows, n - 1)
    assert right[:2] == (rows, n)
    assert case.verdict is (Verdict.PASSED if place == ":-1" else Verdict.FAILED), case
    assert {finding.input for finding in case.findings} == (set() if place == ":-1" else {"upper"})


@pytest.mark.parametrize("framework", ["gradcli.engine", "torch"])
def test_a_tall_matrix_beside_a_column_that_is_asserted(framework, tmp_path):
    pytest.importorskip(framework)
    file = tmp_path / "written.py"
    file.write_text(f"""
import {framework} as torch


class Normal(torch.autograd.Function):
    @staticmethod
    def forward(ctx, A, b):
        B, M, N = A.shape
        assert b.shape == (B, M, 1)
        if N > M:
            raise RuntimeError(f"shape '[{{B}}, {{N}}, 1]' is invalid for input of size {{B * M}}")
        ctx.save_for_backward(A, b)
        return A.mT @ b

    @staticmethod
    def backward(ctx, g):
        A, b = ctx.saved_tensors
        return b @ g.mT, A @ g
""")
    (case,) = gradcli.check(f"{file}:Normal", order=1, samples=1, shrink=False).cases
    assert case.verdict is Verdict.PASSED, case
    (rows, m, n), column = (spec.shape for spec in case.inputs)
    assert column == (rows, m, 1)
    assert m > n > 1
