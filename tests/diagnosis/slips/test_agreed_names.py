"""A slip is corrected where it is: in backward, if forward and backward have one name for the value that is saved."""

import ast

import pytest

import gradcli
from gradcli.diagnosis.slips.agreed_names import is_agreed
from gradcli.diagnosis.slips.slip import Slip
from gradcli.verdict import Verdict

FUNCTION = """
import {framework} as torch
from {framework}.autograd import Function


class Sigmoid(Function):
    @staticmethod
    def forward(ctx, z):
        out = 1 / (1 + torch.exp(-z))
        ctx.save_for_backward(z)
        return out

    @staticmethod
    def backward(ctx, g):
        (z,) = ctx.saved_tensors
        s = 1 / (1 + torch.exp(-z))
        dz = g * {slope}
        return dz
"""
PAIR = """
import numpy as np


def sigmoid_forward(z):
    out = 1 / (1 + np.exp(-z))
    cache = z
    return out, cache


def sigmoid_backward(dout, cache):
    z = cache
    s = 1 / (1 + np.exp(-z))
    dz = dout * {slope}
    return dz
"""
RIGHT = "s * (1 - s)"
TARGETS = {
    "engine": (FUNCTION, "gradcli.engine", "Sigmoid", "g"),
    "torch": (FUNCTION, "torch", "Sigmoid", "g"),
    "numpy": (PAIR, "", "sigmoid_forward", "dout"),
}


def checked(name, slope, folder):
    if name == "torch":
        pytest.importorskip("torch")
    text, framework, target, _ = TARGETS[name]
    path = folder / f"agreed_{name}_{'right' if slope == RIGHT else 'wrong'}.py"
    path.write_text(text.format(framework=framework, slope=slope))
    (case,) = gradcli.check(f"{path}:{target}", order=1, samples=1, shrink=False).cases
    return case


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", TARGETS)
def test_a_name_that_backward_uses_twice_is_corrected_there(name, tmp_path):
    assert checked(name, RIGHT, tmp_path).verdict is Verdict.PASSED
    case = checked(name, "z * (1 - z)", tmp_path)
    assert case.verdict is Verdict.FAILED
    g = TARGETS[name][3]
    assert f"has `{g} * z * (1 - z)` where `{g} * s * (1 - s)` belongs" in case.findings[0].message


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", TARGETS)
def test_a_slope_that_is_slightly_wrong_fails_too(name, tmp_path):
    assert checked(name, "s * (1 - 1.01 * s)", tmp_path).verdict is Verdict.FAILED


@pytest.mark.parametrize(
    ("old", "new", "backward", "agreed"),
    [
        ("z", "out", "z, = ctx.saved_tensors", True),
        ("z", "out", "z = ctx.z", True),
        ("z", "out", "out, = ctx.saved_tensors", False),
        ("x", "w", "w, x = ctx.saved_tensors", False),
        ("z", "out", "z = 2 * g", False),
        ("s", "-s", "c, s = ctx.saved_tensors", True),
        ("s", "2 * s", "sine = ctx.s", False),
        ("a < b", "a <= b", "a, b = ctx.saved_tensors", False),
    ],
)
def test_a_name_of_both_is_not_exchanged_in_forward(old, new, backward, agreed):
    class Drafted:
        class backward:
            node = ast.parse(f"def backward(ctx, g):\n    {backward}\n    return g").body[0]

    old, new = (ast.parse(text, mode="eval").body for text in (old, new))
    slip = Slip(cost=1, number=0, old=old, new=new, fixes=frozenset({0}))
    assert is_agreed(slip, Drafted) is agreed
