"""Initial value problems solved by SciPy to its loose default tolerance, with the derivative of the exact solution.

An integrator that adapts its steps goes on without a jump where it takes one more step, but with another error: the
solution is right to a thousandth, its derivative to a percent. Each is written once for PyTorch and for the engine;
the wrong twins differ by a factor.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from scipy.integrate import solve_ivp

from benchmarks.correct.draws import within
from benchmarks.correct.specimen import Collection
from gradcli import engine

INTEGRATORS = Collection("integrators")


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """y' = rate(y, r) from y at 0 to 1, its exact solution, and that solution's derivatives by y and r."""

    name: str
    rate: Callable[[Any, float], Any]
    solution: Callable[[Any, Any, Any], Any]
    slopes: Callable[[Any, Any, Any], tuple[Any, Any]]
    method: str = "RK45"


def _logistic_slopes(ns: Any, y: Any, r: Any) -> tuple[Any, Any]:
    e = ns.exp(r)
    below = (1 + y * (e - 1)) ** 2
    return e / below, y * (1 - y) * e / below


def _bernoulli_slopes(ns: Any, y: Any, r: Any) -> tuple[Any, Any]:
    e = ns.exp(r)
    below = (1 + y * y * (e * e - 1)) ** 1.5
    return e / below, y * e * (1 - y * y) / below


def _gompertz(ns: Any, y: Any, r: Any) -> Any:
    return ns.exp(ns.log(y) * ns.exp(-r))


def _decay(name: str, method: str) -> Problem:
    return Problem(
        name=name,
        rate=lambda y, r: -r * y,
        solution=lambda ns, y, r: y * ns.exp(-r),
        slopes=lambda ns, y, r: (ns.exp(-r) + 0 * y, -y * ns.exp(-r)),
        method=method,
    )


def _logistic(name: str, method: str) -> Problem:
    return Problem(
        name=name,
        rate=lambda y, r: r * y * (1 - y),
        solution=lambda ns, y, r: y * ns.exp(r) / (1 + y * (ns.exp(r) - 1)),
        slopes=_logistic_slopes,
        method=method,
    )


PROBLEMS: tuple[Problem, ...] = (
    _decay("decay", "RK45"),
    _decay("decay of low order", "RK23"),
    _logistic("logistic", "RK45"),
    _logistic("logistic of low order", "RK23"),
    _logistic("logistic in several steps", "LSODA"),
    Problem(
        name="Gompertz",
        rate=lambda y, r: -r * y * np.log(y),
        solution=_gompertz,
        slopes=lambda ns, y, r: (
            _gompertz(ns, y, r) * ns.exp(-r) / y,
            -_gompertz(ns, y, r) * ns.log(y) * ns.exp(-r),
        ),
    ),
    Problem(
        name="Riccati",
        rate=lambda y, r: -r * y * y,
        solution=lambda ns, y, r: y / (1 + y * r),
        slopes=lambda ns, y, r: (1 / (1 + y * r) ** 2, -((y / (1 + y * r)) ** 2)),
    ),
    Problem(
        name="Bernoulli",
        rate=lambda y, r: r * (y - y**3),
        solution=lambda ns, y, r: y * ns.exp(r) / (1 + y * y * (ns.exp(2 * r) - 1)) ** 0.5,
        slopes=_bernoulli_slopes,
    ),
)


def function(ns: Any, problem: Problem, factors: tuple[float, float] = (1.0, 1.0)) -> Any:
    """The problem as a Function of PyTorch or of the engine, whose gradients are spoilt by two factors."""

    class Integrated(ns.autograd.Function):  # type: ignore[misc]
        @staticmethod
        def forward(ctx: Any, start: Any, r: Any) -> Any:
            ctx.save_for_backward(start, r)
            rate, own = float(r.detach()), start.detach().numpy()
            found = solve_ivp(lambda _, y: problem.rate(y, rate), (0.0, 1.0), own, method=problem.method)
            return ns.tensor(found.y[:, -1].copy())

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            by_start, by_r = problem.slopes(ns, *ctx.saved_tensors)
            return factors[0] * g * by_start, factors[1] * (g * by_r).sum()

    Integrated.__name__ = Integrated.__qualname__ = "".join(c for c in problem.name.title() if c.isalnum())
    return Integrated


def _rate(rng: np.random.Generator) -> torch.Tensor:
    return torch.tensor(math.exp(rng.uniform(-0.4, 0.4)), dtype=torch.float64, requires_grad=True)


START = within(0.1, 0.9, 3)
for problem in PROBLEMS:
    INTEGRATORS.add(
        function(torch, problem),
        START,
        _rate,
        name=problem.name,
        witnessed=False,
        order=1,
        limit=1,
        seeds=3,
        reference=lambda y, r, problem=problem: problem.solution(torch, y, r),
        tolerance=0.05,
    )
    INTEGRATORS.add(
        function(engine, problem),
        lambda rng: START(rng).detach().numpy(),
        lambda rng: _rate(rng).detach().numpy(),
        name=f"{problem.name} on the engine",
        witnessed=False,
        limit=1,
        seeds=3,
        unproved="written once with the one of PyTorch, which is proved",
    )
