"""Iterations that stop at a tolerance, tight and loose, with backwards by the implicit function theorem."""

from __future__ import annotations

import functools
import math

import numpy as np
import torch
from scipy import integrate, optimize

from benchmarks.correct.draws import normal, spd, value, within
from benchmarks.correct.general import general
from benchmarks.correct.specimen import Collection

SOLVERS = Collection("solvers")
solver = functools.partial(general, SOLVERS, tolerance=1e-2)


def fixed_point(tolerance):
    """y with y = x - 0.2 sin y, by damped iteration."""

    def body(x):
        y = torch.ones_like(x)
        for _ in range(400):
            step = 0.7 * (x - y - 0.2 * torch.sin(y))
            y = y + step
            if step.abs().max() < tolerance:
                break
        return y

    return body


def exact_root(x):
    """The same to rounding, as a graph of Newton's steps."""
    y = x.detach()
    for _ in range(40):
        y = y - (y + 0.2 * torch.sin(y) - x) / (1 + 0.2 * torch.cos(y))
    return y


def newton_cube(tolerance):
    def body(x):
        y = torch.ones_like(x)
        for _ in range(400):
            if (y**3 - x).abs().max() <= tolerance:
                break
            y = y - (y**3 - x) / (3 * y**2)
        return y

    return body


def bisection(tolerance):
    """y with y + exp y = x."""

    def body(x):
        down, up = np.full_like(x, -40.0), np.full_like(x, 40.0)
        for _ in range(100):
            if (up - down).max() <= tolerance:
                break
            middle = (down + up) / 2
            high = middle + np.exp(middle) > x
            up, down = np.where(high, middle, up), np.where(high, down, middle)
        return (down + up) / 2

    return body


def exact_lambert(x):
    y = torch.log(1 + x.detach().clamp(min=0)) - torch.relu(-x.detach())
    for _ in range(60):
        y = y - (y + torch.exp(y) - x) / (1 + torch.exp(y))
    return y


def conjugate_gradients(tolerance):
    """x with a x = b for a symmetric positive a."""

    def body(a, b):
        x = torch.zeros_like(b)
        r = b - a @ x
        p, rho = r, r @ r
        for _ in range(100):
            if rho.sqrt() <= tolerance * b.norm():
                break
            q = a @ p
            alpha = rho / (p @ q)
            x, r = x + alpha * p, r - alpha * q
            rho, old = r @ r, rho
            p = r + rho / old * p
        return x

    return body


def solved_vjp(g, y, a, b):
    w = torch.linalg.solve(a.mT, g)
    return -torch.outer(w, y), w


def power_iteration(tolerance):
    """The largest eigenvalue of a symmetric matrix."""

    def body(a):
        v = torch.ones(len(a), dtype=a.dtype)
        old, new = math.inf, 0.0
        for _ in range(1000):
            if abs(new - old) <= tolerance:
                break
            w = a @ v
            old, new = new, float(v @ w / (v @ v))
            v = w / w.norm()
        return v @ a @ v

    return body


def top_vjp(g, y, a):
    vector = torch.linalg.eigh((a + a.mT) / 2)[1][:, -1]
    return g * torch.outer(vector, vector)


def sinkhorn(tolerance):
    """The sum of the scaling of exp x to unit rows and columns times x."""

    def body(x):
        k = torch.exp(x)
        u, v = torch.ones(len(k), dtype=x.dtype), torch.ones(k.shape[1], dtype=x.dtype)
        for _ in range(400):
            u = 1 / (k @ v)
            v = 1 / (k.mT @ u)
            if (u * (k @ v) - 1).abs().max() < tolerance:
                break
        return -(torch.log(u).sum() + torch.log(v).sum())

    return body


def plan(x):
    k = torch.exp(x)
    u, v = torch.ones(len(k), dtype=x.dtype), torch.ones(k.shape[1], dtype=x.dtype)
    for _ in range(200):
        u = 1 / (k @ v)
        v = 1 / (k.mT @ u)
    return u[:, None] * k * v


def agm(x, y):
    for _ in range(8):
        x, y = (x + y) / 2, torch.sqrt(x * y)
    return x


def agm_stopped(tolerance):
    def body(x, y):
        for _ in range(100):
            if (x - y).abs().max() <= tolerance:
                break
            x, y = (x + y) / 2, torch.sqrt(x * y)
        return x

    return body


def agm_vjp(g, z, x, y):
    with torch.enable_grad():
        a, b = x.detach().requires_grad_(), y.detach().requires_grad_()
        return torch.autograd.grad(agm(a, b), (a, b), g)


def implicit_vjp(g, y, x):
    return g / (1 + 0.2 * torch.cos(y))


def ode(rtol):
    """The logistic equation to time one by SciPy."""

    def body(x):
        found = integrate.solve_ivp(lambda t, y: y * (1 - y), (0, 1), x, rtol=rtol, atol=rtol)
        return found.y[:, -1]

    return body


def logistic(x):
    return x * math.e / (1 + x * (math.e - 1))


