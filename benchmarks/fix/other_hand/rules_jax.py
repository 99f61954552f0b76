"""Functions with custom rules in JAX."""

import jax
import jax.numpy as jnp

from benchmarks.fix.other_hand.record import Family

PLANT = Family("rules", "jax", __file__)


@jax.custom_vjp
def log1pexp(x):
    return jnp.logaddexp(x, 0.0)


def log1pexp_fwd(x):
    return log1pexp(x), x


def log1pexp_bwd(x, g):
    return (g * jax.nn.sigmoid(x),)


log1pexp.defvjp(log1pexp_fwd, log1pexp_bwd)

PLANT(
    "log1pexp",
    "x=NxM",
    ("wrong-function", "wrong-factor wrong-gradient", "x", "jax.nn.sigmoid(x)", "jnp.tanh(x)"),
    ("sign-inner", "wrong-factor wrong-gradient", "x", "jax.nn.sigmoid(x)", "jax.nn.sigmoid(-x)"),
    ("ignored-grad-output", "ignores-grad-output", "x", "g * jax.nn.sigmoid(x)", "jax.nn.sigmoid(x)"),
    ("stop-gradient", "not-twice-differentiable", "x", "jax.nn.sigmoid(x)", "jax.nn.sigmoid(jax.lax.stop_gradient(x))"),
)


@jax.custom_vjp
def affine(x, w, b):
    return x @ w + b


def affine_fwd(x, w, b):
    return affine(x, w, b), (x, w)


def affine_bwd(res, g):
    x, w = res
    return g @ w.T, x.T @ g, g.sum(0)


affine.defvjp(affine_fwd, affine_bwd)

PLANT(
    "affine",
    "x=MxM w=MxM b=M",
    ("transposed-operand", "transposed", "x", "g @ w.T", "g @ w"),
    ("transposed-operand", "transposed", "w", "x.T @ g", "x @ g"),
    ("wrong-axis", "wrong-reduction", "b", "g.sum(0)", "g.sum(1)"),
    ("mean-for-sum", "wrong-reduction wrong-factor", "b", "g.sum(0)", "g.mean(0)"),
    ("swapped-two", "swapped-gradients", "x w", "g @ w.T, x.T @ g", "x.T @ g, g @ w.T"),
    ("missing-gradient", "missing-gradient", "b", "g.sum(0)", "None"),
    ("ignored-grad-output", "ignores-grad-output wrong-gradient", "w", "x.T @ g", "x.T @ jnp.ones_like(g)"),
    flags=True,
)


@jax.custom_vjp
def normalise(x):
    return x / jnp.linalg.norm(x, axis=-1, keepdims=True)


def normalise_fwd(x):
    y = normalise(x)
    return y, (x, y)


def normalise_bwd(res, g):
    x, y = res
    length = jnp.linalg.norm(x, axis=-1, keepdims=True)
    return ((g - y * (g * y).sum(-1, keepdims=True)) / length,)


normalise.defvjp(normalise_fwd, normalise_bwd)

PLANT(
    "normalise",
    "x=NxM",
    ("missing-term", "missing-term", "x", "(g - y * (g * y).sum(-1, keepdims=True))", "g"),
    (
        "factor-missing",
        "wrong-factor",
        "x",
        "((g - y * (g * y).sum(-1, keepdims=True)) / length,)",
        "(g - y * (g * y).sum(-1, keepdims=True),)",
    ),
    (
        "wrong-axis",
        "wrong-reduction missing-term",
        "x",
        "(g * y).sum(-1, keepdims=True)",
        "(g * y).sum(0, keepdims=True)",
    ),
    ("wrong-variable", "missing-term wrong-factor wrong-gradient", "x", "y * (g * y).sum", "y * (g * x).sum"),
)


@jax.custom_vjp
def masked_mean(x, mask):
    return (x * mask).sum(-1) / mask.sum(-1)


def masked_mean_fwd(x, mask):
    return masked_mean(x, mask), (x, mask)


def masked_mean_bwd(res, g):
    x, mask = res
    n = mask.sum(-1, keepdims=True)
    mean = (x * mask).sum(-1, keepdims=True) / n
    g = g[..., None]
    return g * mask / n, g * (x - mean) / n


masked_mean.defvjp(masked_mean_fwd, masked_mean_bwd)

PLANT(
    "masked_mean",
    "x=NxM mask=NxM,domain=positive",
    ("mask-missing", "wrong-factor wrong-shape", "x", "g * mask / n", "g / n"),
    ("factor-of-size", "wrong-factor wrong-reduction", "x", "g * mask / n", "g * mask / mask.shape[-1]"),
    ("missing-term", "missing-term", "mask", "g * (x - mean) / n", "g * x / n"),
    ("factor-missing", "wrong-factor", "mask", "(x - mean) / n", "(x - mean)"),
    ("sign-of-term", "wrong-sign missing-term", "mask", "(x - mean)", "(x + mean)"),
)


@jax.custom_vjp
def huber(residual, delta):
    a = jnp.abs(residual)
    return jnp.where(a < delta, 0.5 * residual**2, delta * (a - 0.5 * delta))


def huber_fwd(residual, delta):
    return huber(residual, delta), (residual, delta)


def huber_bwd(res, g):
    r, delta = res
    a = jnp.abs(r)
    dr = jnp.where(a < delta, r, delta * jnp.sign(r))
    ddelta = jnp.where(a < delta, 0.0, a - delta)
    return g * dr, g * ddelta


huber.defvjp(huber_fwd, huber_bwd)

