"""Kind 9a: projections, solvers and losses of JAX, as jaxopt and optax write them."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from benchmarks.kinds.member import case, member


def x_of(*shape: int, seed: int = 0) -> Any:
    import jax.numpy as jnp

    return jnp.asarray(np.random.default_rng([seed, *shape]).standard_normal(shape))


def bisection(balance: Any, low: Any, high: Any, steps: int = 60) -> Any:
    import jax
    from jax import lax

    def body(_: Any, ends: Any) -> Any:
        a, b = ends
        m = (a + b) / 2
        up = balance(m) > 0
        return jax.numpy.where(up, m, a), jax.numpy.where(up, b, m)

    a, b = lax.fori_loop(0, steps, body, (low, high))
    return (a + b) / 2


@member("9a", backends=("jax",))
def simplex_by_bisection_under_jit(jax: Any, spoilt: bool) -> Any:
    jnp = jax.numpy

    @jax.custom_vjp
    def project(x: Any) -> Any:
        return solve(x)

    @jax.jit
    def solve(x: Any) -> Any:
        t = bisection(lambda t: jax.nn.relu(x - t).sum() - 1.0, x.min() - 1.0, x.max())
        return jax.nn.relu(x - t)

    def forward(x: Any) -> Any:
        y = solve(x)
        return y, y > 0

    def backward(s: Any, g: Any) -> Any:
        n = s.sum()
        return (jnp.where(s, g - (0 if spoilt else 1) * jnp.where(s, g, 0).sum() / n, 0.0),)

    project.defvjp(forward, backward)
    return case(jax.jit(project), x_of(4), order=1)


@member("9a", backends=("jax",))
def box_section(jax: Any, spoilt: bool) -> Any:
    jnp = jax.numpy
    w = jnp.array([1.0, 2.0, 0.5])

    @jax.custom_vjp
    def project(x: Any) -> Any:
        return forward(x)[0]

    def forward(x: Any) -> Any:
        t = bisection(lambda t: -(w * jnp.clip(x + t * w, 0.0, 1.0)).sum() + 1.0, -20.0 + 0 * x[0], 20.0 + 0 * x[0])
        y = jnp.clip(x + t * w, 0.0, 1.0)
        return y, (y > 0) & (y < 1)

    def backward(s: Any, g: Any) -> Any:
        ws = jnp.where(s, w, 0.0)
        gs = jnp.where(s, g, 0.0)
        return (gs - (0.5 if spoilt else 1) * ws * (ws @ gs) / jnp.maximum(ws @ ws, 1e-30),)

    project.defvjp(forward, backward)
    return case(project, jnp.array([0.3, -0.1, 0.6]), order=1)


@member("9a", backends=("jax",))
def implicit_root_with_while_loop(jax: Any, spoilt: bool) -> Any:
    jnp = jax.numpy

    @jax.custom_vjp
    def root(a: Any) -> Any:
        return newton(a)

    def newton(a: Any) -> Any:
        def go(state: Any) -> Any:
            y, _, k = state
            step = (y**3 + y - a) / (3 * y**2 + 1)
            return y - step, jnp.abs(step).max(), k + 1

        return jax.lax.while_loop(lambda s: (s[1] > 1e-12) & (s[2] < 100), go, (a, jnp.inf, 0))[0]

    def forward(a: Any) -> Any:
        y = newton(a)
        return y, y

    root.defvjp(forward, lambda y, g: (g / (3 * y**2 + (0 if spoilt else 1)),))
    return case(root, x_of(3), order=1)


@member("9a", backends=("jax",))
def fixed_point_of_a_layer(jax: Any, spoilt: bool) -> Any:
    """As jaxopt's fixed-point iteration: nondifferentiable function argument, implicit gradients."""
    jnp = jax.numpy

    @partial(jax.custom_vjp, nondiff_argnums=(0,))
    def fixed_point(f: Any, theta: Any) -> Any:
        return jax.lax.fori_loop(0, 60, lambda _, z: f(theta, z), jnp.zeros(3))

    def forward(f: Any, theta: Any) -> Any:
        z = fixed_point(f, theta)
        return z, (theta, z)

    def backward(f: Any, kept: Any, g: Any) -> Any:
        theta, z = kept
        _, by_z = jax.vjp(lambda z: f(theta, z), z)
        u = g if spoilt else jax.lax.fori_loop(0, 60, lambda _, u: g + by_z(u)[0], g)
        _, by_theta = jax.vjp(lambda t: f(t, z), theta)
        return (by_theta(u)[0],)

    fixed_point.defvjp(forward, backward)
    cell = lambda theta, z: jnp.tanh(0.3 * jnp.roll(z, 1) + theta)  # noqa: E731
    return case(lambda theta: fixed_point(cell, theta), x_of(3), order=1)


