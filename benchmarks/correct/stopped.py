"""Iterations stopped early whose backward, by the implicit function theorem, can be differentiated; and wrong ones.

Every solver is written once for PyTorch and for the engine. The solution is saved as an output, so that the second
derivative goes through backward again. A bisection between zero and a bound that moves with the input is, between two
of its decisions, a fixed fraction of that bound: its values rise between their jumps by a slope of their own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from benchmarks.correct.draws import Draw, normal, spd, within
from benchmarks.correct.specimen import Collection
from gradcli import engine

STOPPED = Collection("stopped")
Body = Callable[..., Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Solver:
    """An iteration: `body(ns, tolerance, *inputs)`, its `vjp(ns, g, y, *inputs)`, and the exact solution in PyTorch."""

    name: str
    body: Body
    vjp: Body
    draws: tuple[Draw, ...]
    reference: Callable[..., Any]


def bisected(ns: Any, tolerance: float, x: Any) -> Any:
    """The cube root between 0 and 1 + x."""
    low, high = ns.zeros_like(x), 1 + x
    for _ in range(200):
        if (high - low).max() <= tolerance:
            break
        middle = (low + high) / 2
        above = middle * middle * middle > x
        high, low = ns.where(above, middle, high), ns.where(above, low, middle)
    return (low + high) / 2


def bisected_one_by_one(ns: Any, tolerance: float, x: Any) -> Any:
    """The same in Python's own numbers, until the residual is small enough."""
    return ns.tensor([_residual_bisection(v, tolerance) for v in x.tolist()], dtype=ns.float64)


def _residual_bisection(v: float, tolerance: float) -> float:
    low, high = 0.0, 1 + v
    middle = (low + high) / 2
    for _ in range(200):
        middle = (low + high) / 2
        if abs(middle**3 - v) <= tolerance:
            break
        low, high = (low, middle) if middle**3 > v else (middle, high)
    return middle


def newton(ns: Any, tolerance: float, x: Any) -> Any:
    """The root of y + exp y = x, until the residual is small enough."""
    y = ns.ones_like(x)
    for _ in range(100):
        if (y + ns.exp(y) - x).abs().max() <= tolerance:
            break
        y = y - (y + ns.exp(y) - x) / (1 + ns.exp(y))
    return y


def secant(ns: Any, tolerance: float, x: Any) -> Any:
    """The real root of y³ + y = x, until the step is small enough."""
    a, b = ns.ones_like(x), 1.3 * ns.ones_like(x)
    before, here = a * a * a + a - x, b * b * b + b - x
    for _ in range(100):
        change = here - before
        step = ns.where(change == 0, ns.zeros_like(x), here * (b - a) / ns.where(change == 0, ns.ones_like(x), change))
        a, before, b = b, here, b - step
        here = b * b * b + b - x
        if step.abs().max() <= tolerance:
            break
    return b


def fixed_point(ns: Any, tolerance: float, x: Any) -> Any:
    """y = 0.1 + x cos(y) / 2."""
    y = 0.5 * ns.ones_like(x)
    for _ in range(500):
        step = 0.1 + 0.5 * x * ns.cos(y) - y
        y = y + step
        if step.abs().max() <= tolerance:
            break
    return y


def anderson(ns: Any, tolerance: float, x: Any) -> Any:
    """The same, each step mixed with the one before."""
    old = 0.5 * ns.ones_like(x)
    y = 0.1 + 0.5 * x * ns.cos(old)
    left = y - old
    for _ in range(100):
        now = 0.1 + 0.5 * x * ns.cos(y) - y
        change = now - left
        if now.abs().max() <= tolerance or float((change * change).sum()) == 0:
            break
        share = (now * change).sum() / (change * change).sum()
        old, left, y = y, now, (y + now) - share * ((y + now) - (old + left))
    return y


def conjugate_gradients(ns: Any, tolerance: float, a: Any, b: Any) -> Any:
    """The solution of a x = b."""
    x, r = ns.zeros_like(b), b
    p, rho = r, (r * r).sum()
    for _ in range(100):
        if rho <= tolerance**2 * (b * b).sum():
            break
        q = a @ p
        alpha = rho / (p * q).sum()
        x, r = x + alpha * p, r - alpha * q
        rho, old = (r * r).sum(), rho
        p = r + rho / old * p
    return x


def solved(ns: Any, g: Any, y: Any, a: Any, b: Any) -> Any:
    """The gradients of a solution."""
    w = ns.linalg.solve(a.t(), g)
    return -w.reshape(-1, 1) * y.reshape(1, -1), w + 0 * b


def heron(ns: Any, tolerance: float, x: Any) -> Any:
    """The square root of x by Heron's rule."""
    y = 1 + 0 * x
    for _ in range(100):
        step = (x / y - y) / 2
        y = y + step
        if step.abs().max() <= tolerance * y.abs().min():
            break
    return y


LAYER = (np.random.default_rng(3).normal(size=(6, 6)) / 6).tolist()
"""The weights of a layer: it shrinks distances, so that it has one fixed point."""


