"""Arguments that documentation says to be points of the unit ball are drawn as such, and stay such."""

import numpy as np
import pytest

import gradcli
from gradcli.checks.other_points.bounds import all_bounds_of
from gradcli.checks.other_points.points import other_points
from gradcli.engine.autograd import Function
from gradcli.inputs.builders import build
from gradcli.inputs.flags import parse_input
from gradcli.inputs.hints.documented_values import documented_values
from gradcli.inputs.shrinking import shrink
from gradcli.verdict import Verdict

SHAPES = {"u": ("n", "d"), "v": ("n", "d")}


@pytest.mark.parametrize(
    ("text", "inside"),
    [
        ("u, v: (n, d) points with |u| < 1 and |v| < 1", {"u", "v"}),
        ("u: (n, d) points in the unit ball", {"u"}),
        ("the distance of u and v (n, d) in the Poincaré ball", {"u", "v"}),
        ("u, v: (n, d) inside the open unit disk", {"u", "v"}),
        ("u: (n, d) vectors of norm less than 1; v: (n, d)", {"u"}),
        ("u: (n, d), ||u|| < 1", {"u"}),
        ("u: (n, d), norm(u) < 1", {"u"}),
        ("v: (n, d) embeddings whose norm is below one", {"v"}),
        ("u: (n, d) points of the unit disc", {"u"}),
        ("u: (n, d) correlations, |u| < 1", set()),
        ("projects the points u onto the unit ball", set()),
        ("if ||u|| < 1 it is kept", set()),
        ("u: (n, d) points outside the unit ball", set()),
        ("u: (n,) the volume of the unit ball", set()),
    ],
)
def test_a_norm_below_one_is_read(text, inside):
    domains = documented_values(["u", "v"], "", text, shapes=SHAPES).domains
    assert {name for name, domain in domains.items() if domain == "unit-ball"} == inside


@pytest.mark.parametrize("shape", ["3", "2x3", "2x3x4", "5x1"])
def test_points_are_drawn_changed_and_cut_inside_the_ball(shape):
    arguments = build([parse_input(f"n={shape},domain=unit-ball")], seed=1)
    (small,) = shrink(arguments, lambda given: abs(given[0].value).max() > 0.4)
    points = other_points(arguments, all_bounds_of(arguments, [0]), np.random.default_rng(1))
    values = [arguments[0].value, small.value, *(changed[0].value for each in points for changed in each)]
    assert all((np.linalg.norm(value, axis=-1) < 1).all() for value in values)
    assert len({value.tobytes() for value in values}) > 4


def depth(wrong):
    class Depth(Function):
        """Distance from the centre of the Poincaré ball. u: (n, d) points inside the unit ball."""

        @staticmethod
        def forward(ctx, u):
            rest = 1 - (u * u).sum(-1)
            if bool((rest <= 0).any()):
                raise ValueError("outside the ball")
            ctx.save_for_backward(u, rest)
            return rest.log()

        @staticmethod
        def backward(ctx, g):
            u, rest = ctx.saved_tensors
            return -2 * u * (g if wrong else g / rest)[:, None]

    return Depth


@pytest.mark.parametrize("wrong", [False, True])
def test_points_of_the_ball_are_checked(wrong):
    case = gradcli.check(depth(wrong), order=1).cases[0]
    assert case.verdict is (Verdict.FAILED if wrong else Verdict.PASSED), case.findings
    assert case.inputs[0].domain == "unit-ball"