@member("9a", backends=("jax",))
def safe_norm(jax: Any, spoilt: bool) -> Any:
    """As optax's safe_norm, with a rule of its own."""
    jnp = jax.numpy

    @partial(jax.custom_jvp, nondiff_argnums=(1,))
    def safe_norm(x: Any, least: float) -> Any:
        return jnp.maximum(jnp.sqrt(jnp.sum(x * x)), least)

    @safe_norm.defjvp
    def rule(least: float, primals: Any, tangents: Any) -> Any:
        (x,), (t,) = primals, tangents
        n = jnp.sqrt(jnp.sum(x * x))
        y = jnp.maximum(n, least)
        return y, jnp.where(n > least, (x @ t) / n * (0.9 if spoilt else 1), 0.0)

    return case(lambda x: safe_norm(x, 1e-6), x_of(4), order=1)


@member("9a", backends=("jax",))
def sigmoid_focal_loss(jax: Any, spoilt: bool) -> Any:
    jnp = jax.numpy

    @jax.custom_vjp
    def focal(logits: Any, labels: Any) -> Any:
        p = jax.nn.sigmoid(logits)
        ce = jax.nn.softplus(logits) - logits * labels
        pt = p * labels + (1 - p) * (1 - labels)
        return ce * (1 - pt) ** 2

    def forward(logits: Any, labels: Any) -> Any:
        return focal(logits, labels), (logits, labels)

    def backward(kept: Any, g: Any) -> Any:
        x, y = kept
        p = jax.nn.sigmoid(x)
        ce = jax.nn.softplus(x) - x * y
        q = p * (1 - y) + (1 - p) * y  # 1 - pt
        dq = p * (1 - p) * (1 - 2 * y)
        by_x = (p - y) * q**2 + (1 if spoilt else 2) * ce * q * dq
        dqy = 1 - 2 * p
        return g * by_x, g * (-x * q**2 + 2 * ce * q * dqy)

    focal.defvjp(forward, backward)
    return case(focal, x_of(4), jnp.array([0.0, 1.0, 1.0, 0.0]), order=1)


@member("9a", backends=("jax",))
def takes_numpy_arrays(jax: Any, spoilt: bool) -> Any:
    """A function of JAX that is given NumPy arrays."""
    jnp = jax.numpy

    @jax.custom_vjp
    def cubed(x: Any) -> Any:
        return jnp.asarray(x) ** 3

    cubed.defvjp(lambda x: (cubed(x), x), lambda x, g: ((2 if spoilt else 3) * g * x**2,))
    return case(cubed, np.array([0.5, -1.5, 2.0]))


@member("9a", backends=("jax",))
def l1_ball_by_sorting(jax: Any, spoilt: bool) -> Any:
    jnp = jax.numpy

    @jax.custom_jvp
    def project(x: Any) -> Any:
        a = jnp.sort(jnp.abs(x))[::-1]
        c = jnp.cumsum(a) - 1.0
        k = jnp.arange(1, x.shape[0] + 1)
        t = (c / k)[jnp.sum(a - c / k > 0) - 1]
        return jnp.sign(x) * jax.nn.relu(jnp.abs(x) - jnp.maximum(t, 0.0))

    @project.defjvp
    def rule(primals: Any, tangents: Any) -> Any:
        (x,), (v,) = primals, tangents
        y = project(x)
        s = y != 0
        sign = jnp.where(s, jnp.sign(x), 0.0)
        mean = (sign @ v) / jnp.maximum(s.sum(), 1)
        return y, jnp.where(s, v, 0.0) - (2 if spoilt else 1) * sign * mean

    return case(project, jnp.array([0.9, -1.4, 0.2, 0.6]), order=1)


@member("9a", backends=("jax",))
def linear_solve_by_cg(jax: Any, spoilt: bool) -> Any:
    jnp = jax.numpy

    @jax.custom_vjp
    def solve(a: Any, b: Any) -> Any:
        return jax.scipy.sparse.linalg.cg(lambda v: a @ v, b, tol=1e-12)[0]

    def forward(a: Any, b: Any) -> Any:
        x = solve(a, b)
        return x, (a, x)

    def backward(kept: Any, g: Any) -> Any:
        a, x = kept
        u = jax.scipy.sparse.linalg.cg(lambda v: a.T @ v, g, tol=1e-12)[0]
        return (1 if spoilt else -1) * jnp.outer(u, x), u

    solve.defvjp(forward, backward)
    a = jnp.array([[2.0, 0.3, 0.1], [0.3, 1.5, -0.2], [0.1, -0.2, 1.0]])
    return case(solve, a, x_of(3), order=1)
