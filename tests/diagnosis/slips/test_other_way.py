"""A rotation that is not turned back, and a matrix that is taken for symmetric: the line with what belongs there."""

import pytest

import gradcli
from gradcli.findings import FindingKind as K
from gradcli.verdict import Verdict

ROTATION = """import {framework} as torch
from {framework}.autograd import Function


class Case(Function):
    @staticmethod
    def forward(ctx, angle, x):
        c, s = torch.cos(angle), torch.sin(angle)
        ctx.save_for_backward(angle, x)
        return torch.stack([c * x[:, 0] - s * x[:, 1], s * x[:, 0] + c * x[:, 1]], 1)

    @staticmethod
    def backward(ctx, g):
        angle, x = ctx.saved_tensors
        c, s = torch.cos(angle), torch.sin(angle)
        of_angle = g[:, 0] * (-s * x[:, 0] - c * x[:, 1]) + g[:, 1] * (c * x[:, 0] - s * x[:, 1])
        return of_angle, {of_x}  # here
"""
QUADRATIC = """import {framework} as torch
from {framework}.autograd import Function


class Case(Function):
    @staticmethod
    def forward(ctx, angle, x):
        ctx.save_for_backward(angle, x)
        return ((x @ angle) * x).sum(-1)

    @staticmethod
    def backward(ctx, g):
        angle, x = ctx.saved_tensors
        return x.mT @ (g[:, None] * x), {of_x}  # here
"""
BACK = "torch.stack([c * g[:, 0] + s * g[:, 1], c * g[:, 1] - s * g[:, 0]], 1)"
FORTH = "torch.stack([c * g[:, 0] - s * g[:, 1], s * g[:, 0] + c * g[:, 1]], 1)"
SUM, TWICE = "g[:, None] * (x @ (angle + angle.mT))", "2 * g[:, None] * (x @ angle)"
SHAPES = {ROTATION: {"angle": [3], "x": [3, 2]}, QUADRATIC: {"angle": [4, 4], "x": [3, 4]}}


def checked(path, text, framework, of_x):
    pytest.importorskip(framework.partition(".")[0])
    path.write_text(text.format(framework=framework, of_x=of_x))
    inputs = {name: {"shape": shape} for name, shape in SHAPES[text].items()}
    return gradcli.check(f"{path}:Case", inputs, order=1, samples=1, shrink=False).cases[0]


@pytest.mark.parametrize("framework", ["gradcli.engine", "torch"])
@pytest.mark.parametrize(
    ("text", "right", "wrong", "kind", "said"),
    [
        (ROTATION, BACK, FORTH, K.WRONG_SIGN, "`[c * g[:, 0] + s * g[:, 1], c * g[:, 1] - s * g[:, 0]]` belongs"),
        (QUADRATIC, SUM, TWICE, K.TRANSPOSED, "`2 * g[:, None] * (x @ ((angle + angle.mT) / 2))` belongs"),
    ],
    ids=["rotation", "quadratic"],
)
def test_what_belongs_there_is_told(framework, text, right, wrong, kind, said, tmp_path):
    assert checked(tmp_path / "right.py", text, framework, right).verdict is Verdict.PASSED
    (finding,) = checked(tmp_path / "wrong.py", text, framework, wrong).findings
    assert finding.kind is kind
    assert said.replace("angle.mT", "angle.T") in finding.message.replace("angle.mT", "angle.T")
    (finding,) = checked(tmp_path / "other.py", text, framework, f"1.01 * {right}").findings
    assert "1.01 times the right one" in finding.message
