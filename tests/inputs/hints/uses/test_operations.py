"""Operations on symmetric matrices are seen through a helper, an alias and a function of a module."""

from pathlib import Path

import pytest

from gradcli.verdict import Verdict
from tests.inputs.hints.uses.written import checked

SPECTRUM = """
def decomposed(matrix):
    return torch.linalg.eigh(matrix)


class Spectrum(Function):
    @staticmethod
    def forward(ctx, a):
        w, v = DECOMPOSED(a)
        ctx.save_for_backward(v)
        return w

    @staticmethod
    def backward(ctx, g):
        (v,) = ctx.saved_tensors
        return FACTOR * (v * g) @ v.mT
"""
ALIAS = "eigen = torch.linalg.eigh\n" + SPECTRUM.replace("DECOMPOSED", "eigen")
OF_MODULE = (
    "import types\ntools = types.SimpleNamespace()\n"
    + SPECTRUM.replace("DECOMPOSED", "tools.own")
    + "\ntools.own = decomposed\n"
)
SOLVED = """
def factored(matrix):
    return torch.linalg.cholesky(matrix)


class Solved(Function):
    @staticmethod
    def forward(ctx, matrix, b):
        lower = factored(matrix)
        x = torch.linalg.solve(lower.mT, torch.linalg.solve(lower, b))
        ctx.save_for_backward(lower, x)
        return x

    @staticmethod
    def backward(ctx, g):
        lower, x = ctx.saved_tensors
        gb = torch.linalg.solve(lower.mT, torch.linalg.solve(lower, g))
        both = gb @ x.mT
        return -FACTOR * (both + both.mT) / 2, gb
"""


@pytest.mark.parametrize("factor", ["1", "1.001"])
@pytest.mark.parametrize(
    ("text", "name"),
    [
        (SPECTRUM.replace("DECOMPOSED", "decomposed"), "Spectrum"),
        (ALIAS, "Spectrum"),
        (OF_MODULE, "Spectrum"),
        (SOLVED, "Solved"),
    ],
)
def test_symmetric_matrices_are_drawn(text: str, name: str, factor: str, tmp_path: Path, unexplained: None) -> None:
    case = checked(tmp_path, text.replace("FACTOR", factor), name)
    assert case.inputs[0].domain == "spd"
    assert case.verdict is (Verdict.PASSED if factor == "1" else Verdict.FAILED)