for tolerance in (1e-12, 1e-10, 1e-7, 1e-4):
    solver(f"fixed point to {tolerance:g}", fixed_point(tolerance), implicit_vjp, normal(4), reference=exact_root)
    solver(
        f"Newton's cube root to {tolerance:g}",
        newton_cube(tolerance),
        lambda g, y, x: g / (3 * y * y),
        within(0.3, 4),
        reference=lambda x: x ** (1 / 3),
    )
    solver(
        f"conjugate gradients to {tolerance:g}",
        conjugate_gradients(tolerance),
        solved_vjp,
        spd(6, 0.1, 5),
        normal(6),
        reference=torch.linalg.solve,
    )
    solver(
        f"bisection to {tolerance:g}",
        bisection(tolerance),
        lambda g, y, x: g / (1 + np.exp(y)),
        normal(4),
        numpy=True,
        reference=exact_lambert,
    )
    solver(
        f"power iteration to {tolerance:g}",
        power_iteration(tolerance),
        top_vjp,
        spd(4, 0.1, 3),
        reference=lambda a: torch.linalg.eigvalsh((a + a.mT) / 2)[-1],
        order=1,
    )
    solver(
        f"Sinkhorn to {tolerance:g}",
        sinkhorn(tolerance),
        lambda g, y, x: g * plan(x),
        normal(3, 3),
        reference=sinkhorn(1e-13),
        order=1,
    )
    solver(
        f"arithmetic-geometric mean to {tolerance:g}",
        agm_stopped(tolerance),
        agm_vjp,
        within(0.5, 3),
        within(0.5, 3),
        reference=agm,
        once=True,
    )
    solver(
        f"logistic equation to {tolerance:g}",
        ode(tolerance),
        lambda g, y, x: g * math.e / (1 + x * (math.e - 1)) ** 2,
        within(0.1, 0.9),
        numpy=True,
        reference=logistic,
    )
solver(
    "Brent's root",
    lambda x: np.array([optimize.brentq(lambda y, v=v: y**3 + y - v, -10, 10) for v in x]),
    lambda g, y, x: g / (3 * y * y + 1),
    normal(4),
    numpy=True,
    unproved="the slope of an inverse function",
)
solver(
    "minimum by SciPy",
    lambda x: np.array([optimize.minimize_scalar(lambda y, v=v: (y - v) ** 2 + np.cosh(y)).x for v in x]),
    lambda g, y, x: 2 * g / (2 + np.cosh(y)),
    normal(3),
    numpy=True,
    unproved="implicit differentiation of 2 (y - x) + sinh y = 0",
)
solver(
    "quadrature by SciPy",
    lambda x: np.array([integrate.quad(lambda t, v=v: np.exp(-v * t * t), 0, 1)[0] for v in x]),
    lambda g, y, x: g * np.array([-integrate.quad(lambda t, v=v: t * t * np.exp(-v * t * t), 0, 1)[0] for v in x]),
    within(0.2, 3),
    numpy=True,
    reference=lambda x: math.sqrt(math.pi) / 2 * torch.erf(x.sqrt()) / x.sqrt(),
)
solver(
    "trapezoidal rule",
    lambda x: (lambda t: torch.trapezoid(torch.exp(-x[:, None] * t), t, dim=1))(
        torch.linspace(0, 1, 200, dtype=x.dtype)
    ),
    lambda g, y, x: (lambda t: g * torch.trapezoid(-t * torch.exp(-x[:, None] * t), t, dim=1))(
        torch.linspace(0, 1, 200, dtype=x.dtype)
    ),
    normal(5),
)
solver(
    "Euler's method, a hundred steps",
    lambda x: functools.reduce(lambda y, _: y + 0.01 * torch.sin(y), range(100), x),
    lambda g, y, x: (
        g
        * functools.reduce(
            lambda s, _: (s[0] + 0.01 * torch.sin(s[0]), s[1] * (1 + 0.01 * torch.cos(s[0]))),
            range(100),
            (x, torch.ones_like(x)),
        )[1]
    ),
    normal(5),
)
solver(
    "gradient descent, unrolled",
    lambda x, r: functools.reduce(lambda y, _: y - r * (4 * y**3 - x), range(15), x),
    lambda g, y, x, r: (
        g
        * functools.reduce(
            lambda s, _: (s[0] - r * (4 * s[0] ** 3 - x), s[1] - r * (12 * s[0] ** 2 * s[1] - 1)),
            range(15),
            (x, torch.ones_like(x)),
        )[1],
        None,
    ),
    normal(5),
    value(0.02),
)
solver(
    "implicit Euler step",
    lambda x: functools.reduce(lambda y, _: y - (y - x + 0.1 * y**3) / (1 + 0.3 * y * y), range(30), x),
    lambda g, y, x: g / (1 + 0.3 * y * y),
    normal(5),
    reference=lambda x: functools.reduce(lambda y, _: y - (y - x + 0.1 * y**3) / (1 + 0.3 * y * y), range(30), x),
    tolerance=1e-8,
)
solver(
    "eigenvalue by Rayleigh iteration",
    lambda a: np.linalg.eigvalsh((a + a.T) / 2)[:1] + 0.0,
    lambda g, y, a: g * (lambda v: np.outer(v, v))(np.linalg.eigh((a + a.T) / 2)[1][:, 0]),
    spd(4),
    numpy=True,
    reference=lambda a: torch.linalg.eigvalsh((a + a.mT) / 2)[:1],
)
