"""Making a Function of one entry: both styles of Function, PyTorch or NumPy inside, saving the input or the output."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.autograd import Function
from torch.autograd.function import once_differentiable

from benchmarks.correct.draws import Draw
from benchmarks.correct.specimen import Collection

Body = Callable[[Any], Any]


def with_context(forward_body: Body, slope: Body, from_output: bool) -> type[Function]:
    """A Function whose forward takes ctx."""

    class Elementwise(Function):
        @staticmethod
        def forward(ctx, x):
            y = forward_body(x)
            ctx.save_for_backward(y if from_output else x)
            return y

        @staticmethod
        def backward(ctx, grad_output):
            (saved,) = ctx.saved_tensors
            return grad_output * slope(saved)

    return Elementwise


def with_setup(forward_body: Body, slope: Body, from_output: bool) -> type[Function]:
    """A Function with setup_context."""

    class Elementwise(Function):
        @staticmethod
        def forward(x):
            return forward_body(x)

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(output if from_output else inputs[0])

        @staticmethod
        def backward(ctx, grad_output):
            (saved,) = ctx.saved_tensors
            return slope(saved) * grad_output

    return Elementwise


def with_arrays(forward_body: Body, slope: Body, from_output: bool) -> type[Function]:
    """A Function that leaves PyTorch for NumPy in both directions, and says so."""

    class Elementwise(Function):
        @staticmethod
        def forward(ctx, x):
            y = torch.from_numpy(forward_body(x.detach().numpy()))
            ctx.save_for_backward(y if from_output else x)
            return y

        @staticmethod
        @once_differentiable
        def backward(ctx, grad_output):
            (saved,) = ctx.saved_tensors
            return grad_output * torch.from_numpy(slope(saved.numpy()))

    return Elementwise


def array_forward(forward_body: Body, slope: Body, from_output: bool) -> type[Function]:
    """A Function with NumPy in forward and a differentiable backward."""

    class Elementwise(Function):
        @staticmethod
        def forward(ctx, x):
            y = torch.from_numpy(forward_body(x.detach().numpy()))
            ctx.save_for_backward(y if from_output else x)
            return y

        @staticmethod
        def backward(ctx, grad_output):
            (saved,) = ctx.saved_tensors
            return grad_output * slope(saved)

    return Elementwise


MAKERS = {"ctx": with_context, "setup": with_setup, "numpy": with_arrays, "numpy forward": array_forward}


def entry(
    collection: Collection,
    name: str,
    forward_body: Body,
    slope: Body,
    formula: Body | None,
    *draws: Draw,
    style: str | None = None,
    from_output: bool = False,
    **more: Any,
) -> None:
    """Add a Function of one entry, once for each draw."""
    style = style or ("ctx", "setup")[len(collection.found) % 2]
    function = MAKERS[style](forward_body, slope, from_output)
    function.__name__ = function.__qualname__ = name.title().replace(" ", "").replace("-", "")
    more.setdefault("order", 1 if style == "numpy" else 2)
    for number, draw in enumerate(draws):
        told = name if number == 0 else f"{name} ({number + 1})"
        collection.add(function, draw, name=told, witnessed=not style.startswith("numpy"), formula=formula, **more)
