"""A wrong second derivative says that the first one is right only where that is seen at the same inputs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import gradcli
from gradcli import engine
from gradcli.engine.autograd import Function
from gradcli.results import CheckResult

RAY = '''
import {framework} as torch
from {framework}.autograd import Function

class Ray(Function):
    """origin: (N, 3), direction: (N, 3), center: (N, 3), radius: (N,) positive"""

    @staticmethod
    def forward(ctx, origin, direction, center, radius):
        oc = origin - center
        a, b = (direction * direction).sum(-1), (oc * direction).sum(-1)
        disc = b * b - a * ((oc * oc).sum(-1) - radius**2)
        hit = disc > 0
        root = torch.sqrt(torch.where(hit, disc, torch.ones_like(disc)))
        t = torch.where(hit, (-b - root) / a, torch.zeros_like(a))
        ctx.save_for_backward(origin, direction, center, radius, t, hit)
        return t

    @staticmethod
    def backward(ctx, g):
        o, d, c, r, t, hit = ctx.saved_tensors
        p = o + t[:, None] * d - c
        dF = (p * d).sum(-1)
        k = torch.where(hit, g / torch.where(hit, dF, torch.ones_like(dF)), torch.zeros_like(g))
        go = -k[:, None] * p
        return go, go * {share}, -go, k * r
'''


@pytest.mark.sampled(2)
@pytest.mark.parametrize("framework", ["gradcli.engine", "torch"])
@pytest.mark.parametrize(("share", "verdict"), [("1", "failed"), ("t[:, None]", "passed")])
def test_a_first_derivative_that_is_zero_at_the_inputs_is_not_called_right(
    framework: str, share: str, verdict: str, tmp_path: Path
) -> None:
    pytest.importorskip(framework)
    file = tmp_path / "ray.py"
    file.write_text(RAY.replace("{framework}", framework).replace("{share}", share))
    case = gradcli.check(f"{file}:Ray").cases[0]
    assert case.verdict.value == verdict
    assert not any("first derivative is right" in finding.message for finding in case.findings)


class Slope(Function):
    """3 x² with a wrong derivative."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return 3 * x**2

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        (x,) = ctx.saved_tensors
        return 7 * g * x


class Cube(Function):
    """x³, whose first derivative is right."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        (x,) = ctx.saved_tensors
        return g * Slope.apply(x)


def test_a_first_derivative_that_is_right_is_called_so() -> None:
    x = engine.tensor([0.5, -1.5, 2.0], dtype=engine.float64, requires_grad=True)
    (finding,) = gradcli.check(Cube, (x,)).cases[0].findings
    assert finding.message.startswith("the first derivative is right at these inputs, but")


RECOMPUTED = """
import {framework} as torch
from {framework}.autograd import Function

