"""Specimens on the embedded engine, on JAX and on NumPy alone, and PyTorch's own operations as plain callables."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import torch

from benchmarks.correct.draws import conditioned, decades, distinct, normal, spd, within
from benchmarks.correct.numpys import PAIRS, knots
from benchmarks.correct.specimen import Collection
from gradcli import engine

ENGINE = Collection("engine")
JAX = Collection("jax")
NUMPY = Collection("numpy")


def arrays(*draws):
    """The same draws as NumPy arrays, which every backend takes."""
    return tuple((lambda rng, draw=draw: draw(rng).detach().numpy()) for draw in draws)


def on_engine(
    name: str,
    body: Callable[..., Any],
    vjp: Callable[..., Any],
    reference: Any,
    *draws: Any,
    blind: bool = False,
    **more: Any,
) -> None:
    """Add a Function of the engine; a blind one computes with NumPy inside forward."""

    class EngineFunction(engine.autograd.Function):
        @staticmethod
        def forward(ctx, *inputs):
            if blind:
                y = engine.tensor(body(*(x.detach().numpy() for x in inputs)))
            else:
                y = body(*inputs)
            ctx.save_for_backward(y, *inputs)
            return y

        @staticmethod
        def backward(ctx, g):
            y, *inputs = ctx.saved_tensors
            return vjp(g, y, *inputs)

    EngineFunction.__name__ = EngineFunction.__qualname__ = name.title().replace(" ", "")
    ENGINE.add(EngineFunction, *arrays(*draws), name=name, witnessed=not blind, reference=reference, **more)


E = engine
on_engine("engine sine", E.sin, lambda g, y, x: g * E.cos(x), torch.sin, normal(6))
on_engine("engine exponential", E.exp, lambda g, y, x: g * y, torch.exp, normal(6, scale=5))
on_engine("engine logarithm", E.log, lambda g, y, x: g / x, torch.log, decades(-8, 8, signed=False))
on_engine("engine tanh", E.tanh, lambda g, y, x: g * (1 - y * y), torch.tanh, normal(6))
on_engine("engine sigmoid", E.sigmoid, lambda g, y, x: g * y * (1 - y), torch.sigmoid, normal(6, scale=4))
on_engine("engine product", lambda a, b: a * b, lambda g, y, a, b: (g * b, g * a), torch.mul, normal(6), normal(6))
on_engine(
    "engine quotient", lambda a, b: a / b, lambda g, y, a, b: (g / b, -g * y / b), torch.div, normal(6), within(0.5, 2)
)
on_engine(
    "engine matrix product",
    lambda a, b: a @ b,
    lambda g, y, a, b: (g @ b.t(), a.t() @ g),
    torch.matmul,
    normal(3, 4),
    normal(4, 2),
)
on_engine(
    "engine softmax",
    lambda x: E.softmax(x, 0),
    lambda g, y, x: y * (g - (g * y).sum()),
    lambda x: torch.softmax(x, 0),
    normal(6, scale=5),
)
on_engine("engine norm", lambda x: (x * x).sum().sqrt(), lambda g, y, x: g * x / y, lambda x: x.norm(), normal(6))
on_engine("engine relu", E.relu, lambda g, y, x: g * (x > 0).to(x.dtype), torch.relu, normal(6))
on_engine("engine absolute value", E.abs, lambda g, y, x: g * E.sign(x), torch.abs, normal(6))
on_engine(
    "engine clamp",
    lambda x: x.clamp(-1, 1),
    lambda g, y, x: g * ((x > -1) & (x < 1)).to(x.dtype),
    lambda x: x.clamp(-1, 1),
    normal(6, scale=2),
)
on_engine(
    "engine mean", lambda x: x.mean(), lambda g, y, x: g * E.ones_like(x) / x.numel(), lambda x: x.mean(), normal(3, 4)
)
on_engine("engine transpose", lambda x: (x * x).t(), lambda g, y, x: 2 * x * g.t(), lambda x: (x * x).t(), normal(3, 4))
on_engine(
    "engine cube, blind", lambda x: x**3, lambda g, y, x: 3 * g * x * x, lambda x: x**3, decades(-3, 3), blind=True
)
on_engine("engine arctangent, blind", np.arctan, lambda g, y, x: g / (1 + x * x), torch.arctan, normal(6), blind=True)
on_engine("engine cosine, blind", np.cos, lambda g, y, x: -g * E.sin(x), torch.cos, normal(6, scale=100), blind=True)
on_engine(
    "engine float32 sine, blind",
    lambda x: np.sin(x.astype(np.float32)).astype(np.float64),
    lambda g, y, x: g * E.cos(x),
    torch.sin,
    normal(6),
    blind=True,
    tolerance=1e-2,
)
on_engine(
    "engine square root, blind",
    np.sqrt,
    lambda g, y, x: g / (2 * y),
    torch.sqrt,
    decades(-6, 6, signed=False),
    blind=True,
)
on_engine(
    "engine offset, blind", lambda x: 1e6 + np.sin(x), lambda g, y, x: g * E.cos(x), torch.sin, normal(6), blind=True
)


def on_jax(
    name: str,
    body: Callable[..., Any],
    vjp: Callable[..., Any],
    reference: Any,
    *draws: Any,
    blind: bool = False,
    **more: Any,
) -> None:
    """Add a custom_vjp; a blind one keeps JAX from differentiating its body."""
    shown = (lambda *inputs: jax.lax.stop_gradient(body(*inputs))) if blind else body

    @jax.custom_vjp
    def function(*inputs):
        return shown(*inputs)

    def forward(*inputs):
        y = body(*inputs)
        return y, (y, *inputs)

    def backward(saved, g):
        found = vjp(g, *saved)
        return found if isinstance(found, tuple) else (found,)

    function.defvjp(forward, backward)
    function.__name__ = name.replace(" ", "_").replace(",", "")
    JAX.add(function, *arrays(*draws), name=name, witnessed=not blind, reference=reference, seeds=1, **more)


on_jax("jax sine", jnp.sin, lambda g, y, x: g * jnp.cos(x), torch.sin, normal(6))
on_jax("jax exponential", jnp.exp, lambda g, y, x: g * y, torch.exp, normal(6, scale=4))
on_jax("jax logarithm", jnp.log, lambda g, y, x: g / x, torch.log, decades(-8, 8, signed=False))
on_jax(
    "jax log1p of exp",
    lambda x: jnp.logaddexp(x, 0.0),
    lambda g, y, x: g * jax.nn.sigmoid(x),
    lambda x: torch.logaddexp(x, torch.zeros_like(x)),
    normal(6, scale=15),
)
on_jax(
    "jax matrix product", jnp.matmul, lambda g, y, a, b: (g @ b.T, a.T @ g), torch.matmul, normal(3, 4), normal(4, 2)
)
on_jax(
    "jax softmax",
    jax.nn.softmax,
    lambda g, y, x: y * (g - (g * y).sum()),
    lambda x: torch.softmax(x, 0),
    normal(6, scale=8),
)
on_jax(
    "jax solve",
    jnp.linalg.solve,
    lambda g, y, a, b: (lambda w: (-jnp.outer(w, y), w))(jnp.linalg.solve(a.T, g)),
    torch.linalg.solve,
    spd(4),
    normal(4),
)
on_jax(
    "jax ill-conditioned inverse",
    jnp.linalg.inv,
    lambda g, y, a: -(y.T @ g @ y.T),
    torch.linalg.inv,
    conditioned(4, 4, 1e4),
    tolerance=1e-7,
)
on_jax("jax norm", jnp.linalg.norm, lambda g, y, x: g * x / y, lambda x: x.norm(), normal(6))
on_jax(
    "jax sort",
    jnp.sort,
    lambda g, y, x: jnp.zeros_like(x).at[jnp.argsort(x)].add(g),
    lambda x: torch.sort(x)[0],
    distinct(6),
)
on_jax("jax relu", lambda x: jnp.maximum(x, 0), lambda g, y, x: g * (x > 0), torch.relu, normal(6))
on_jax(
    "jax scan",
    lambda x: jax.lax.scan(lambda c, v: (jnp.tanh(c + v), 0.0), 0.0, x)[0],
    lambda g, y, x: jax.grad(lambda v: jax.lax.scan(lambda c, w: (jnp.tanh(c + w), 0.0), 0.0, v)[0])(x) * g,
    lambda x: functools.reduce(lambda c, v: torch.tanh(c + v), x, torch.zeros((), dtype=x.dtype)),
    normal(5),
)
on_jax(
    "jax fixed point",
    lambda x: jax.lax.fori_loop(0, 40, lambda _, y: x - 0.2 * jnp.sin(y), x),
    lambda g, y, x: g / (1 + 0.2 * jnp.cos(y)),
    None,
    normal(4),
    blind=True,
    unproved="implicit differentiation of y + 0.2 sin y = x",
)
on_jax("jax cube, blind", lambda x: x**3, lambda g, y, x: 3 * g * x * x, lambda x: x**3, decades(-4, 4), blind=True)
on_jax(
    "jax float32 inside, blind",
    lambda x: jnp.sin(x.astype(jnp.float32)).astype(x.dtype),
    lambda g, y, x: g * jnp.cos(x),
    torch.sin,
    normal(6),
    blind=True,
    tolerance=1e-2,
)
on_jax(
    "jax erf, blind",
    jax.scipy.special.erf,
    lambda g, y, x: g * 2 / jnp.sqrt(jnp.pi) * jnp.exp(-x * x),
    torch.erf,
    normal(6),
    blind=True,
)


def on_numpy(name: str, reference: Any, *draws: Any, **more: Any) -> None:
    """Add the pair of that name with a reference in PyTorch."""
    function, grad = PAIRS[name]
    NUMPY.add(function, *arrays(*draws), name=name, grad=grad, witnessed=False, reference=reference, order=1, **more)


def ackley(x):
    return -20 * torch.exp(-0.2 * (x**2).mean().sqrt()) - torch.exp(torch.cos(2 * torch.pi * x).mean())


def logistic(w, x):
    return torch.logaddexp(x @ w, torch.zeros(8, dtype=w.dtype)).sum()


on_numpy("sum of sines", lambda x: torch.sin(x).sum(), normal(6))
on_numpy("Rosenbrock", lambda x: (100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum(), normal(6))
on_numpy("quadratic form", lambda x, a: x @ a @ x, normal(4), normal(4, 4))
on_numpy("softmax with Jacobian", lambda x: torch.softmax(x, 0), normal(5, scale=3))
on_numpy("elementwise", torch.tanh, normal(6))
on_numpy("vjp of a product", torch.matmul, normal(3, 4), normal(4, 2))
on_numpy("log determinant", lambda a: torch.linalg.slogdet(a)[1], spd(4, 0.01, 10))
on_numpy("logistic loss", logistic, normal(4), normal(8, 4))
on_numpy("Styblinski-Tang", lambda x: (x**4 - 16 * x**2 + 5 * x).sum() / 2, normal(6, scale=3))
on_numpy("Ackley", ackley, normal(5))
on_numpy(
    "Lennard-Jones",
    lambda x: (lambda r: (r**-12 - 2 * r**-6).sum())(torch.diff(torch.sort(x)[0])),
    distinct(5, gap=0.5),
)
on_numpy("cross product", lambda a, b: torch.linalg.cross(a, b), normal(3), normal(3))
on_numpy("interpolation", lambda y: torch.tensor(knots()) @ y, normal(5))
on_numpy("Kepler's equation", None, normal(5), unproved="implicit differentiation of e - 0.3 sin e = m")
on_numpy("variance of offset data", lambda x: x.var(unbiased=False), normal(8, offset=1e3), tolerance=1e-8)
on_numpy("float32 energy", lambda x: (torch.sin(x) ** 2).sum(), normal(6), tolerance=1e-2)
on_numpy("value and gradient", lambda x: (x**4).sum(), normal(5))
on_numpy("sum of ten thousand cubes", lambda x: (x**3).sum(), normal(10_000))
