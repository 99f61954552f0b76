"""Functions that are right at order 1 and wrong at order 2, in the ways in which people get it wrong."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch.autograd import Function

Body = Callable[[torch.Tensor], torch.Tensor]


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """A function of one entry with its first and second derivative."""

    value: Body
    slope: Body
    bend: Body


CURVES: dict[str, Curve] = {
    "sine": Curve(value=torch.sin, slope=torch.cos, bend=lambda x: -torch.sin(x)),
    "exponential": Curve(value=torch.exp, slope=torch.exp, bend=torch.exp),
    "square": Curve(value=lambda x: x * x, slope=lambda x: 2 * x, bend=lambda x: 2 + 0 * x),
    "cube": Curve(value=lambda x: x**3, slope=lambda x: 3 * x * x, bend=lambda x: 6 * x),
    "tanh": Curve(
        value=torch.tanh,
        slope=lambda x: 1 - torch.tanh(x) ** 2,
        bend=lambda x: -2 * torch.tanh(x) * (1 - torch.tanh(x) ** 2),
    ),
    "softplus": Curve(
        value=torch.nn.functional.softplus,
        slope=torch.sigmoid,
        bend=lambda x: torch.sigmoid(x) * torch.sigmoid(-x),
    ),
    "Gauss": Curve(
        value=lambda x: torch.exp(-x * x),
        slope=lambda x: -2 * x * torch.exp(-x * x),
        bend=lambda x: (4 * x * x - 2) * torch.exp(-x * x),
    ),
    "arctangent": Curve(value=torch.arctan, slope=lambda x: 1 / (1 + x * x), bend=lambda x: -2 * x / (1 + x * x) ** 2),
    "cosine of squares": Curve(
        value=lambda x: torch.cos(x * x),
        slope=lambda x: -2 * x * torch.sin(x * x),
        bend=lambda x: -2 * torch.sin(x * x) - 4 * x * x * torch.cos(x * x),
    ),
    "rational": Curve(
        value=lambda x: x / (1 + x * x),
        slope=lambda x: (1 - x * x) / (1 + x * x) ** 2,
        bend=lambda x: 2 * x * (x * x - 3) / (1 + x * x) ** 3,
    ),
}


def detached(curve: Curve) -> type[Function]:
    """The saved input is detached in backward."""

    class Detached(Function):
        @staticmethod
        def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
            ctx.save_for_backward(x)
            return curve.value(x)

        @staticmethod
        def backward(ctx: Any, g: torch.Tensor) -> torch.Tensor:
            (x,) = ctx.saved_tensors
            return g * curve.slope(x.detach())

    return Detached


def intermediate(curve: Curve) -> type[Function]:
    """The slope is computed in forward and kept on ctx."""

    class Intermediate(Function):
        @staticmethod
        def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
            ctx.slope = curve.slope(x)
            return curve.value(x)

        @staticmethod
        def backward(ctx: Any, g: torch.Tensor) -> torch.Tensor:
            return g * ctx.slope

    return Intermediate


def saved_intermediate(curve: Curve) -> type[Function]:
    """The slope is computed in forward and saved, which does not keep its history either."""

    class SavedIntermediate(Function):
        @staticmethod
        def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
            ctx.save_for_backward(curve.slope(x))
            return curve.value(x)

        @staticmethod
        def backward(ctx: Any, g: torch.Tensor) -> torch.Tensor:
            (slope,) = ctx.saved_tensors
            return g * slope

    return SavedIntermediate


def data(curve: Curve) -> type[Function]:
    """Backward reads .data."""

    class Data(Function):
        @staticmethod
        def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
            ctx.save_for_backward(x)
            return curve.value(x)

        @staticmethod
        def backward(ctx: Any, g: torch.Tensor) -> torch.Tensor:
            return g * curve.slope(ctx.saved_tensors[0].data)

    return Data


def through_numpy(curve: Curve) -> type[Function]:
    """Backward leaves for NumPy and does not say so."""

    class ThroughNumpy(Function):
        @staticmethod
        def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
            ctx.save_for_backward(x)
            return curve.value(x)

        @staticmethod
        def backward(ctx: Any, g: torch.Tensor) -> torch.Tensor:
            slope = curve.slope(ctx.saved_tensors[0]).detach().numpy()
            return g * torch.from_numpy(slope)

    return ThroughNumpy


def half_detached(curve: Curve) -> type[Function]:
    """Half of the slope keeps its history."""

    class HalfDetached(Function):
        @staticmethod
        def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
            ctx.save_for_backward(x)
            return curve.value(x)

        @staticmethod
        def backward(ctx: Any, g: torch.Tensor) -> torch.Tensor:
            slope = curve.slope(ctx.saved_tensors[0])
            return g * (slope + slope.detach()) / 2

    return HalfDetached


def wrong_double(error: float) -> Callable[[Curve], type[Function]]:
    """Backward applies a Function of its own, whose backward is wrong by a factor."""

    def plant(curve: Curve) -> type[Function]:
        class Slope(Function):
            @staticmethod
            def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
                ctx.save_for_backward(x)
                return curve.slope(x)

            @staticmethod
            def backward(ctx: Any, g: torch.Tensor) -> torch.Tensor:
                return g * curve.bend(ctx.saved_tensors[0]) * (1 + error)

        class WrongDouble(Function):
            @staticmethod
            def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
                ctx.save_for_backward(x)
                return curve.value(x)

            @staticmethod
            def backward(ctx: Any, g: torch.Tensor) -> torch.Tensor:
                return g * Slope.apply(ctx.saved_tensors[0])

        return WrongDouble

    return plant


def cut_cotangent(curve: Curve) -> type[Function]:
    """The cotangent is detached, so that the derivative by it is lost."""

    class CutCotangent(Function):
        @staticmethod
        def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
            ctx.save_for_backward(x)
            return curve.value(x)

        @staticmethod
        def backward(ctx: Any, g: torch.Tensor) -> torch.Tensor:
            return g.detach() * curve.slope(ctx.saved_tensors[0])

    return CutCotangent


MISTAKES: dict[str, Callable[[Curve], type[Function]]] = {
    "detached": detached,
    "intermediate on ctx": intermediate,
    "intermediate saved": saved_intermediate,
    ".data": data,
    "NumPy in backward": through_numpy,
    "half detached": half_detached,
    "cotangent detached": cut_cotangent,
    "sign of the double backward": wrong_double(-2.0),
    "double backward off by 1e-2": wrong_double(1e-2),
    "double backward off by 1e-4": wrong_double(1e-4),
    "double backward off by 1e-6": wrong_double(1e-6),
}


def planted() -> Iterator[tuple[str, str, type[Function]]]:
    """Every mistake in every curve, with the names of both."""
    for mistake, plant in MISTAKES.items():
        for name, curve in CURVES.items():
            yield mistake, name, plant(curve)
