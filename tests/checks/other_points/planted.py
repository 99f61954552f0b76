"""Functions with a derivative that is right at modest inputs and wrong at others."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Formula = Callable[[Any, Any], Any]


Derivative = Callable[[Any, Any, Any], Any]


MODEST = [0.6, 1.2, 0.9, 1.7, 0.3]


@dataclass(frozen=True, slots=True, kw_only=True)
class Planted:
    """A function and a derivative that is right at `given` alone; `wrong` says at which values it is not."""

    forward: Formula
    backward: Derivative
    wrong: Callable[[float], bool]
    given: tuple[float, ...] = tuple(MODEST)


PLANTED = {
    "ELU, negative branch": Planted(
        forward=lambda ns, x: ns.where(x > 0, x, ns.exp(x) - 1),
        backward=lambda ns, x, g: ns.where(x > 0, g, 0.3 * g),
        wrong=lambda v: v <= 0,
    ),
    "leaky relu, slope ignored": Planted(
        forward=lambda ns, x: ns.where(x > 0, x, 0.1 * x),
        backward=lambda ns, x, g: ns.where(x > 0, g, 0.0 * g),
        wrong=lambda v: v <= 0,
    ),
    "magnitude, sign forgotten": Planted(
        forward=lambda ns, x: ns.abs(x) * x * x, backward=lambda ns, x, g: 3 * x * x * g, wrong=lambda v: v < 0
    ),
    "softplus, threshold": Planted(
        forward=lambda ns, x: ns.where(x > 20, x, ns.log(1 + ns.exp(ns.clamp(x, max=20.0)))),
        backward=lambda ns, x, g: ns.where(x > 20, 0.0 * g, g * ns.sigmoid(x)),
        wrong=lambda v: v > 20,
        given=(0.6, -1.2, 0.9, -1.7, 2.3),
    ),
    "clamp, outside lets through": Planted(
        forward=lambda ns, x: ns.clamp(x, -3.0, 3.0), backward=lambda ns, x, g: g * 1.0, wrong=lambda v: abs(v) > 3
    ),
    "Huber, beyond delta": Planted(
        forward=lambda ns, x: ns.where(ns.abs(x) < 2, 0.5 * x * x, 2 * ns.abs(x) - 2),
        backward=lambda ns, x, g: x * g,
        wrong=lambda v: abs(v) >= 2,
    ),
    "sinc at zero": Planted(
        forward=lambda ns, x: ns.where(x == 0, 0.0 * x + 1, ns.sin(x) / ns.where(x == 0, 0.0 * x + 1, x)),
        backward=lambda ns, x, g: (
            g
            * ns.where(
                x == 0, 0.0 * x + 1, (ns.cos(x) * x - ns.sin(x)) / ns.where(x == 0, 0.0 * x + 1, x * x)
            )
        ),
        wrong=lambda v: v == 0,
    ),
    "quotient at zero": Planted(
        forward=lambda ns, x: x * x * x,
        backward=lambda ns, x, g: g * 3 * x**4 / x**2,
        wrong=lambda v: v == 0,
    ),
    "beyond a hundred": Planted(
        forward=lambda ns, x: x * x, backward=lambda ns, x, g: ns.where(ns.abs(x) > 100, g, 2 * x * g),
        wrong=lambda v: abs(v) > 100,
    ),
    "series near zero": Planted(
        forward=lambda ns, x: ns.where(ns.abs(x) < 0.01, x + x**3 / 3, ns.tan(x)),
        backward=lambda ns, x, g: g * ns.where(ns.abs(x) < 0.01, 0.5 + x * x, 1 + ns.tan(x) ** 2),
        wrong=lambda v: abs(v) < 0.01,
    ),
    "logarithm, small branch": Planted(
        forward=lambda ns, x: ns.where(ns.abs(x) < 0.05, x - x * x / 2, ns.log(1 + ns.abs(x))),
        backward=lambda ns, x, g: ns.where(ns.abs(x) < 0.05, g, g * ns.sign(x) / (1 + ns.abs(x))),
        wrong=lambda v: abs(v) < 0.05,
    ),
    "hinge, margin": Planted(
        forward=lambda ns, x: ns.where(x < 2.5, (2.5 - x) ** 2, 0.0 * x),
        backward=lambda ns, x, g: 2 * (x - 2.5) * g,
        wrong=lambda v: v > 2.5,
    ),
    "saturation, large branch": Planted(
        forward=lambda ns, x: ns.where(ns.abs(x) > 8, 2 * x, ns.tanh(x)),
        backward=lambda ns, x, g: g * (1 - ns.tanh(x) ** 2),
        wrong=lambda v: abs(v) > 8,
    ),
    "rational, wrong below minus one": Planted(
        forward=lambda ns, x: 1 / (1 + x * x),
        backward=lambda ns, x, g: ns.where(x < -0.9, 2 * x * g, -2 * x * g) / (1 + x * x) ** 2,
        wrong=lambda v: v < -0.9,
    ),
    "one and a half at one": Planted(
        forward=lambda ns, x: x * x * x, backward=lambda ns, x, g: g * ns.where(x == 1, 4.5, 3 * x * x),
        wrong=lambda v: v == 1,
    ),
}  # fmt: skip


def function_of(ns: Any, forward: Formula, backward: Derivative) -> Any:
    class Planted(ns.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return forward(ns, x)

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return backward(ns, x, g)

    return Planted
