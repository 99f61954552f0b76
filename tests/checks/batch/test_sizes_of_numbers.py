"""Whole numbers that have to change together with the length of an axis."""

import importlib

import pytest

import gradcli
from gradcli.verdict import Verdict

SOURCE = """
import {framework} as torch
from {framework}.autograd import Function


def transposed(band, below):
    rows, width = band.shape
    made = torch.zeros_like(band)
    for k in range(width):
        for i in range(max(0, below - k), min(rows, rows + below - k)):
            made[i, k] = band[i + k - below, width - 1 - k]
    return made


class Transpose(Function):
    '''The transpose of a band matrix: `above` and `below` diagonals, and the middle one, a column each.'''

    @staticmethod
    def forward(ctx, band, above, below):
        ctx.above, ctx.below = above, below
        return transposed(band, below)

    @staticmethod
    def backward(ctx, g):
        return transposed(g, {above}), None, None


class Mean(Function):
    @staticmethod
    def forward(ctx, x, dim):
        ctx.save_for_backward(x)
        ctx.dim = dim
        return x.mean(dim)

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g.unsqueeze(ctx.dim).expand(x.shape) / x.shape[1], None


class Along(Mean):
    @staticmethod
    def forward(ctx, x, which):
        return Mean.forward(ctx, x, which)


class AlongAny(Along):
    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g.unsqueeze(ctx.dim).expand(x.shape) / x.shape[ctx.dim], None
"""


@pytest.fixture(params=("gradcli.engine", "torch"))
def checked(request, tmp_path):
    framework = pytest.importorskip("torch") if request.param == "torch" else importlib.import_module(request.param)

    def check(name: str, *numbers: int, shapes: tuple[tuple[int, ...], ...], above: str = "ctx.above"):
        file = tmp_path / "bands.py"
        file.write_text(SOURCE.format(framework=request.param, above=above))
        framework.manual_seed(0)
        tensors = tuple(framework.randn(*s, dtype=framework.float64, requires_grad=True) for s in shapes)
        only = ("gradient", "constants", "sizes", "other-inputs")
        return gradcli.check(f"{file}:{name}", (*tensors, *numbers), order=1, shrink=False, only=only).cases[0]

    return check


@pytest.mark.sampled(1)
@pytest.mark.parametrize("numbers", [(1, 2), (2, 1)])
def test_numbers_of_diagonals_go_with_the_columns(checked, numbers):
    case = checked("Transpose", *numbers, shapes=((5, 4),))
    assert case.verdict is Verdict.PASSED, case.findings
    assert any("it is right if the length of axis 1 of band changes by +1 as well" in note for note in case.notes)


@pytest.mark.sampled(1)
def test_a_number_written_into_backward_is_found_where_the_columns_go_with_it(checked):
    case = checked("Transpose", 2, 1, shapes=((5, 4),), above="2")
    assert case.verdict is Verdict.FAILED
    assert "with above=3 (given: 2) and +1 in the length of axis 1 of band" in case.findings[0].message


def test_axes_that_are_confused_are_not_excused_by_a_square(checked):
    case = checked("Mean", 1, shapes=((3, 4),))
    assert case.verdict is Verdict.FAILED
    assert "dim=0" in case.findings[0].message


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("shape", "other"), [((3, 4), 0), ((3, 4, 5), 2), ((5, 3, 4), 2)])
def test_an_axis_is_recognised_under_any_name(checked, shape, other):
    case = checked("Along", 1, shapes=(shape,))
    assert case.verdict is Verdict.FAILED
    assert f"which={other}" in case.findings[0].message, case.findings
    case = checked("AlongAny", 1, shapes=(shape,))
    assert case.verdict is Verdict.PASSED, case.findings
    assert not any("is wrong" in note for note in case.notes)
