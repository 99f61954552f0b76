"""The line that is shown is where a wrong value was calculated, not where it was passed on."""

import ast

import pytest

import gradcli
from gradcli.diagnosis.code.ancestry import Ancestry
from gradcli.verdict import Verdict

BACKWARD = """
def backward(ctx, g):
    x, w = ctx.saved_tensors
    h = x * 2  # shared
    d = w.sin()  # d
    buffer = ctx.zeros(5)
    for i in range(3):
        buffer[i] = d * h  # buffer
    dx = buffer[1:-1]
    dw = h * x.cos()  # dw
    return dx, dw, g.sum()
"""


def line_of(mark):
    return next(number for number, line in enumerate(BACKWARD.strip().splitlines(), 1) if line.endswith(f"# {mark}"))


@pytest.fixture
def ancestry():
    tree = ast.parse(BACKWARD.strip()).body[0]
    return Ancestry(tree, range(1, 30))


def value(text):
    return ast.parse(text, mode="eval").body


@pytest.mark.parametrize(
    ("text", "mark"),
    [
        ("g * d", "d"),
        ("-d", "d"),
        ("dx", "buffer"),
        ("buffer[1:-1]", "buffer"),
        ("g * dw", "dw"),
        ("d + g", None),
        ("d * h", None),
        ("g * x", None),
        ("d.sum()", None),
    ],
)
def test_what_passes_a_value_on_is_not_where_it_comes_from(ancestry, text, mark):
    found = ancestry.source_of(value(text))
    assert (None if found is None else found.lineno) == (None if mark is None else line_of(mark))


def test_several_wrong_values_come_from_what_they_share(ancestry):
    wrong = [value("dx"), value("dw")]
    assert ancestry.shared(wrong, [value("g.sum()")]).lineno == line_of("shared")
    assert ancestry.shared(wrong, [value("h")]) is None


AGAIN = """
def backward(ctx, g):
    x, w = [each.detach() for each in ctx.saved_tensors]
    y = x.sin() * w  # y
    scaled = g * 2  # scaled
    gx, gw = torch.autograd.grad(y, (x, w), g)  # both
    other = torch.autograd.grad(y, x, scaled)  # other
    return gx, gw * 2, other
"""


def test_what_autodiff_returns_comes_from_what_it_differentiates_unless_it_is_exchanged():
    ancestry = Ancestry(ast.parse(AGAIN.strip()).body[0], range(1, 30))
    lines = {line.partition("# ")[2]: number for number, line in enumerate(AGAIN.strip().splitlines(), 1)}

    def source(text, **options):
        found = ancestry.source_of(value(text), **options)
        return None if found is None else found.lineno

    assert source("gx") == source("torch.autograd.grad(y, (x, w), g)") == lines["y"]
    assert source("gx", is_exchanged=True) == lines["both"]
    assert source("gw * 2") is None
    assert source("other") == lines["other"]


CUBES = """
import {framework} as torch
from {framework}.autograd import Function


class Scaled(Function):
    @staticmethod
    def forward(ctx, x, w, b):
        ctx.save_for_backward(x, w)
        return x.sin() * w.sin() * (x * w).cos() + b

    @staticmethod
    def backward(ctx, g):
        x, w = ctx.saved_tensors
        angle = {angle}  # here
        of_x = x.cos() * w.sin() * angle.cos() - x.sin() * w.sin() * w * angle.sin()
        of_w = x.sin() * w.cos() * angle.cos() - x.sin() * w.sin() * x * angle.sin()
        return g * of_x, g * of_w, g
"""


@pytest.mark.sampled(2)
@pytest.mark.parametrize("framework", ["gradcli.engine", "torch"])
@pytest.mark.parametrize(
    ("angle", "verdict"),
    [
        ("x * w", Verdict.PASSED),
        ("(x * w).tanh() + (x * w) ** 3 / 7", Verdict.FAILED),
        ("x * w + 0.01 * (x * w).tanh() * (3 * w).sin()", Verdict.FAILED),
    ],
)
def test_a_value_that_spoils_several_gradients_is_located(framework, angle, verdict, tmp_path):
    pytest.importorskip(framework.partition(".")[0])
    text = CUBES.format(framework=framework, angle=angle)
    path = tmp_path / f"scaled_{framework[-5:]}_{len(angle)}.py"
    path.write_text(text)
    shapes = {name: {"shape": [3, 4]} for name in "xwb"}
    (case,) = gradcli.check(f"{path}:Scaled", shapes, order=1, samples=1, shrink=False).cases
    assert case.verdict is verdict
    line = next(number for number, line in enumerate(text.splitlines(), 1) if line.endswith("# here"))
    assert verdict is Verdict.PASSED or line in {finding.location.line for finding in case.findings}


WOVEN = """
import {framework} as torch
from {framework}.autograd import Function


class Woven(Function):
    @staticmethod
    def forward(ctx, even, odd, order=(1, 0)):
        ctx.order = tuple(order)
        pairs = torch.stack((even, odd), -1)
        return pairs[..., list(order)].flatten(1)

    @staticmethod
    def backward(ctx, g):
        pairs = {pairs}
        places = {places}
        return pairs[{first}], pairs[{second}], None
"""
LAST, MIDDLE = ("..., places[0]", "..., places[1]"), (":, places[0]", ":, places[1]")


@pytest.mark.sampled(4)
@pytest.mark.parametrize("framework", ["gradcli.engine", "torch"])
@pytest.mark.parametrize(
    ("pairs", "places", "index", "wrong"),
    [
        ("g.reshape(g.shape[0], -1, 2)", "[ctx.order.index(k) for k in range(2)]", LAST, None),
        ("g.reshape(g.shape[0], 2, -1)", "[ctx.order.index(k) for k in range(2)]", MIDDLE, "pairs ="),
        ("g.reshape(g.shape[0], -1, 2)", "[1 - ctx.order.index(k) for k in range(2)]", LAST, "places ="),
    ],
)
def test_exchanged_gradients_come_from_an_index_and_other_wrong_ones_from_values(
    framework, pairs, places, index, wrong, tmp_path
):
    pytest.importorskip(framework.partition(".")[0])
    text = WOVEN.format(framework=framework, pairs=pairs, places=places, first=index[0], second=index[1])
    path = tmp_path / f"woven_{framework[-5:]}_{wrong and wrong[:-2]}.py"
    path.write_text(text)
    shapes = {"even": {"shape": [3, 4]}, "odd": {"shape": [3, 4]}}
    (case,) = gradcli.check(f"{path}:Woven", shapes, order=1, samples=1, shrink=False).cases
    assert case.verdict is (Verdict.PASSED if wrong is None else Verdict.FAILED)
    shown = {text.splitlines()[finding.location.line - 1].strip() for finding in case.findings}
    assert wrong is None or (len(shown) == 1 and shown.pop().startswith(wrong))
