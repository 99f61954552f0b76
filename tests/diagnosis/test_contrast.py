"""A wrong gradient is called right when or for something only where its error would show, at several inputs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gradcli
from gradcli import engine
from gradcli.engine.autograd import Function
from gradcli.results import CheckResult

pytestmark = pytest.mark.usefixtures("uncorrected")

SIGNS = np.array([[0.7, -1.2, 1.9, -0.4], [-1.1, 0.6, -0.9, 1.5], [2.1, 1.3, -0.8, -1.7]])
PLAIN = np.random.default_rng(3).standard_normal((4, 4))
ALL_ONES = "right when grad_output is all ones"


UNREAD = """
class Unread(Function):
    @staticmethod
    def forward(ctx, x):
        return x * 1

    @staticmethod
    def backward(ctx, g):
        return 0.7 * g + 0.3 * g.flip(0)
"""


def checked(function: Any, *values: np.ndarray) -> CheckResult:
    given = tuple(engine.tensor(v.tolist(), dtype=engine.float64, requires_grad=True) for v in values)
    return gradcli.check(function, given, order=1, shrink=False).cases[0]


def message(function: Any, *values: np.ndarray) -> str:
    case = checked(function, *values)
    assert case.verdict.value == "failed"
    return case.findings[0].message


def blurred(share: float) -> Any:
    """x, with grad_output averaged with its mirror image: right where all entries are equal."""

    class Blurred(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 1

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return (1 - share) * g + share * g.flip(0)

    return Blurred


def projected(share: float) -> Any:
    """x, less a part along its signs: right for ones only where as many entries are positive as negative."""

    class Projected(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x * 1

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (x,) = ctx.saved_tensors
            signs = x.sign()
            return g - share * signs * (signs * g).sum(-1, keepdim=True) / 4

    return Projected


def of_symmetric(share: float) -> Any:
    """sum(x³) of a matrix, its gradient made symmetric in part."""

    class OfSymmetric(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return (x**3).sum()

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (x,) = ctx.saved_tensors
            own = 3 * g * x**2
            return own + share * (own.mT - own) / 2

    return OfSymmetric


@pytest.mark.parametrize("make", [blurred, projected, of_symmetric])
def test_right_ones_pass(make: Any) -> None:
    assert checked(make(0.0), SIGNS if make is projected else PLAIN).verdict.value == "passed"


def test_right_for_ones_at_all_inputs_is_said() -> None:
    """Without source no edit of backward explains it better."""
    names: dict[str, Any] = {"Function": Function}
    exec(UNREAD, names)
    assert ALL_ONES in message(names["Unread"], PLAIN)


def test_right_for_ones_by_accident_is_not_said() -> None:
    assert ALL_ONES not in message(projected(0.5), SIGNS)
    assert ALL_ONES not in message(projected(0.5), SIGNS[:1])


def test_an_error_near_the_resolution_is_called_right_for_nothing() -> None:
    assert ALL_ONES not in message(blurred(4e-7), PLAIN)
    assert "is right for" not in message(of_symmetric(4e-7), PLAIN)


def test_right_for_some_changes_is_said_of_a_clear_error() -> None:
    assert "is right for symmetric changes of x alone" in message(of_symmetric(1.0), PLAIN)


SHARES = """
class Shares(Function):
    @staticmethod
    def forward(ctx, x):
        p = x.abs() / x.abs().sum(1, keepdim=True)
        ctx.save_for_backward(p, x)
        return p * 1

    @staticmethod
    def backward(ctx, g):
        p, x = ctx.saved_tensors
        total = x.abs().sum(1, keepdim=True)
        return USED * (g - (g * p).sum(1, keepdim=True)) * x.sign() / total
"""


@pytest.mark.parametrize(("used", "verdict"), [("1", "passed"), ("(1 + p.roll(1, 1))", "failed")])
def test_nothing_is_said_of_ones_for_which_the_gradient_vanishes(used: str, verdict: str) -> None:
    """The sum of shares is 1, whatever x is: a wrong factor of the gradient does not show for equal grad_outputs."""
    names: dict[str, Any] = {"Function": Function}
    exec(SHARES.replace("USED", used), names)
    case = checked(names["Shares"], PLAIN)
    assert case.verdict.value == verdict
    assert not any(ALL_ONES in finding.message for finding in case.findings)


def test_right_for_ones_is_not_said_where_most_entries_are_right() -> None:
    names: dict[str, Any] = {"Function": Function, "cat": engine.cat}
    exec(
        UNREAD.replace("0.7 * g + 0.3 * g.flip(0)", "cat([g[:, :3], 0.7 * g[:, 3:] + 0.3 * g[:, 3:].flip(0)], 1)"),
        names,
    )
    said = message(names["Unread"], PLAIN)
    assert ALL_ONES not in said
    assert "wrong only" in said


MIXED = """
class Mixed(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return FORWARD

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return BACKWARD
"""
DENSE = "tensor([[1.0, 2, -1, 4], [3, -2, 5, 1], [2, 7, 1, -3], [-4, 1, 6, 2]])"


@pytest.mark.parametrize(
    ("forward", "right", "wrong", "says"),
    [
        ("x.sin()", "g * x.cos()", "g[[1, 0, 3, 2]] * x.cos()", "mixes up the entries of grad_output, such as "
         "grad_output[1, 0] in the place of grad_output[0, 0] for x[0, 0]"),
        ("x.sin()", "g * x.cos()", "(g + g.mean()) / 2 * x.cos()", "uses grad_output of outputs that do not depend on "
         "the entry, such as grad_output[0, 1] for x[0, 0]"),
        ("x.sin() + x.roll(1, 0)", "g * x.cos() + g.roll(-1, 0)", "g * (x.cos() + 1)", "leaves out grad_output of "
         "outputs that depend on the entry, such as grad_output[1, 0] for x[0, 0]"),
        (f"{DENSE} @ x", f"{DENSE}.mT @ g", f"{DENSE}.mT @ g[[1, 0, 3, 2]]", None),
    ],
)  # fmt: skip
def test_how_grad_output_is_misused_is_said_where_the_jacobian_shows_it(
    forward: str, right: str, wrong: str, says: str | None
) -> None:
    """Where all outputs of a column depend on an entry, other weights would do the same as another order."""

    def made(backward: str) -> Any:
        names: dict[str, Any] = {"Function": Function, "tensor": lambda rows: engine.tensor(rows, dtype=engine.float64)}
        exec(MIXED.replace("FORWARD", forward).replace("BACKWARD", backward), names)
        return names["Mixed"]

    assert checked(made(right), PLAIN).verdict.value == "passed"
    said = message(made(wrong), PLAIN)
    assert ALL_ONES in said
    assert ("backward" in said) is (says is not None)
    assert says is None or said.endswith(says)
