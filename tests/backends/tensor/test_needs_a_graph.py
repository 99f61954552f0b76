"""Callables that run only where a graph is recorded, and exceptions at the given point."""

from typing import Any

import pytest

import gradcli
from gradcli.verdict import Verdict


def leaf(ns: Any) -> Any:
    return ns.tensor([0.5, -1.25, 2.0], dtype=ns.float64, requires_grad=True)


def hooked(factor: float) -> Any:
    """Squares; a hook on the intermediate multiplies its gradient by `factor`."""

    def forward(x: Any) -> Any:
        y = x * x
        y.register_hook(lambda gradient: gradient * factor)
        return y + 1

    return forward


def test_a_hook_on_an_intermediate_is_no_edge_of_a_domain(ns: Any) -> None:
    assert gradcli.check(hooked(1.0), (leaf(ns),), shrink=False).verdict is Verdict.PASSED


def test_a_hook_that_changes_the_gradient_fails(ns: Any) -> None:
    (case,) = gradcli.check(hooked(3.0), (leaf(ns),), shrink=False).cases
    assert [finding.kind.value for finding in case.findings] == ["wrong-factor"]
    assert case.findings[0].factor == "3"


def test_a_gradient_taken_inside_forward_is_no_edge_of_a_domain(ns: Any) -> None:
    def slope(x: Any) -> Any:
        (found,) = ns.autograd.grad((x * x * x).sum(), x, create_graph=True)
        return found

    assert gradcli.check(slope, (leaf(ns),), shrink=False).verdict is Verdict.PASSED


@pytest.mark.parametrize("factor", [1.0, 1.01])
def test_forward_may_ask_whether_a_gradient_is_required(ns: Any, factor: float) -> None:
    """Values that are computed without one would lie on another branch, and look like a jump."""

    class Affine(ns.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, bias: Any) -> Any:
            ctx.save_for_backward(x)
            return x * x + bias if bias.requires_grad else x * x

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (x,) = ctx.saved_tensors
            return 2 * factor * x * g, g if ctx.needs_input_grad[1] else None

    (case,) = gradcli.check(Affine, (leaf(ns), leaf(ns)), order=1, shrink=False).cases
    assert [finding.input for finding in case.findings] == (["x"] if factor != 1.0 else []), case
    assert not any("jump" in note for check in case.evidence for note in [check.note or ""])


def test_what_is_raised_at_the_given_point_is_an_error(ns: Any) -> None:
    calls = []

    def worn_out(x: Any) -> Any:
        calls.append(x)
        if len(calls) > 4:
            raise RuntimeError("the connection is closed")
        return x * x

    (case,) = gradcli.check(worn_out, (leaf(ns),), only=("gradient",), shrink=False).cases
    assert case.verdict is Verdict.ERROR
    assert "the connection is closed" in str(case.error)


def test_an_edge_of_the_domain_close_by_is_none_of_the_users_errors(ns: Any) -> None:
    def half_line(x: Any) -> Any:
        if float(x.detach().min()) < -1.25:
            raise ValueError("expected entries of -1.25 or more")
        return x * x

    (case,) = gradcli.check(half_line, (leaf(ns),), shrink=False).cases
    assert case.verdict is not Verdict.ERROR
    assert case.verdict is not Verdict.FAILED
