"""Sizes that documentation calls even, odd or multiples: the checks use such sizes alone."""

import ast

import pytest

import gradcli
from gradcli import engine as torch
from gradcli.engine.autograd import Function
from gradcli.inputs.hints.prose.equations import with_equations
from gradcli.verdict import Verdict

SHAPES = {"x": ("N", "C", "D"), "w": ("C", "D")}


@pytest.mark.parametrize(
    ("text", "computed"),
    [
        ("x: (N, C, D), D even", {"D": "2 * D_per_2"}),
        ("with even D", {"D": "2 * D_per_2"}),
        ("The width `D` must be even.", {"D": "2 * D_per_2"}),
        ("requires D to be an even number", {"D": "2 * D_per_2"}),
        ("C and D are even", {"C": "2 * C_per_2", "D": "2 * D_per_2"}),
        ("(D % 2 == 0)", {"D": "2 * D_per_2"}),
        ("D divisible by 4.", {"D": "4 * D_per_4"}),
        ("C is a multiple of the number of groups", {"C": "groups * C_per_groups"}),
        ("groups divides C", {"C": "groups * C_per_groups"}),
        ("an even number of channels", {"C": "2 * C_per_2"}),
        ("an even number of channels C", {"C": "2 * C_per_2"}),
        ("x has an even last dimension", {"D": "2 * D_per_2"}),
        ("the head dimension D must be divisible by two", {"D": "2 * D_per_2"}),
        ("N odd", {"N": "2 * N_per_2 + 1"}),
        ("D a power of two", {"D": "2 ** D_log2"}),
        ("exact if D is even", {}),
        ("D may be even or odd", {}),
        ("for even D the halves are exchanged, for odd D not", {}),
        ("D is not divisible by 3", {}),
        ("scales every other column of D, even columns first", {}),
        ("D is a multiple of something", {}),
    ],
)
def test_divisors_of_sizes_are_read(text, computed):
    found = with_equations(SHAPES, ["x", "w", "groups"], "", text)
    assert found == {name: tuple(computed.get(axis, axis) for axis in shape) for name, shape in SHAPES.items()}


class HalfTurn(Function):
    """x + w times x with its halves exchanged. x: (N, D), w: (N, D), D even."""

    late = False

    @classmethod
    def turned(cls, x):
        half = x.shape[1] // 2
        return torch.cat([x[:, half:], x[:, :half]], 1)

    @classmethod
    def forward(cls, ctx, x, w):
        ctx.save_for_backward(x, w)
        return x + w * cls.turned(x)

    @classmethod
    def backward(cls, ctx, g):
        x, w = ctx.saved_tensors
        return g + (w * cls.turned(g) if cls.late else cls.turned(g * w)), g * cls.turned(x)


class HalfTurnOfTwice(HalfTurn):
    """x + w times x with its halves exchanged. x: (N, 2 * H), w: (N, 2 * H)."""


class HalfTurnLate(HalfTurn):
    """x + w times x with its halves exchanged. x: (N, D), w: (N, D), D even."""

    late = True


@pytest.mark.parametrize("target", [HalfTurn, HalfTurnOfTwice])
def test_all_sizes_that_are_tried_are_even(target):
    case = gradcli.check(target, order=1).cases[0]
    assert case.verdict is Verdict.PASSED, case.findings
    assert case.inputs[0].shape[1] % 2 == 0


def test_a_gradient_that_is_wrong_at_even_sizes_fails():
    case = gradcli.check(HalfTurnLate, order=1).cases[0]
    assert {finding.input for finding in case.findings} == {"x"}
    shown = next(line for line in case.smallest if line.startswith("x = "))
    assert len(ast.literal_eval(shown.removeprefix("x = "))[0]) % 2 == 0
