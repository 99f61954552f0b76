"""The frameworks that are installed, and Functions to plant mistakes in."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from typing import Any

from gradcli import engine


def frameworks() -> list[Any]:
    """The engine, and torch where it is installed."""
    if importlib.util.find_spec("torch") is None:
        return [engine]
    import torch

    return [engine, torch]


def scaled(torch: Any, factor: float) -> Any:
    """x * x with `factor` * x as its derivative."""

    class Square(torch.autograd.Function):  # type: ignore[misc]  # the framework is a parameter
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (x,) = ctx.saved_tensors
            return g * x * factor

    return Square.apply


def cut(torch: Any) -> Any:
    """x * x with the right derivative, of which the second leaves the graph."""

    class Cut(torch.autograd.Function):  # type: ignore[misc]  # the framework is a parameter
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x.detach())
            return x * x

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (x,) = ctx.saved_tensors
            return g * 2 * x

    return Cut.apply


def doubled(torch: Any, pull_back: Callable[[Any], Any], *, materialize: bool = True) -> Any:
    """x * 2 with a backward of one's own; without `materialize` it may be given None."""

    class Doubled(torch.autograd.Function):  # type: ignore[misc]  # the framework is a parameter
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.set_materialize_grads(materialize)
            return x * 2

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return pull_back(g)

    return Doubled.apply
