"""Outputs that are empty at all sizes, and those that are so because an input is short."""

from typing import Any

import pytest

import gradcli
from gradcli import engine
from gradcli.verdict import Verdict


def marked(factor: float) -> type:
    """The cosine, and a token without entries."""

    class Marked(engine.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return engine.cos(x), engine.zeros(0, dtype=x.dtype)

        @staticmethod
        def backward(ctx: Any, g: Any, _: Any) -> Any:
            (x,) = ctx.saved_tensors
            return -factor * g * engine.sin(x)

    return Marked


def parted(factor: float) -> type:
    """The first three rows, and the cubes of the others."""

    class Parted(engine.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x[:3] * 1, x[3:] ** 3

        @staticmethod
        def backward(ctx: Any, head: Any, tail: Any) -> Any:
            (x,) = ctx.saved_tensors
            return engine.cat([head, 3 * factor * tail * x[3:] ** 2], 0)

    return Parted


@pytest.mark.parametrize("factor", [1.0, 1.01])
@pytest.mark.parametrize("target", [marked, parted])
def test_an_output_is_empty_only_by_design(target: Any, factor: float, unexplained: None) -> None:
    case = gradcli.check(target(factor), shrink=False, order=1).cases[0]
    assert case.verdict is (Verdict.PASSED if factor == 1.0 else Verdict.FAILED), case.error
