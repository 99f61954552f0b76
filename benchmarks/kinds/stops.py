"""Kinds 2 and 16: iterations that stop early, at both orders, and large errors beside such a stop."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from benchmarks.kinds.member import case, leaf, member


def implicit(ns: Any, solve: Callable[..., Any], slope: Callable[..., Any], mistake: str | float) -> Any:
    """y = solve(x), dy/dx = slope(x, y); the mistakes keep y as a constant, or are a factor."""

    class Implicit(ns.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            y = solve(x.detach())
            ctx.save_for_backward(x, y)
            ctx.constant = y.detach()
            return y

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            x, y = ctx.saved_tensors
            if mistake == "constant":
                return g * slope(x, ctx.constant.detach().clone())
            return g * slope(x, y) * (mistake if isinstance(mistake, float) else 1)

    return Implicit


def bisect(ns: Any, f: Callable[[Any], Any], low: Any, high: Any, tol: float) -> Any:
    """The root of an increasing function by halving."""
    while float((high - low).max()) > tol:
        middle = (low + high) / 2
        above = f(middle) > 0
        low, high = ns.where(above, low, middle), ns.where(above, middle, high)
    return (low + high) / 2


def newton(f: Callable[[Any], Any], df: Callable[[Any], Any], y: Any, tol: float) -> Any:
    """A root by Newton's method, until a step is below tol."""
    for _ in range(60):
        step = f(y) / df(y)
        y = y - step
        if float(abs(step).max()) < tol:
            break
    return y


def kepler(ns: Any) -> tuple[Any, Any, Any]:
    def solve(m: Any) -> Any:
        return newton(lambda e: e - 0.4 * ns.sin(e) - m, lambda e: 1 - 0.4 * ns.cos(e), m, 1e-6)

    return solve, lambda m, e: 1 / (1 - 0.4 * ns.cos(e)), [0.3, 1.1, 2.5]


def square_root_by_heron(ns: Any) -> tuple[Any, Any, Any]:
    def solve(x: Any) -> Any:
        y = x
        while float(ns.abs(y * y - x).max()) > 1e-6:
            y = (y + x / y) / 2
        return y

    return solve, lambda x, y: 1 / (2 * y), [0.7, 2.3, 5.1]


def lambert_by_halley(ns: Any) -> tuple[Any, Any, Any]:
    def solve(x: Any) -> Any:
        w = ns.log(1 + x)
        for _ in range(30):
            e = ns.exp(w)
            r = w * e - x
            step = r / (e * (w + 1) - (w + 2) * r / (2 * w + 2))
            w = w - step
            if float(ns.abs(step).max()) < 1e-5:
                break
        return w

    return solve, lambda x, w: 1 / (ns.exp(w) * (1 + w)), [0.5, 1.7, 3.2]


def inverse_of_a_cubic(ns: Any) -> tuple[Any, Any, Any]:
    return (
        lambda x: bisect(ns, lambda y: y**3 + 2 * y - x, x * 0 - 10, x * 0 + 10, 1e-6),
        lambda x, y: 1 / (3 * y * y + 2),
        [0.4, -1.3, 6.0],
    )


def probit_by_halving(ns: Any) -> tuple[Any, Any, Any]:
    root = math.sqrt(2)
    return (
        lambda p: bisect(ns, lambda y: 0.5 * (1 + ns.erf(y / root)) - p, p * 0 - 8, p * 0 + 8, 1e-6),
        lambda p, y: math.sqrt(2 * math.pi) * ns.exp(y * y / 2),
        [0.2, 0.55, 0.83],
    )


def fixed_point(ns: Any) -> tuple[Any, Any, Any]:
    def solve(x: Any) -> Any:
        y, change = x * 0, 1.0
        while change > 1e-6:
            new = 0.5 * ns.tanh(y) + x
            change = float(ns.abs(new - y).max())
            y = new
        return y

    return solve, lambda x, y: 1 / (1 - 0.5 * (1 - ns.tanh(y) ** 2)), [0.2, -0.9, 1.4]


def friction_by_secants(ns: Any) -> tuple[Any, Any, Any]:
    """y + log y = x by the secant method, one entry after the other."""

    def one(x: float) -> float:
        a, b = 0.5, 1.0
        fa, fb = a + math.log(a) - x, b + math.log(b) - x
        for _ in range(60):
            if abs(fb) < 1e-6 or fb == fa:
                break
            a, b, fa = b, max(b - fb * (b - a) / (fb - fa), 1e-8), fb
            fb = b + math.log(b) - x
        return b

    return (
        lambda x: ns.tensor([one(v) for v in x.tolist()], dtype=x.dtype),
        lambda x, y: 1 / (1 + 1 / y),
        [0.4, 1.9, 3.3],
    )


def golden_section(ns: Any) -> tuple[Any, Any, Any]:
    """argmin of exp(y) - x y, by intervals that shrink: log x."""

    def solve(x: Any) -> Any:
        low, high = x * 0 - 4, x * 0 + 4
        k = (math.sqrt(5) - 1) / 2
        while float((high - low).max()) > 1e-5:
            a, b = high - k * (high - low), low + k * (high - low)
            left = ns.exp(a) - x * a < ns.exp(b) - x * b
            low, high = ns.where(left, low, a), ns.where(left, b, high)
        return (low + high) / 2

    return solve, lambda x, y: ns.exp(-y), [0.6, 1.4, 3.7]


SOLVERS = (
    kepler,
    square_root_by_heron,
    lambert_by_halley,
    inverse_of_a_cubic,
    probit_by_halving,
    fixed_point,
    friction_by_secants,
    golden_section,
)


def _take(solver: Any) -> None:
    def order_two(ns: Any, spoilt: bool) -> Any:
        solve, slope, x = solver(ns)
        return case(implicit(ns, solve, slope, "constant" if spoilt else 1.0), leaf(ns, x), order=2)

    def large(factor: float) -> Any:
        def build(ns: Any, spoilt: bool) -> Any:
            solve, slope, x = solver(ns)
            return case(implicit(ns, solve, slope, factor if spoilt else 1.0), leaf(ns, x), order=1)

        return build

    order_two.__name__ = solver.__name__
    member("2", wrong="failed not-twice-differentiable wrong-second-order")(order_two)
    for said, factor in (("halved", 0.5), ("off by a tenth", 1.1)):
        build = large(factor)
        build.__name__ = f"{solver.__name__} {said}"
        member("16", right=None if said == "halved" else "passed", wrong="failed")(build)


for solver in SOLVERS:
    _take(solver)
