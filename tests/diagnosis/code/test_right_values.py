"""The line that is shown for a wrong gradient is none that right values come from."""

import ast

import pytest

import gradcli
from gradcli.diagnosis.code.ancestry import Ancestry
from gradcli.findings import FindingKind as K
from gradcli.verdict import Verdict

FRAMEWORKS = ("gradcli.engine", "torch")
POISSON = """import {framework} as torch
from {framework}.autograd import Function


class Case(Function):
    @staticmethod
    def forward(ctx, rate, count):
        ctx.save_for_backward(rate, count)
        return (rate.exp() - count * rate).sum(-1)

    @staticmethod
    def backward(ctx, g):
        rate, count = ctx.saved_tensors
        g = g.unsqueeze(-1)
        return g * (rate.exp() - count), {wrong}  # here
"""
RESCALED = """import {framework} as torch
from {framework}.autograd import Function


class Case(Function):
    @staticmethod
    def forward(ctx, x):
        y = x.clone()
        y[0] = y[0] * 3.0
        return y

    @staticmethod
    def backward(ctx, g):
        gx = g.clone()
        {wrong}  # here
        return gx
"""
TURNED = """import {framework} as torch
from {framework}.autograd import Function


class Case(Function):
    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        return x.sin().sum() + (w.sin() * w.T.cos() ** 2).sum()

    @staticmethod
    def backward(ctx, g):
        x, w = ctx.saved_tensors
        e = w.cos() * w.T.cos() ** 2 - 2 * w.T.sin() * w.cos() * w.sin()
        return g * x.cos(), {wrong}  # here
"""
DIFFERENCES = """import numpy as np


def value(x):
    return np.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


def gradient(x):
    g = np.zeros_like(x)
    t = x[1:] - x[:-1] ** 2
    g[:-1] = -400 * x[:-1] * t - 2 * (1 - x[:-1])
    {wrong}  # here
    return g
"""


def checked(target, sizes):
    return gradcli.check(target, {name: {"shape": shape} for name, shape in sizes.items()}, order=1, samples=1).cases[0]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("framework", FRAMEWORKS)
@pytest.mark.parametrize(
    ("text", "wrong", "right"),
    [
        (POISSON, "g * rate", "-g * rate"),
        (POISSON, "-1.01 * g * rate", "-g * rate"),
        (RESCALED, "gx[1] = gx[1] * 3.0", "gx[0] = gx[0] * 3.0"),
        (RESCALED, "gx[0] = gx[0] * 3.03", "gx[0] *= 3.0"),
        (TURNED, "g * e.T", "g * e"),
    ],
)
def test_a_value_behind_a_right_gradient_is_not_shown(framework, text, wrong, right, tmp_path):
    pytest.importorskip(framework.partition(".")[0])
    sizes = {name: [4, 4] for name in (("rate", "count") if text is POISSON else ("x", "w"))}
    sizes = {name: size for name, size in sizes.items() if f" {name}" in text.partition("forward(ctx")[2]}
    for content, verdict in ((wrong, Verdict.FAILED), (right, Verdict.PASSED)):
        path = tmp_path / f"{verdict.name.lower()}.py"
        path.write_text(text.format(framework=framework, wrong=content))
        case = checked(f"{path}:Case", sizes)
        assert case.verdict is verdict
        lines = path.read_text().splitlines()
        assert all(lines[finding.location.line - 1].endswith("# here") for finding in case.findings)


@pytest.mark.parametrize(
    ("wrong", "verdict"),
    [("g[1:] = 200 * t", Verdict.FAILED), ("g[1:] += 202 * t", Verdict.FAILED), ("g[1:] += 200 * t", Verdict.PASSED)],
)
@pytest.mark.usefixtures("unshrunk")
def test_a_value_that_a_right_entry_was_made_of_is_not_shown(wrong, verdict, tmp_path):
    path = tmp_path / "differences.py"
    path.write_text(DIFFERENCES.format(wrong=wrong))
    once = {"order": 1, "samples": 1}
    case = gradcli.check(f"{path}:value", {"x": {"shape": [5]}}, grad=f"{path}:gradient", **once).cases[0]
    assert case.verdict is verdict
    lines = path.read_text().splitlines()
    assert all(lines[finding.location.line - 1].endswith("# here") for finding in case.findings)


BACKWARD = """
def backward(ctx, g):
    x, w = ctx.saved_tensors
    g = g.unsqueeze(-1)  # made
    d = x.cos()  # first
    dx = g * d
    d = w.sin()  # second
    both = helper(x)  # both
    return dx, g * d, g * both[1], both[0]
"""


def test_which_assignments_are_behind_a_right_value() -> None:
    tree = ast.parse(BACKWARD.strip()).body[0]
    assert isinstance(tree, ast.FunctionDef)
    ancestry = Ancestry(tree, range(1, 30))
    dx, dw, entry, other = tree.body[-1].value.elts  # type: ignore[attr-defined]
    marks = {number: line.partition("# ")[2] for number, line in enumerate(BACKWARD.strip().splitlines(), 1)}
    cleared = ancestry.behind_whole([dx])
    assert {marks[node.lineno] for node, _ in cleared} == {"", "made", "first"}
    assert marks[ancestry.source_of(dx, ancestry.behind_whole([other])).lineno] == ""
    assert marks[ancestry.source_of(dw, cleared).lineno] == "second"
    found = ancestry.source_of(entry.right, ancestry.behind_whole([other]))
    assert found is not None
    assert marks[found.lineno] == "both"


def test_the_kind_of_a_transposed_gradient_stays(tmp_path) -> None:
    path = tmp_path / "turned.py"
    path.write_text(TURNED.format(framework="gradcli.engine", wrong="g * e.T"))
    (finding,) = checked(f"{path}:Case", {"x": [4, 4], "w": [4, 4]}).findings
    assert finding.kind is K.TRANSPOSED
