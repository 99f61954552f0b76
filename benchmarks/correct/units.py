"""Functions whose outputs come in units many decades apart, so that one's gradient is nothing beside another's.

Each is written once for PyTorch and for the engine. `vjp` weighs the outputs: with ones the gradient is right, with
`wrong` it is off in outputs whose derivatives are more than four decades below the largest.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from benchmarks.correct.draws import Draw, at, within
from benchmarks.correct.specimen import Collection
from gradcli import engine

UNITS = Collection("units")
Numbers = tuple[float, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Scaled:
    """A function of one vector: `body(ns, x)`, and `vjp(ns, g, x)` linear in g; `wrong` weighs the entries of g.

    `seen` says that the mistake can be seen: no rounding of the output's own value hides it.
    """

    name: str
    body: Callable[[Any, Any], Any]
    vjp: Callable[[Any, Any, Any], Any]
    draw: Draw
    wrong: Numbers
    seen: bool = True


def _numbers(ns: Any, *values: float) -> Any:
    return ns.tensor(np.array(values))


_MIXED = ((1.0, 0.3, -0.2), (0.5, -1.0, 0.4), (0.2, 0.7, 1.1))
_DECADES = (1e12, 1.0, 1e-9)
_PHYSICS = (2.99792458e8, 1.380649e-23, 6.62607015e-34)


def _matrix(ns: Any) -> Any:
    return ns.tensor(np.array(_DECADES)[:, None] * np.array(_MIXED))


def _softmax(ns: Any, x: Any) -> Any:
    e = ns.exp(x - x.max())
    return e / e.sum()


def _softmax_vjp(ns: Any, g: Any, x: Any) -> Any:
    y = _softmax(ns, x)
    return y * (g - (g * y).sum())


def _residuals(ns: Any, x: Any) -> Any:
    """A pressure in pascals, a fraction and a concentration, of the same three unknowns."""
    pressure, fraction = 1e7 * (x * x).sum() - 3e6, x[0] * x[1] - x[2]
    return ns.stack([pressure, fraction, 1e-8 * (ns.sin(x[0]) * x[2] + x[1])])


def _residuals_vjp(ns: Any, g: Any, x: Any) -> Any:
    one = ns.ones_like(x[0])
    fraction = ns.stack([x[1], x[0], -one])
    return 2e7 * x * g[0] + fraction * g[1] + 1e-8 * ns.stack([ns.cos(x[0]) * x[2], one, ns.sin(x[0])]) * g[2]


def _discs(ns: Any, x: Any) -> tuple[Any, Any, Any]:
    """The distances of points from the centres of three soft discs, how much of a point each covers, and the rest."""
    points = ns.tensor(np.array([[0, 0], [1, 1], [2, 3], [0, 5], [1, 5], [2, 5]]) * 1.0)
    d = points[:, :1] - x.reshape(1, -1)
    aside = points[:, 1:] - _numbers(ns, 0.960351, 0.674265, 0.466358).reshape(1, -1)
    covered = 1 / (1 + ns.exp((d * d + aside * aside - 1) / 0.5))
    return d, covered, 1 - covered


def _union(ns: Any, x: Any) -> Any:
    """How much of every point the discs cover together, as in a soft rasteriser."""
    _, _, rest = _discs(ns, x)
    return 1 - rest[:, 0] * rest[:, 1] * rest[:, 2]


def _union_vjp(ns: Any, g: Any, x: Any) -> Any:
    d, covered, rest = _discs(ns, x)
    others = ns.stack([rest[:, 1] * rest[:, 2], rest[:, 0] * rest[:, 2], rest[:, 0] * rest[:, 1]], 1)
    return (g.reshape(-1, 1) * others * covered * rest * 4 * d).sum(0)


SCALED = (
    Scaled(
        name="sines in three units",
        body=lambda ns, x: _numbers(ns, *_DECADES) * ns.sin(x),
        vjp=lambda ns, g, x: g * _numbers(ns, *_DECADES) * ns.cos(x),
        draw=within(0.2, 1.2, 3),
        wrong=(1, 1, 1.1),
    ),
    Scaled(
        name="mixtures in three units",
        body=lambda ns, x: _matrix(ns) @ ns.sin(x),
        vjp=lambda ns, g, x: (_matrix(ns).t() @ g) * ns.cos(x),
        draw=within(0.2, 1.2, 3),
        wrong=(1, 1, 1.1),
    ),
    Scaled(
        name="exponentials of large spread",
        body=lambda ns, x: ns.exp(x),
        vjp=lambda ns, g, x: g * ns.exp(x),
        draw=at(28.0, 1.0, -20.0, -3.0),
        wrong=(1, 1, 1.01, 1),
    ),
    Scaled(
        name="polynomials in mixed units",
        body=lambda ns, x: _numbers(ns, 3e10, 2.0, 4e-8) * (x * x * x + x),
        vjp=lambda ns, g, x: g * _numbers(ns, 3e10, 2.0, 4e-8) * (3 * x * x + 1),
        draw=within(0.5, 2, 3),
        wrong=(1, 1, 0.9),
    ),
    Scaled(
        name="softmax with a tail",
        body=_softmax,
        vjp=_softmax_vjp,
        draw=at(0.0, 1.0, -24.0, 2.0),
        wrong=(1, 1, 1.1, 1),
    ),
    Scaled(
        name="physical constants",
        body=lambda ns, x: _numbers(ns, *_PHYSICS) * x * ns.exp(-0.1 * x),
        vjp=lambda ns, g, x: g * _numbers(ns, *_PHYSICS) * (1 - 0.1 * x) * ns.exp(-0.1 * x),
        draw=within(1, 6, 3),
        wrong=(1, 1.01, 1),
    ),
    Scaled(
        name="residuals in mixed units",
        body=_residuals,
        vjp=_residuals_vjp,
        draw=within(0.3, 1.4, 3),
        wrong=(1, 1, -1),
    ),
    Scaled(
        name="a stiff spring beside soft ones",
        body=lambda ns, x: _numbers(ns, 1e10, 1.0, 1.0) * (x * x * x + x),
        vjp=lambda ns, g, x: g * _numbers(ns, 1e10, 1.0, 1.0) * (3 * x * x + 1),
        draw=within(0.5, 2, 3),
        wrong=(1, 1, 1.0001),
    ),
    Scaled(
        name="rectifiers in three units",
        body=lambda ns, x: _numbers(ns, *_DECADES) * ns.relu(x),
        vjp=lambda ns, g, x: g * _numbers(ns, *_DECADES) * (x > 0),
        draw=within(0.2, 1.2, 3),
        wrong=(1, 1, 0),
    ),
    Scaled(
        name="a small change of a large value",
        body=lambda ns, x: _numbers(ns, 0.0, 0.0, 1e4) + _numbers(ns, *_DECADES) * ns.sin(x),
        vjp=lambda ns, g, x: g * _numbers(ns, *_DECADES) * ns.cos(x),
        draw=within(0.2, 1.2, 3),
        wrong=(1, 1, 1.1),
        seen=False,
    ),
    Scaled(
        name="probabilities next to one",
        body=lambda ns, x: 1 / (1 + ns.exp(-x)),
        vjp=lambda ns, g, x: g * ns.exp(-x) / (1 + ns.exp(-x)) ** 2,
        draw=at(0.3, 36.5, -2.0),
        wrong=(1, 1.1, 1),
        seen=False,
    ),
)


TAILS = (
    Scaled(
        name="log of a sigmoid",
        body=lambda ns, x: -ns.log1p(ns.exp(-x)),
        vjp=lambda ns, g, x: g * (1 - 1 / (1 + ns.exp(-x))),
        draw=at(0.5, 90.0, -3.0),
        wrong=(1, 1, 1),
    ),
    Scaled(
        name="softplus",
        body=lambda ns, x: ns.log1p(ns.exp(x)),
        vjp=lambda ns, g, x: g * (1 - 1 / (1 + ns.exp(x))),
        draw=at(0.5, -60.0, 3.0),
        wrong=(1, 1, 1),
    ),
    Scaled(
        name="a union of soft discs",
        body=_union,
        vjp=_union_vjp,
        draw=within(-0.2, 0.4, 3),
        wrong=(1, 1, 1, 1, 1, 1, 1),
    ),
)
"""Right to rounding of what they are nearer to zero: far out in the tail the gradient or the value is lost in 1 - 1."""


def function(ns: Any, scaled: Scaled, *, spoilt: bool = False, hidden: bool = False) -> Any:
    """The function as a Function of PyTorch or of the engine.

    Args:
        ns: `torch` or `gradcli.engine`.
        scaled: the function.
        spoilt: whether the outputs are weighed in backward.
        hidden: whether forward's body is out of autodiff's sight.
    """
    if hidden and ns is torch:

        def body(x: Any) -> Any:
            with torch.no_grad():
                return scaled.body(ns, x)
    elif hidden:

        def body(x: Any) -> Any:
            return scaled.body(ns, x.detach())
    else:

        def body(x: Any) -> Any:
            return scaled.body(ns, x)

    class Scaling(ns.autograd.Function):  # type: ignore[misc]
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return body(x)

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (x,) = ctx.saved_tensors
            return scaled.vjp(ns, g * _numbers(ns, *scaled.wrong) if spoilt else g, x)

    Scaling.__name__ = Scaling.__qualname__ = "".join(c for c in scaled.name.title() if c.isalnum())
    return Scaling


for scaled in (*SCALED, *TAILS):
    UNITS.add(function(torch, scaled), scaled.draw, name=scaled.name)
    UNITS.add(
        function(engine, scaled),
        lambda rng, draw=scaled.draw: draw(rng).detach().numpy(),
        name=f"{scaled.name} on the engine",
        unproved="written once with the one of PyTorch, which is proved",
    )