def layer(ns: Any, tolerance: float, x: Any) -> Any:
    """The fixed point of z = tanh(W z + x), as in a deep equilibrium model. All entries stop together."""
    w, z = ns.tensor(LAYER, dtype=ns.float64), ns.zeros_like(x)
    for _ in range(500):
        step = ns.tanh(w @ z + x) - z
        z = z + step
        if step.abs().max() <= tolerance:
            break
    return z


def _through_layer(ns: Any, g: Any, y: Any, _x: Any) -> Any:
    w, slope = ns.tensor(LAYER, dtype=ns.float64), 1 - y * y
    return ns.linalg.solve(ns.eye(len(LAYER), dtype=ns.float64) - w.t() * slope, g) * slope


def _layer(x: Any) -> Any:
    w, z = torch.tensor(LAYER, dtype=torch.float64), torch.zeros_like(x)
    for _ in range(200):
        z = torch.tanh(w @ z + x)
    return z


def _lambert(x: Any) -> Any:
    y = torch.zeros_like(x.detach())
    for _ in range(60):
        y = y - (y + torch.exp(y) - x) / (1 + torch.exp(y))
    return y


def _fixed(x: Any) -> Any:
    y = 0.5 * torch.ones_like(x)
    for _ in range(200):
        y = 0.1 + 0.5 * x * torch.cos(y)
    return y


def _cubic(x: Any) -> Any:
    y = torch.ones_like(x)
    for _ in range(60):
        y = y - (y**3 + y - x) / (3 * y * y + 1)
    return y


def _cube(ns: Any, g: Any, y: Any, _x: Any) -> Any:
    return g / (3 * y * y)


def _cosine(ns: Any, g: Any, y: Any, x: Any) -> Any:
    return g * 0.5 * ns.cos(y) / (1 + 0.5 * x * ns.sin(y))


def _root(x: Any) -> Any:
    return x ** (1 / 3)


SOLVERS = (
    Solver(name="bisection", body=bisected, vjp=_cube, draws=(within(0.3, 4, 4),), reference=_root),
    Solver(
        name="bisection by number", body=bisected_one_by_one, vjp=_cube, draws=(within(0.3, 4, 4),), reference=_root
    ),
    Solver(
        name="Newton",
        body=newton,
        vjp=lambda ns, g, y, x: g / (1 + ns.exp(y)),
        draws=(within(-1, 3, 4),),
        reference=_lambert,
    ),
    Solver(
        name="secant",
        body=secant,
        vjp=lambda ns, g, y, x: g / (3 * y * y + 1),
        draws=(within(0.5, 3, 3),),
        reference=_cubic,
    ),
    Solver(name="fixed point", body=fixed_point, vjp=_cosine, draws=(within(0.3, 1.2, 4),), reference=_fixed),
    Solver(name="Anderson", body=anderson, vjp=_cosine, draws=(within(0.3, 1.2, 4),), reference=_fixed),
    Solver(
        name="conjugate gradients",
        body=conjugate_gradients,
        vjp=solved,
        draws=(spd(3, 0.3, 3), normal(3)),
        reference=torch.linalg.solve,
    ),
    Solver(
        name="Heron",
        body=heron,
        vjp=lambda ns, g, y, x: g / (2 * y),
        draws=(within(0.4, 5, 4),),
        reference=torch.sqrt,
    ),
    Solver(name="layer", body=layer, vjp=_through_layer, draws=(normal(6),), reference=_layer),
)


MISTAKES: dict[str, float] = {"half too much": 1.5, "a tenth too much": 1.1, "sign": -1.0}
"""First-order mistakes: factors of the right gradient."""


def function(ns: Any, solver: Solver, tolerance: float, *, factor: float = 1.0, constant: bool = False) -> Any:
    """The solver as a Function of PyTorch or of the engine.

    Args:
        ns: `torch` or `gradcli.engine`.
        solver: the solver.
        tolerance: where it stops.
        factor: what backward is spoilt by.
        constant: keep the solution as a constant, so that the second derivative lacks its share.
    """

    class Stopped(ns.autograd.Function):  # type: ignore[misc]
        @staticmethod
        def forward(ctx: Any, *inputs: Any) -> Any:
            y = solver.body(ns, tolerance, *inputs)
            ctx.save_for_backward(y, *inputs)
            return y

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            y, *inputs = ctx.saved_tensors
            found = solver.vjp(ns, g, y.detach() if constant else y, *inputs)
            return tuple(factor * each for each in (found if isinstance(found, tuple) else (found,)))

    Stopped.__name__ = Stopped.__qualname__ = "".join(c for c in solver.name.title() if c.isalnum())
    return Stopped


for tolerance in (1e-8, 1e-6, 1e-4):
    for solver in SOLVERS:
        STOPPED.add(
            function(torch, solver, tolerance),
            *solver.draws,
            name=f"{solver.name} to {tolerance:g}, differentiable",
            reference=solver.reference,
            tolerance=1e-2,
        )
for solver in SOLVERS:
    STOPPED.add(
        function(engine, solver, 1e-6),
        *((lambda rng, draw=draw: draw(rng).detach().numpy()) for draw in solver.draws),
        name=f"{solver.name} on the engine",
        unproved="written once with the one of PyTorch, which is proved",
    )
