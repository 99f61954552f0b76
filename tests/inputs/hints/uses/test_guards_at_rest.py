"""Where forward holds an intermediate result at a guard, numbers are small enough that it holds nothing."""

from pathlib import Path

import pytest

from gradcli.verdict import Verdict
from tests.inputs.hints.uses.written import checked

BALL = """
class Ball(Function):
    @staticmethod
    def forward(ctx, x, eps):
        room = (1 - (x * x).sum(-1)).clamp(min=eps)
        ctx.save_for_backward(x, room)
        return room.log()

    @staticmethod
    def backward(ctx, g):
        x, room = ctx.saved_tensors
        return -FACTOR * 2 * (g / room).unsqueeze(-1) * x, None
"""
ANGLE = """
class Angle(Function):
    @staticmethod
    def forward(ctx, x, y, tolerance):
        edge = 1 - tolerance
        cosine = (x * y).sum(-1).clamp(min=-edge, max=edge)
        ctx.save_for_backward(x, y, cosine)
        return torch.acos(cosine)

    @staticmethod
    def backward(ctx, g):
        x, y, cosine = ctx.saved_tensors
        slope = (-FACTOR * g / (1 - cosine * cosine).sqrt()).unsqueeze(-1)
        return slope * y, slope * x, None
"""
NORMS = """
class Norms(Function):
    @staticmethod
    def forward(ctx, x, eps):
        norm = (x * x).sum(-1).clamp(min=eps).sqrt()
        ctx.save_for_backward(x, norm)
        return norm / (norm + eps)

    @staticmethod
    def backward(ctx, g):
        return torch.zeros_like(ctx.saved_tensors[0]), None
"""


@pytest.mark.parametrize("factor", ["1", "1.001"])
@pytest.mark.parametrize(("text", "name"), [(BALL, "Ball"), (ANGLE, "Angle")])
def test_guards_are_at_rest(text: str, name: str, factor: str, tmp_path: Path, unexplained: None) -> None:
    case = checked(tmp_path, text.replace("FACTOR", factor), name)
    assert case.verdict is (Verdict.PASSED if factor == "1" else Verdict.FAILED)
    assert case.inputs[0].domain == "open-interval"
    assert any("at a guard" in note for note in case.notes)


def test_what_is_added_keeps_normal_numbers(tmp_path: Path, unexplained: None) -> None:
    case = checked(tmp_path, NORMS, "Norms")
    assert case.verdict is Verdict.FAILED
    assert case.inputs[0].domain == "normal"
