"""Indices that are all equal, and -1 where the documentation gives it a meaning."""

import pytest

import gradcli
from gradcli.verdict import Verdict

IMPORTS = "import gradcli.engine as torch\nfrom gradcli.engine.autograd import Function\n"
QUEUE = """

class Queue(Function):
    @staticmethod
    def forward(ctx, x, lane, room=2):
        taken = torch.nn.functional.one_hot(lane, 5)
        place = (taken.cumsum(0) * taken).sum(1)
        fits = (place <= room).to(x.dtype).unsqueeze(1)
        ctx.save_for_backward(fits)
        return x * fits

    @staticmethod
    def backward(ctx, g):
        (fits,) = ctx.saved_tensors
        return {gradient}, None, None
"""
LOOKUP = '''

class Lookup(Function):
    """table (n, d), nearest (k,) rows to read{meaning}"""

    @staticmethod
    def forward(ctx, table, nearest):
        ctx.save_for_backward(nearest)
        ctx.rows = table.shape[0]
        return torch.cat([table, torch.zeros(1, table.shape[1], dtype=table.dtype)])[nearest]

    @staticmethod
    def backward(ctx, g):
        (nearest,) = ctx.saved_tensors
        wrapped = {wrapped}
        return torch.zeros(ctx.rows + 1, g.shape[1], dtype=g.dtype).index_add(0, wrapped, g)[:-1], None
'''


def checked(file, text, name):
    file.write_text(IMPORTS + text)
    (case,) = gradcli.check(f"{file}:{name}", order=1, shrink=False).cases
    return case


@pytest.mark.parametrize(
    ("gradient", "verdict"),
    [("g * fits", Verdict.PASSED), ("g", Verdict.FAILED), ("g * (2 * fits - 1)", Verdict.FAILED)],
)
@pytest.mark.usefixtures("unexplained")
def test_an_index_that_occurs_more_often_than_there_is_room(gradient, verdict, tmp_path):
    case = checked(tmp_path / "written.py", QUEUE.format(gradient=gradient), "Queue")
    assert case.verdict is verdict, case


@pytest.mark.parametrize(
    ("meaning", "wrapped", "verdict"),
    [
        (", -1 means missing", "torch.remainder(nearest, ctx.rows + 1)", Verdict.PASSED),
        (", -1 means missing", "nearest.clamp(min=0)", Verdict.FAILED),
        ("; padded with -1", "nearest.clamp(min=0)", Verdict.FAILED),
        ("", "nearest.clamp(min=0)", Verdict.PASSED),
    ],
)
@pytest.mark.usefixtures("unexplained")
def test_a_documented_minus_one_is_tried(meaning, wrapped, verdict, tmp_path):
    case = checked(tmp_path / "written.py", LOOKUP.format(meaning=meaning, wrapped=wrapped), "Lookup")
    assert case.verdict is verdict, case
