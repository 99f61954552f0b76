"""Functions of two formulas with a small jump between them, at inputs on one side of it; and wrong ones.

Which formula is used is a branch of Python code, for all entries together. Beside the jump the function is smooth, and
its gradient is that of the formula in use: an error that the jump would excuse in a solver is a mistake here.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from benchmarks.correct.draws import Draw, within
from benchmarks.correct.specimen import Collection
from gradcli import engine

BRANCHES = Collection("branches")
Formula = Callable[[Any, Any], Any]
MISTAKE = 1 + 3e-4
"""The factor of a wrong gradient."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Branch:
    """Two formulas `f(ns, x)` with their slopes: the first where all entries lie below `edge`, else the second."""

    name: str
    edge: float
    below: Formula
    above: Formula
    slope_below: Formula
    slope_above: Formula
    draws: tuple[Draw, ...]


_ROOT = math.sqrt(2 * math.pi)


def _mills(ns: Any, x: Any) -> Any:
    """The asymptotic series of log Φ below zero."""
    return -x * x / 2 - ns.log(-x * _ROOT) + ns.log(1 - 1 / (x * x) + 3 / (x * x * x * x))


def _mills_slope(ns: Any, x: Any) -> Any:
    s = 1 - 1 / (x * x) + 3 / (x * x * x * x)
    return -x - 1 / x + (2 / (x * x * x) - 12 / (x * x * x * x * x)) / s


def _phi(ns: Any, x: Any) -> Any:
    return 0.5 * (1 + ns.erf(x / math.sqrt(2)))


BRANCHED = (
    Branch(
        name="log of the normal distribution",
        edge=-3.0,
        below=_mills,
        above=lambda ns, x: ns.log(_phi(ns, x)),
        slope_below=_mills_slope,
        slope_above=lambda ns, x: ns.exp(-x * x / 2) / (_ROOT * _phi(ns, x)),
        draws=(within(-4.5, -3.3, 3), within(-2.8, -1.5, 3)),
    ),
    Branch(
        name="log1p by its series",
        edge=0.25,
        below=lambda ns, x: x - x * x / 2 + x * x * x / 3,
        above=lambda ns, x: ns.log(1 + x),
        slope_below=lambda ns, x: 1 - x + x * x,
        slope_above=lambda ns, x: 1 / (1 + x),
        draws=(within(0.15, 0.24, 3), within(0.26, 0.5, 3)),
    ),
    Branch(
        name="sine over x by its series",
        edge=1.0,
        below=lambda ns, x: 1 - x * x / 6 + x * x * x * x / 120,
        above=lambda ns, x: ns.sin(x) / x,
        slope_below=lambda ns, x: -x / 3 + x * x * x / 30,
        slope_above=lambda ns, x: (ns.cos(x) - ns.sin(x) / x) / x,
        draws=(within(0.6, 0.95, 3), within(1.05, 1.6, 3)),
    ),
    Branch(
        name="a tariff with a fee",
        edge=1.0,
        below=lambda ns, x: 0.2 * x,
        above=lambda ns, x: 0.201 + 0.3 * (x - 1),
        slope_below=lambda ns, x: 0.2 + 0 * x,
        slope_above=lambda ns, x: 0.3 + 0 * x,
        draws=(within(0.6, 0.95, 2), within(1.05, 1.6, 2)),
    ),
    Branch(
        name="softplus with a threshold",
        edge=6.0,
        below=lambda ns, x: ns.log(1 + ns.exp(x)),
        above=lambda ns, x: 1 * x,
        slope_below=lambda ns, x: ns.exp(x) / (1 + ns.exp(x)),
        slope_above=lambda ns, x: 1 + 0 * x,
        draws=(within(4.0, 5.8, 3), within(6.2, 8.0, 3)),
    ),
    Branch(
        name="friction in a pipe",
        edge=2.0,
        below=lambda ns, x: 64 / (1000 * x),
        above=lambda ns, x: 0.0321 * (x / 2) ** -0.25,
        slope_below=lambda ns, x: -0.064 / (x * x),
        slope_above=lambda ns, x: -0.25 * 0.0321 / 2 * (x / 2) ** -1.25,
        draws=(within(1.4, 1.95, 3), within(2.05, 3.0, 3)),
    ),
    Branch(
        name="gain with a dead band",
        edge=0.5,
        below=lambda ns, x: 0.999 * ns.tanh(x),
        above=lambda ns, x: ns.tanh(x),
        slope_below=lambda ns, x: 0.999 * (1 - ns.tanh(x) ** 2),
        slope_above=lambda ns, x: 1 - ns.tanh(x) ** 2,
        draws=(within(0.3, 0.48, 3), within(0.52, 0.9, 3)),
    ),
)


def function(ns: Any, branch: Branch, *, factor: float = 1.0) -> Any:
    """The function as a Function of PyTorch or of the engine, with its gradient times a factor."""

    class Branching(ns.autograd.Function):  # type: ignore[misc]
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            if float(x.max()) < branch.edge:
                y = branch.below(ns, x)
            else:
                y = branch.above(ns, x)
            return y

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (x,) = ctx.saved_tensors
            if float(x.max()) < branch.edge:
                slope = branch.slope_below(ns, x)
            else:
                slope = branch.slope_above(ns, x)
            return factor * g * slope

    Branching.__name__ = Branching.__qualname__ = "".join(c for c in branch.name.title() if c.isalnum())
    return Branching


for branch in BRANCHED:
    for side, draw in zip(("below", "above"), branch.draws, strict=True):
        BRANCHES.add(function(torch, branch), draw, name=f"{branch.name}, {side}")
    BRANCHES.add(
        function(engine, branch),
        lambda rng, draw=branch.draws[0]: draw(rng).detach().numpy(),
        name=f"{branch.name} on the engine",
        unproved="written once with the one of PyTorch, which is proved",
    )