class Recomputed(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.exp()

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        with torch.enable_grad():
            inner = {inner}
            (gradient,) = torch.autograd.grad(inner.exp(), inner, g{options})
        return gradient
"""
CUT = "calls autograd.grad without create_graph=True at line 16"


@pytest.mark.sampled(4)
@pytest.mark.parametrize("framework", ["gradcli.engine", "torch"])
@pytest.mark.parametrize(
    ("inner", "options", "says"),
    [
        ("x.detach().requires_grad_()", "", CUT),
        ("x * 1", "", CUT),
        ("x.detach().requires_grad_()", ", create_graph=True", "backward detaches at line 15"),
        ("x * 1", ", create_graph=True", None),
    ],
)
def test_a_pass_inside_of_backward_that_is_not_recorded_is_named(
    framework: str, inner: str, options: str, says: str | None, tmp_path: Path
) -> None:
    pytest.importorskip(framework)
    file = tmp_path / "recomputed.py"
    text = RECOMPUTED.replace("{framework}", framework).replace("{inner}", inner).replace("{options}", options)
    file.write_text(text)
    case = gradcli.check(f"{file}:Recomputed", {"x": {"shape": [3]}}, order=2).cases[0]
    assert case.verdict.value == ("passed" if says is None else "failed"), case
    assert says is None or any(says in finding.message for finding in case.findings), case.findings


ONCE = ["not-twice-differentiable"]
SCALED = """
from {framework} import exp
from {framework}.autograd import Function

class Scaled(Function):
    @staticmethod
    def forward(ctx, x, double=False):
        y = exp(x)
        ctx.save_for_backward(y)
        ctx.double = double
        return 2 * y if double else y * 1

    @staticmethod
    def backward(ctx, g):
        (y,) = ctx.saved_tensors
        return {returned}, None
"""
GATE = """
from {framework} import sigmoid
from {framework}.autograd import Function

class Gate(Function):
    @staticmethod
    def forward(ctx, x):
        y = x * sigmoid(x)
        ctx.save_for_backward(x, y)
        return y / 2

    @staticmethod
    def backward(ctx, g):
        x, y = ctx.saved_tensors
        s = {gate}
        return g * (y + s * (1 - y)) / 2
"""
SWITCHED = """
from {framework} import exp
from {framework}.autograd import Function

class Slope(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return 3 * x ** 2

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 7 * g * x

class Switched(Function):
    @staticmethod
    def forward(ctx, x, odd=True):
        ctx.save_for_backward(x)
        ctx.odd = odd
        return x ** 3 if odd else x ** 3 + x

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        slope = Slope.apply(x)
        return g * (slope if ctx.odd else {other}), None
"""


def checked(folder: Path, source: str, name: str) -> CheckResult:
    file = folder / "first_order.py"
    file.write_text(source)
    return gradcli.check(f"{file}:{name}", shrink=False).cases[0]


@pytest.mark.parametrize("framework", ["gradcli.engine", "torch"])
@pytest.mark.parametrize(("returned", "first"), [("g * y * (2 if ctx.double else 1)", []), ("g * y", ["wrong-factor"])])
def test_a_flag_is_tried_where_the_second_derivative_is_cut_off(
    framework: str, returned: str, first: list[str], tmp_path: Path
) -> None:
    pytest.importorskip(framework)
    case = checked(tmp_path, SCALED.format(framework=framework, returned=returned), "Scaled")
    assert [(f.kind.value, f.order) for f in case.findings] == [*((kind, 1) for kind in first), (*ONCE, 2)]
    assert {a.name: a.value for a in case.arguments}.get("double", False) is bool(first)


@pytest.mark.parametrize("framework", ["gradcli.engine", "torch"])
@pytest.mark.parametrize(("gate", "first"), [("sigmoid(x)", []), ("y / x", ["non-finite-gradient"])])
def test_other_inputs_are_tried_where_the_second_derivative_is_cut_off(
    framework: str, gate: str, first: list[str], tmp_path: Path
) -> None:
    pytest.importorskip(framework)
    case = checked(tmp_path, GATE.format(framework=framework, gate=gate), "Gate")
    assert [f.kind.value for f in case.findings] == [*first, *ONCE]


@pytest.mark.parametrize("framework", ["gradcli.engine", "torch"])
@pytest.mark.parametrize(("other", "wrong"), [("slope + 1", False), ("slope", True)])
def test_the_first_derivative_is_called_right_only_where_it_was_checked(
    framework: str, other: str, wrong: bool, tmp_path: Path
) -> None:
    pytest.importorskip(framework)
    case = checked(tmp_path, SWITCHED.format(framework=framework, other=other), "Switched")
    higher = case.findings[-1]
    assert [f.order for f in case.findings] == ([1, 2] if wrong else [2])
    assert higher.kind.value == "wrong-second-order"
    assert ("the first derivative is right at these inputs, but" in higher.message) is not wrong
    assert ("also where the first derivative is right" in higher.message) is wrong


def test_what_raises_at_other_inputs_does_not_make_up_for_the_failure(tmp_path: Path) -> None:
    returned = "g * y / (1 if not ctx.double else undefined)"
    case = checked(tmp_path, SCALED.format(framework="gradcli.engine", returned=returned), "Scaled")
    assert case.verdict.value == "failed"
    assert [f.kind.value for f in case.findings] == ONCE
