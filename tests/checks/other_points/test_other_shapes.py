"""Numbers whose other values need inputs of other shapes, and numbers that are the lengths of outputs."""

import pytest

import gradcli
from gradcli.verdict import Verdict

SOURCE = """
import {framework} as torch
from {framework}.autograd import Function

MISTAKE = {mistake!r}


class Normalised(Function):
    '''Each row or column of v has the length that g says.'''

    @staticmethod
    def forward(ctx, v, g, dim=0):
        ctx.dim = dim
        length = (v * v).sum(1 - dim, keepdim=True).sqrt()
        ctx.save_for_backward(v, g)
        return v * (g.unsqueeze(1 - dim) / length)

    @staticmethod
    def backward(ctx, grad):
        v, g = ctx.saved_tensors
        other = 1 - ctx.dim
        length = (v * v).sum(other, keepdim=True).sqrt()
        dot = (grad * v).sum(other, keepdim=True)
        if MISTAKE == "columns" and ctx.dim == 1:
            dot = (grad * v).mean(other, keepdim=True)
        gv = g.unsqueeze(other) / length * (grad - v * dot / length**2)
        return gv, (dot / length).squeeze(other), None


class Grouped(Function):
    '''The means of groups of neighbours.'''

    @staticmethod
    def forward(ctx, x, factor=2):
        if factor < 2 or x.shape[1] % factor:
            raise ValueError("the columns are no multiple of the factor")
        ctx.factor = factor
        return x.reshape(x.shape[0], x.shape[1] // factor, factor).sum(2) / factor

    @staticmethod
    def backward(ctx, g):
        rows, columns = g.shape
        g = g.reshape(rows, columns, 1).expand(rows, columns, ctx.factor).reshape(rows, columns * ctx.factor)
        return g / (2 if MISTAKE == "two" else ctx.factor), None


class Nearest(Function):
    '''The nearest of the entries for each of `n_out` positions.'''

    @staticmethod
    def forward(ctx, x, n_out):
        ctx.index = torch.arange(n_out) * x.shape[1] // n_out
        ctx.shape = x.shape
        return x[:, ctx.index]

    @staticmethod
    def backward(ctx, g):
        gx = torch.zeros(ctx.shape, dtype=g.dtype)
        if MISTAKE == "repeated":
            gx[:, ctx.index] += g
            return gx, None
        return gx.index_add(1, ctx.index, g), None


class NearestOfSize(Nearest):
    @staticmethod
    def forward(ctx, x, output_size=(2,)):
        return Nearest.forward(ctx, x, output_size[0])
"""
CASES = [
    ("Normalised", "columns", "with dim=1 (default: 0) and v of shape [4, 3]"),
    ("Grouped", "two", "with factor=3 (default: 2) and x of shape"),
    ("Nearest", "repeated", "with n_out=9 (given: 2)"),
    ("NearestOfSize", "repeated", "with output_size=(9,) (default: (2,))"),
]


@pytest.fixture(params=("gradcli.engine", "torch"))
def checked(request, tmp_path):
    if request.param == "torch":
        pytest.importorskip("torch")

    def check(name, mistake, *arguments):
        file = tmp_path / "written.py"
        file.write_text(SOURCE.format(framework=request.param, mistake=mistake))
        return gradcli.check(f"{file}:{name}", *arguments, order=1, shrink=False).cases[0]

    return check


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", [name for name, _, _ in CASES])
def test_a_right_function_passes(checked, name):
    case = checked(name, None)
    assert case.verdict is Verdict.PASSED, case.findings
    assert not any("is wrong" in note for note in case.notes), case.notes


@pytest.mark.sampled(4)
@pytest.mark.parametrize(("name", "mistake", "where"), CASES)
def test_its_wrong_twin_fails(checked, name, mistake, where):
    case = checked(name, mistake)
    assert case.verdict is Verdict.FAILED, case
    assert any(where in finding.message for finding in case.findings), case.findings
