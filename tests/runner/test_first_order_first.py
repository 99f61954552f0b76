"""A second derivative that is wrong keeps no error of the first one out of the report."""

from pathlib import Path

import pytest

import gradcli
from gradcli.results import CheckResult

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
