"""Sizes that documentation or the source fixes, and those that follow from others."""

import pytest

from gradcli.inputs.hints.documented_shapes import documented_shapes
from gradcli.inputs.hints.fixed_sizes import departures, fixed_sizes, with_composed
from gradcli.inputs.hints.source_hints import SourceHints

DOCUMENTED = [
    ("p: (N, 3)", (4, 3), {3}),
    ("p: (..., 3)", (4, 5, 3), {3}),
    ("p: (3, ...)", (3, 4, 5), {3}),
    ("p: (N, 3, 3)", (4, 3, 3), {3}),
    ("p: (N, 3)", (4, 5), set()),
    ("p: (N, 3)", (3,), set()),
    ("p: (N, C)", (4, 3), set()),
]
SOURCES = [
    ("x, y, z = p.unbind(-1)", {3}),
    ("x, y, z = torch.unbind(p, dim=1)", {3}),
    ("x, y, z = p.T", {3}),
    ("x, y, z = p", {3}),
    ("assert p.shape[-1] == 3", {3}),
    ("assert p.dim() == 2 and p.size(-1) == 3, 'points'", {3}),
    ("if p.shape[1] != 3:\n    raise ValueError", {3}),
    ("n, c = p.shape\nassert c == 3", {3}),
    ("n = p.shape[0]\nassert n == 4", {4}),
    ("assert p.shape[1:] == (3,)", {3}),
    ("assert len(p.shape) == 3", set()),
    ("assert p.ndim == 3", set()),
    ("x, y, z = ctx.saved_tensors", set()),
    ("x, *rest = p", set()),
    ("a, b = p.chunk(2, -1)", set()),
    ("y = p * 3 if p.shape[1] == 3 else p", set()),
    ("if p.shape[1] == 3:\n    p = p * 2", set()),
]


@pytest.mark.parametrize(("text", "shape", "sizes"), DOCUMENTED)
def test_numbers_in_documented_shapes_are_fixed(text, shape, sizes):
    hints = SourceHints(forward="", backward="", gradients=(), documented=documented_shapes(["p"], "", text))
    assert fixed_sizes(hints, {"p": shape}) == sizes


@pytest.mark.parametrize(("text", "sizes"), SOURCES)
@pytest.mark.parametrize("place", ["forward", "backward"])
def test_numbers_that_the_source_unpacks_or_demands_are_fixed(text, sizes, place):
    hints = SourceHints(**{"forward": "", "backward": "", "gradients": (), place: text})
    assert fixed_sizes(hints, {"p": (4, 3)}) == sizes


def test_sums_and_products_of_sizes_follow_them():
    text = "x: (N, H), w: (2 * H, N + 1)"
    hints = SourceHints(forward="", backward="", gradients=(), documented=documented_shapes(["x", "w"], "", text))
    shapes = {"x": (3, 4), "w": (8, 4)}
    assert with_composed(hints, shapes, {3: 4, 4: 5, 8: 9}) == {3: 4, 4: 5, 8: 10}
    assert with_composed(hints, {"x": (3, 5), "w": (10, 4)}, {3: 4, 5: 6}) == {3: 4, 5: 6, 10: 12, 4: 5}
    assert with_composed(hints, shapes, {3: 5, 4: 5, 8: 9}) is None


def test_a_formula_of_names_without_an_axis_gets_a_size_that_it_can_have():
    text = "x: (N, 2 * H), w: (2 * H,), v: (H + 1, k * m)"
    shapes = documented_shapes(["x", "w", "v"], "", text)
    hints = SourceHints(forward="", backward="", gradients=(), documented=shapes)
    given = {"x": (3, 6), "w": (6,), "v": (4, 8)}
    assert with_composed(hints, given, {3: 6, 6: 3}) == {3: 6, 6: 4, 4: 3, 8: 8}
    assert with_composed(hints, given, {6: 7, 8: 10}, {"m": 4}) == {6: 8, 4: 5, 8: 12}
    assert departures(hints, given) == set()
    assert departures(hints, {**given, "x": (3, 5)}) >= {"2 * H"}
    assert departures(hints, {**given, "v": (5, 8)}) >= {"2 * H", "H + 1"}
    assert departures(hints, given, {"m": 3}) >= {"k * m"}


@pytest.mark.parametrize(("shape", "is_kept"), [((4, 6), True), ((6, 8), True), ((4, 7), False), ((6, 4), True)])
def test_an_even_size_stays_even(shape, is_kept):
    hints = SourceHints(forward="", backward="", gradients=(), documented={"x": ("N", "2 * D_per_2")})
    assert (departures(hints, {"x": shape}) == set()) is is_kept
