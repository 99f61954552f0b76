"""A rotation or a filter that does not run back, a matrix taken for symmetric: the line with what belongs there."""

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
ENERGY = QUADRATIC.replace("((x @ angle) * x).sum(-1)", "(x[:, None] * angle * x).sum()").replace(
    "x.mT @ (g[:, None] * x)", "g * x[:, None] * x"
)
HALVES = "g * ((angle * x).sum(-1) + (angle * x[:, None]).sum(0))"
SUM, TWICE = "g[:, None] * (x @ (angle + angle.mT))", "2 * g[:, None] * (x @ angle)"
SHAPES = {
    ENERGY: {"angle": [4, 4], "x": [4]},
    ROTATION: {"angle": [3], "x": [3, 2]},
    QUADRATIC: {"angle": [4, 4], "x": [3, 4]},
}


def checked(path, text, framework, of_x):
    pytest.importorskip(framework.partition(".")[0])
    path.write_text(text.format(framework=framework, of_x=of_x))
    inputs = {name: {"shape": shape} for name, shape in SHAPES[text].items()}
    return gradcli.check(f"{path}:Case", inputs, order=1, samples=1, shrink=False).cases[0]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("framework", ["gradcli.engine", "torch"])
@pytest.mark.parametrize(
    ("text", "right", "wrong", "kind", "said"),
    [
        (ROTATION, BACK, FORTH, K.WRONG_SIGN, "`[c * g[:, 0] + s * g[:, 1], c * g[:, 1] - s * g[:, 0]]` belongs"),
        (QUADRATIC, SUM, TWICE, K.TRANSPOSED, "`2 * g[:, None] * (x @ ((angle + angle.mT) / 2))` belongs"),
        (ENERGY, HALVES, "2 * g * (angle * x).sum(-1)", K.TRANSPOSED, "(angle + angle.mT) / 2"),
    ],
    ids=["rotation", "quadratic", "energy"],
)
def test_what_belongs_there_is_told(framework, text, right, wrong, kind, said, tmp_path):
    assert checked(tmp_path / "right.py", text, framework, right).verdict is Verdict.PASSED
    (finding,) = checked(tmp_path / "wrong.py", text, framework, wrong).findings
    assert finding.kind is kind
    assert said.replace("angle.mT", "angle.T") in finding.message.replace("angle.mT", "angle.T")
    (finding,) = checked(tmp_path / "other.py", text, framework, f"1.01 * {right}").findings
    assert "1.01 times the right one" in finding.message


FILTER = """import {framework} as torch
from {framework}.autograd import Function


def run(x, a):
    y, out = 0 * x[0], []
    for v in x:
        y = (1 - a) * v + a * y
        out.append(y)
    return torch.stack(out)


class Case(Function):
    @staticmethod
    def forward(ctx, x, a=0.7):
        ctx.a = a
        return run(x, a)

    @staticmethod
    def backward(ctx, g):
        return {of_x}, None
"""
BACKWARDS = "run(g.flip(0), ctx.a).flip(0)"


@pytest.mark.sampled(1)
@pytest.mark.parametrize("framework", ["gradcli.engine", "torch"])
def test_a_filter_that_has_to_run_backwards(framework, tmp_path):
    pytest.importorskip(framework.partition(".")[0])
    found = {}
    for number, of_x in enumerate((BACKWARDS, "run(g, ctx.a)", f"1.01 * {BACKWARDS}")):
        path = tmp_path / f"case{number}.py"
        path.write_text(FILTER.format(framework=framework, of_x=of_x))
        found[of_x] = gradcli.check(f"{path}:Case", {"x": {"shape": [5]}}, order=1, samples=1, shrink=False).cases[0]
    assert found.pop(BACKWARDS).verdict is Verdict.PASSED
    wrong, scaled = (case.findings[0] for case in found.values())
    assert wrong.kind is K.WRONG_SHIFT
    assert f"`run(g, ctx.a)` where `{BACKWARDS}` belongs" in wrong.message
    assert "1.01 times the right one" in scaled.message
