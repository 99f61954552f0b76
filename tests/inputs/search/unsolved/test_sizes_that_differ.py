"""A backward that raises at unequal sizes is checked at equal ones, and a note says so."""

from typing import Any

import pytest

import gradcli


def overlap(ns: Any, *, is_right: bool) -> type:
    """A loss of rows with two numbers, whose gradient broadcasts a vector of rows along the wrong axis."""

    class Overlap(ns.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, labels: Any, p: Any, smooth: Any) -> Any:
            ctx.save_for_backward(x, labels)
            ctx.p, ctx.smooth = p, smooth
            return (x * x * labels * p).sum(1) + smooth

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            x, labels = ctx.saved_tensors
            return 2 * ctx.p * x * labels * (g[:, None] if is_right else g), None, None, None

    return Overlap


def total(ns: Any, *, is_right: bool) -> type:
    """The same mistake along the first axis, without numbers."""

    class Total(ns.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x.sin().sum(1)

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (x,) = ctx.saved_tensors
            return x.cos() * (g.reshape(-1, 1) if is_right else g)

    return Total


@pytest.mark.parametrize("backend", ["engine", "torch"], indirect=True)
@pytest.mark.parametrize("program", [overlap, total])
def test_sizes_that_backward_needs_equal_are_told(ns: Any, program: Any) -> None:
    (case,) = gradcli.check(program(ns, is_right=False), order=1, samples=1, shrink=False).cases
    assert case.findings
    (note,) = [each for each in case.notes if each.startswith("forward also accepts -i x=3x4")]
    assert note.endswith("so they are not checked (it runs where two axes of x have the same size)")
    (case,) = gradcli.check(program(ns, is_right=True), order=1, samples=1, shrink=False).cases
    assert case.verdict is gradcli.Verdict.PASSED
    assert not any("the same size" in each for each in case.notes)
