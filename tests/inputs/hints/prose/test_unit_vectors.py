"""Arguments that documentation says to be vectors of norm 1 are drawn as such, and stay such where inputs shrink."""

import numpy as np
import pytest

import gradcli
from gradcli.engine.autograd import Function
from gradcli.inputs.builders import build
from gradcli.inputs.flags import parse_input
from gradcli.inputs.hints.documented_values import documented_values
from gradcli.inputs.shrinking import shrink
from gradcli.verdict import Verdict


@pytest.mark.parametrize(
    ("text", "is_unit"),
    [
        ("Mirrors x at planes with unit normals n (N, D)", True),
        ("n: (N, D) unit vectors", True),
        ("n: (N, D) rows of unit norm", True),
        ("n: (N, D) unit quaternions", True),
        ("x: (N, D), n: (N, D) with |n| = 1", True),
        ("||n||_2 = 1", True),
        ("n: (N, D) vectors, not unit vectors", False),
        ("returns the unit vector n / |n|", False),
        ("if |n| = 1 the length is kept", False),
        ("|n| = 10", False),
        ("n: (N, D) numbers on the unit interval", False),
    ],
)
def test_a_norm_of_one_is_read(text, is_unit):
    code = "def forward(ctx, x, n):\n    return x * n"
    shapes = {"x": ("N", "D"), "n": ("N", "D")}
    assert (documented_values(["x", "n"], code, text, shapes=shapes).domains.get("n") == "unit-vectors") is is_unit
    code = code.replace("x * n", "x * n / n.norm()")
    assert documented_values(["x", "n"], code, text, shapes=shapes).domains.get("n") != "unit-vectors"


@pytest.mark.parametrize("shape", ["3", "2x3", "2x3x4", "5x1"])
def test_vectors_are_drawn_and_cut_with_norm_one(shape):
    (argument,) = build([parse_input(f"n={shape},domain=unit-vectors")], seed=1)
    assert np.linalg.norm(argument.value, axis=-1) == pytest.approx(1)
    (small,) = shrink([argument], lambda given: True)
    assert np.linalg.norm(small.value, axis=-1) == pytest.approx(1)


def projected(is_right):
    class Projected(Function):
        """The part of x (N, D) beside unit directions n (N, D), and how long the other one is (N, 1)."""

        @staticmethod
        def forward(ctx, x, n):
            along = (x * n).sum(-1, keepdim=True)
            beside = x - along * n
            ctx.save_for_backward(x, n, beside)
            return beside, along

        @staticmethod
        def backward(ctx, g, h):
            x, n, beside = ctx.saved_tensors
            along = ((x - beside) * n).sum(-1, keepdim=True)
            gn = (g * n).sum(-1, keepdim=True)
            gx = g - gn * n + h * n
            return gx, h * x - along * g - (gn * x if is_right else gn * beside)

    return Projected


@pytest.mark.usefixtures("unexplained")
@pytest.mark.parametrize("is_right", [True, False])
def test_a_backward_that_needs_unit_vectors_is_checked_with_such(is_right):
    (case,) = gradcli.check(projected(is_right), order=1, shrink=False).cases
    assert case.verdict is (Verdict.PASSED if is_right else Verdict.FAILED), case.evidence
    assert {each.input for each in case.evidence if each.verdict is Verdict.FAILED} <= {"n"}
    assert case.inputs[1].domain == "unit-vectors"
