"""Arguments that documentation says to be in order are drawn, changed and shrunk in that order."""

from dataclasses import replace

import numpy as np
import pytest

import gradcli
from gradcli.checks.other_points.bounds import all_bounds_of, bounds_of
from gradcli.checks.other_points.points import Change, other_points
from gradcli.engine.autograd import Function
from gradcli.inputs.builders import build
from gradcli.inputs.flags import parse_input
from gradcli.inputs.hints.documented_values import documented_values
from gradcli.inputs.shrinking import shrink
from gradcli.verdict import Verdict

NAMES = ("x", "knots", "h")
UP, DOWN = "ascending", "descending"


def said(text, code="def forward(x, knots, h):\n    return x"):
    return dict(documented_values(NAMES, code, text).domains)


@pytest.mark.parametrize(
    ("text", "domains"),
    [
        ("x: (N,) points, knots: (K,) increasing positions, h: (K,)", {"knots": UP}),
        ("knots (K,), strictly increasing", {"knots": UP}),
        ("knots (K,) sorted in descending order", {"knots": DOWN}),
        ("knots (K,) in ascending order", {"knots": UP}),
        ("knots must be sorted", {"knots": UP}),
        ("knots: (K,) sorted from high to low", {"knots": DOWN}),
        ("x: (N,) monotonically non-decreasing times", {"x": UP}),
        ("x: (N,) non-increasing energies", {"x": DOWN}),
        ("knots: (K,) bin edges", {"knots": UP}),
        ("x: (N,), positive, increasing", {"x": f"{UP}(0, 2)"}),
        ("x: (N,) sorted values in (0, 1)", {"x": f"{UP}(0, 1)"}),
        ("x_0 < x_1 < ... < x_n", {"x": UP}),
        ("weights h with h[:-1] >= h[1:]", {"h": DOWN}),
        ("knot_0 < knot_1 < ...", {"knots": UP}),
        ("Straight pieces with heights h at increasing knots", {"knots": UP}),
        ("A curve for sorted knots", {"knots": UP}),
    ],
)
def test_an_order_is_read(text, domains):
    assert said(text) == domains


@pytest.mark.parametrize(
    "text",
    [
        "h: (N,) hazards sorted by descending time",
        "h: (N,) in ascending order of mass",
        "knots: (K,), not necessarily sorted",
        "knots: (K,) unsorted",
        "if knots are sorted, this is fast",
        "x: (N,) increasing or decreasing",
        "x: (N,) input of an increasing function",
        "with increasing x the output saturates",
        "returns the sorted x",
        "x: (N,) values, sorted internally",
        "the output is decreasing in x",
    ],
)
def test_what_is_no_order_of_an_argument(text):
    assert said(text) == {}


def test_the_code_may_sort_or_search_an_argument():
    assert said("x: (N,) sorted", "def forward(x, knots, h):\n    return torch.sort(x, 0)[0]") == {}
    assert said("x: (N,) sorted", "def forward(x, knots, h):\n    x = x.cumsum(0)\n    return x") == {}
    for call in ("np.searchsorted(knots, x)", "torch.bucketize(x, knots)", "np.interp(abs(x), knots, h)"):
        assert said("", f"def forward(x, knots, h):\n    return {call}") == {"knots": UP}


def drawn(flag):
    return build([parse_input(flag)], seed=3)


@pytest.mark.parametrize(
    ("flag", "sign", "low", "high"),
    [
        ("x=5,domain=ascending", 1, -2, 2),
        ("x=2x400,domain=descending", -1, -2, 2),
        ("x=4,domain=ascending,lo=0,hi=1", 1, 0, 1),
        ("x=1,domain=descending", -1, -2, 2),
        ("x=scalar,domain=ascending", 1, -2, 2),
    ],
)
def test_numbers_are_drawn_in_order(flag, sign, low, high):
    (argument,) = drawn(flag)
    value = argument.value
    assert low < value.min() <= value.max() < high
    if value.ndim:
        assert (sign * np.diff(value) >= 0.4 * (high - low) / value.shape[-1]).all()


@pytest.mark.parametrize("flag", ["x=5,domain=ascending", "x=3x4,domain=descending", "x=6,domain=ascending,lo=0,hi=1"])
def test_other_values_and_smaller_inputs_stay_in_order(flag):
    arguments = drawn(flag)
    sign = -1 if "descending" in flag else 1
    assert bounds_of(arguments[0]).ordered
    points = other_points(arguments, all_bounds_of(arguments, [0]), np.random.default_rng(0), (), (0.25, 0.75))
    found = [each[0].value for candidates in points for each in candidates]
    assert len(found) > len(Change) / 2
    assert any((value != arguments[0].value).any() for value in found)
    assert all((sign * np.diff(value) > 0).all() for value in found)
    (small,) = shrink(arguments, lambda given: given[0].value.shape[-1] > 1)
    assert small.value.shape[-1] == 2
    assert (sign * np.diff(small.value) > 0).all()
    assert shrink([replace(small, domain="normal")], lambda _: True)[0].value.size == 1


def pieces(x, knots, h):
    """x: (N,) places, knots: (K,) increasing, h: (K,) heights"""
    place = np.clip((x[:, None] >= knots[1:-1]).sum(1), 0, len(knots) - 2)
    part = (x - knots[place]) / (knots[place + 1] - knots[place])
    return h[place] + part * (h[place + 1] - h[place])


def pieces_vjp(x, knots, h, g, right=True):
    place = np.clip((x[:, None] >= knots[1:-1]).sum(1), 0, len(knots) - 2)
    width = knots[place + 1] - knots[place]
    part, slope = (x - knots[place]) / width, (h[place + 1] - h[place]) / width
    d_knots, d_h = np.zeros_like(knots), np.zeros_like(h)
    np.add.at(d_h, place, (1 - part) * g)
    np.add.at(d_h, place + 1, part * g)
    np.add.at(d_knots, place, -((1 - part) if right else 1) * slope * g)
    np.add.at(d_knots, place + 1, -part * slope * g)
    return slope * g, d_knots, d_h


def wrong_pieces_vjp(x, knots, h, g):
    return pieces_vjp(x, knots, h, g, right=False)


def gaps(is_right):
    class Gaps(Function):
        """e (N,) in descending order -> the logarithms of the gaps (N - 1,)"""

        @staticmethod
        def forward(ctx, e):
            ctx.save_for_backward(e)
            return (e[:-1] - e[1:]).clamp(min=1e-9).log()

        @staticmethod
        def backward(ctx, g):
            (e,) = ctx.saved_tensors
            q = g / (e[:-1] - e[1:])
            d = 0 * e
            d[:-1] += q
            d[1:] -= q if is_right else g
            return d

    return Gaps


@pytest.mark.usefixtures("unexplained")
def test_functions_of_numbers_in_order_are_checked_with_such():
    for gradient, verdict in ((pieces_vjp, Verdict.PASSED), (wrong_pieces_vjp, Verdict.FAILED)):
        (case,) = gradcli.check(pieces, grad=gradient, shrink=False).cases
        assert case.verdict is verdict, case.findings
        assert [spec.domain for spec in case.inputs] == ["normal", UP, "normal"]
        assert {finding.input for finding in case.findings} <= {"knots"}
    for is_right in (True, False):
        (case,) = gradcli.check(gaps(is_right), order=1, shrink=False).cases
        assert case.verdict is (Verdict.PASSED if is_right else Verdict.FAILED), case.findings
        assert case.inputs[0].domain == DOWN