PLANT(
    "huber",
    "residual=NxM delta=NxM,domain=unit",
    ("branch-wrong", "wrong-entries", "residual", "delta * jnp.sign(r))", "delta)"),
    (
        "mask-side",
        "wrong-gradient wrong-entries",
        "delta",
        "ddelta = jnp.where(a < delta",
        "ddelta = jnp.where(a > delta",
    ),
    (
        "factor-missing",
        "wrong-entries missing-term wrong-factor wrong-gradient",
        "delta",
        "a - delta)\n",
        "a - 0.5 * delta)\n",
    ),
    (
        "mask-missing",
        "wrong-entries missing-term",  # what is too much is, for all r, ddelta times the sign of r
        "residual",
        "jnp.where(a < delta, r, delta * jnp.sign(r))",
        "r",
    ),
    ("swapped-two", "swapped-gradients", "residual delta", "return g * dr, g * ddelta", "return g * ddelta, g * dr"),
    flags=True,
)


@jax.custom_vjp
def attend(q, k, v):
    w = jax.nn.softmax(q @ k.T / jnp.sqrt(q.shape[-1]))
    return w @ v


def attend_fwd(q, k, v):
    return attend(q, k, v), (q, k, v)


def attend_bwd(res, g):
    q, k, v = res
    scale = 1 / jnp.sqrt(q.shape[-1])
    w = jax.nn.softmax(q @ k.T * scale)
    dw = g @ v.T
    ds = w * (dw - jnp.sum(dw * w, axis=-1, keepdims=True)) * scale
    return ds @ k, ds.T @ q, w.T @ g


attend.defvjp(attend_fwd, attend_bwd)

PLANT(
    "attend",
    "q=KxM k=KxM v=KxM",
    ("factor-missing", "wrong-factor", "q k", "keepdims=True)) * scale", "keepdims=True))"),
    ("transposed-operand", "transposed", "k", "ds.T @ q", "ds @ q"),
    ("transposed-operand", "transposed", "v", "w.T @ g", "w @ g"),
    ("missing-term", "missing-term", "q k", "(dw - jnp.sum(dw * w, axis=-1, keepdims=True))", "dw"),
    (
        "swapped-three",
        "swapped-gradients",
        "q k v",
        "return ds @ k, ds.T @ q, w.T @ g",
        "return ds.T @ q, w.T @ g, ds @ k",
    ),
    ("wrong-axis", "wrong-reduction", "q k", "axis=-1", "axis=0"),
    flags=True,
)


@jax.custom_vjp
def decay_scan(x, a):
    def step(h, row):
        h = a * h + row
        return h, h

    return jax.lax.scan(step, jnp.zeros_like(x[0]), x)[1]


def decay_scan_fwd(x, a):
    h = decay_scan(x, a)
    return h, (h, a)


def decay_scan_bwd(res, g):
    h, a = res

    def step(carry, row):
        carry = row + a * carry
        return carry, carry

    dx = jax.lax.scan(step, jnp.zeros_like(g[0]), g, reverse=True)[1]
    before = jnp.concatenate([jnp.zeros_like(h[:1]), h[:-1]])
    return dx, (dx * before).sum(0)


decay_scan.defvjp(decay_scan_fwd, decay_scan_bwd)

PLANT(
    "decay_scan",
    "x=TxN a=N,domain=unit",
    ("off-by-one", "wrong-shift wrong-gradient wrong-factor", "a", "(dx * before).sum(0)", "(dx * h).sum(0)"),
    ("order-forgotten", "wrong-shift wrong-gradient transposed", "x a", ", reverse=True", ""),
    ("carry-forgotten", "wrong-gradient wrong-factor missing-term", "a", "(dx * before).sum(0)", "(g * before).sum(0)"),
    ("missing-reduction", "missing-reduction wrong-shape", "a", "(dx * before).sum(0)", "dx * before"),
    flags=True,
)


@jax.custom_vjp
def phase_shift(z, theta):
    return z * jnp.exp(1j * theta)


def phase_shift_fwd(z, theta):
    y = phase_shift(z, theta)
    return y, (y, theta)


def phase_shift_bwd(res, g):
    y, theta = res
    return g * jnp.exp(1j * theta), jnp.real(g * 1j * y)


phase_shift.defvjp(phase_shift_fwd, phase_shift_bwd)

PLANT(
    "phase_shift",
    "z=NxM,dtype=complex128 theta=NxM",
    (
        "conjugate",
        "wrong-factor missing-conjugate wrong-gradient",
        "z",
        "g * jnp.exp(1j * theta)",
        "g * jnp.exp(-1j * theta)",
    ),
    ("sign", "wrong-sign", "theta", "jnp.real(g * 1j * y)", "jnp.real(g * -1j * y)"),
    ("imaginary-for-real", "wrong-factor wrong-gradient", "theta", "jnp.real(g * 1j * y)", "jnp.imag(g * 1j * y)"),
    flags=True,
)


@jax.custom_vjp
def solve_spd(a, b):
    return jnp.linalg.solve(a, b)


def solve_spd_fwd(a, b):
    x = solve_spd(a, b)
    return x, (a, x)


def solve_spd_bwd(res, g):
    a, x = res
    db = jnp.linalg.solve(a.T, g)
    return -db @ x.T, db


solve_spd.defvjp(solve_spd_fwd, solve_spd_bwd)

PLANT(
    "solve_spd",
    "a=MxM,domain=spd b=MxN",
    ("sign", "wrong-sign", "a", "-db @ x.T", "db @ x.T"),
    ("transposed-result", "transposed", "a", "-db @ x.T", "-x @ db.T"),
    ("wrong-variable", "wrong-gradient wrong-factor", "a", "-db @ x.T", "-g @ x.T"),
    ("inverse-forgotten", "wrong-gradient wrong-factor", "b a", "db = jnp.linalg.solve(a.T, g)", "db = a.T @ g"),
    flags=True,
)
