"""Making a Function of several arguments from a forward and a vjp, in PyTorch or in NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.autograd import Function
from torch.autograd.function import once_differentiable

from benchmarks.correct.draws import Draw
from benchmarks.correct.specimen import Collection


def in_torch(body: Callable[..., Any], vjp: Callable[..., Any]) -> type[Function]:
    """`vjp(g, y, *inputs)` returns one gradient for each argument; inputs and output are saved."""

    class General(Function):
        @staticmethod
        def forward(ctx, *inputs):
            y = body(*inputs)
            ctx.places = [i for i, value in enumerate(inputs) if isinstance(value, torch.Tensor)]
            ctx.inputs = [None if isinstance(value, torch.Tensor) else value for value in inputs]
            ctx.save_for_backward(y, *(inputs[i] for i in ctx.places))
            return y

        @staticmethod
        def backward(ctx, grad_output):
            y, *tensors = ctx.saved_tensors
            inputs = list(ctx.inputs)
            for place, saved in zip(ctx.places, tensors, strict=True):
                inputs[place] = saved
            return vjp(grad_output, y, *inputs)

    return General


def in_numpy(body: Callable[..., Any], vjp: Callable[..., Any]) -> type[Function]:
    """The same on arrays, in both directions."""

    class General(Function):
        @staticmethod
        def forward(ctx, *inputs):
            ctx.arrays = [value.detach().numpy() if isinstance(value, torch.Tensor) else value for value in inputs]
            ctx.result = body(*ctx.arrays)
            return torch.as_tensor(ctx.result).clone()

        @staticmethod
        @once_differentiable
        def backward(ctx, grad_output):
            found = vjp(grad_output.numpy(), ctx.result, *ctx.arrays)
            found = found if isinstance(found, tuple) else (found,)
            return tuple(None if g is None else torch.as_tensor(g) for g in found)

    return General


def general(
    collection: Collection,
    name: str,
    body: Callable[..., Any],
    vjp: Callable[..., Any],
    *draws: Draw,
    numpy: bool = False,
    once: bool = False,
    **more: Any,
) -> None:
    """Add a Function of all these draws; those on arrays need a reference in PyTorch."""
    function = (in_numpy if numpy else in_torch)(body, vjp)
    if once and not numpy:
        function.backward = staticmethod(once_differentiable(function.backward))
    function.__name__ = function.__qualname__ = "".join(c for c in name.title() if c.isalnum())
    more.setdefault("order", 1 if numpy or once else 2)
    more.setdefault("witnessed", not numpy)
    if not {"reference", "unproved"} & more.keys():
        more["reference"] = body
    collection.add(function, *draws, name=name, **more)
