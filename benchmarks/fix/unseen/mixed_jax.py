"""Functions of several fields with custom rules in JAX."""

import jax
import jax.numpy as jnp

from benchmarks.fix.other_hand.record import Family

PLANT = Family("mixed", "jax", __file__)


@jax.custom_vjp
def kepler_energy(position, velocity):
    return 0.5 * (velocity**2).sum(-1) - 1 / jnp.sqrt((position**2).sum(-1) + 0.5)


def kepler_energy_fwd(position, velocity):
    return kepler_energy(position, velocity), (position, velocity)


def kepler_energy_bwd(kept, g):
    position, velocity = kept
    cube = ((position**2).sum(-1) + 0.5) ** 1.5
    return g[:, None] * position / cube[:, None], g[:, None] * velocity


kepler_energy.defvjp(kepler_energy_fwd, kepler_energy_bwd)

PLANT(
    "kepler_energy",
    "position=Nx2 velocity=Nx2",
    ("sign", "wrong-sign", "position", "return g[:, None] * position /", "return -g[:, None] * position /"),
    ("factor", "wrong-factor", "velocity", ", g[:, None] * velocity", ", 2 * g[:, None] * velocity"),
    (
        "swap",
        "swapped-gradients",
        "position velocity",
        "g[:, None] * position / cube[:, None], g[:, None] * velocity",
        "g[:, None] * velocity, g[:, None] * position / cube[:, None]",
    ),
    flags=True,
)


@jax.custom_vjp
def soft_blend(a, b, t):
    s = jax.nn.sigmoid(t)
    return a + s[:, None] * (b - a)


def soft_blend_fwd(a, b, t):
    return soft_blend(a, b, t), (a, b, t)


def soft_blend_bwd(kept, g):
    a, b, t = kept
    s = jax.nn.sigmoid(t)
    return g * (1 - s)[:, None], g * s[:, None], (g * (b - a)).sum(1) * s * (1 - s)


soft_blend.defvjp(soft_blend_fwd, soft_blend_bwd)

PLANT(
    "soft_blend",
    "a=NxM b=NxM t=N",
    ("inner-factor", "wrong-factor", "t", "(g * (b - a)).sum(1) * s * (1 - s)", "(g * (b - a)).sum(1) * s"),
    ("missing-term", "missing-term wrong-factor", "a", "g * (1 - s)[:, None], g * s", "g, g * s"),
    ("missing-reduction", "missing-reduction", "t", "(g * (b - a)).sum(1) * s", "(g * (b - a))[:, 0] * s"),
    flags=True,
)


@jax.custom_vjp
def banded(x, band):
    return jnp.where(jnp.abs(x) < 1.0, x * band, jnp.sign(x) * band)


def banded_fwd(x, band):
    return banded(x, band), (x, band)


def banded_bwd(kept, g):
    x, band = kept
    inside = jnp.abs(x) < 1.0
    return jnp.where(inside, g * band, 0.0), jnp.where(inside, g * x, g * jnp.sign(x)).sum(0)


banded.defvjp(banded_fwd, banded_bwd)

PLANT(
    "banded",
    "x=NxM band=M",
    ("mask", "wrong-entries", "x", "jnp.where(inside, g * band, 0.0)", "g * band"),
    ("branch", "wrong-entries wrong-gradient wrong-factor", "band", "g * x, g * jnp.sign(x)", "g * x, g"),
    (
        "mask",
        "wrong-entries wrong-gradient",
        "x",
        "return jnp.where(inside, g * band, 0.0)",
        "return jnp.where(x < 1.0, g * band, 0.0)",
    ),
    flags=True,
)


@jax.custom_vjp
def mixer(x, w):
    return jnp.einsum("btd,de->bet", x, w)


def mixer_fwd(x, w):
    return mixer(x, w), (x, w)


def mixer_bwd(kept, g):
    x, w = kept
    return jnp.einsum("bet,de->btd", g, w), jnp.einsum("btd,bet->de", x, g)


mixer.defvjp(mixer_fwd, mixer_bwd)

PLANT(
    "mixer",
    "x=BxNxN w=NxN",
    ("transposition", "transposed", "x", '"bet,de->btd"', '"bet,ed->btd"'),
    ("permutation", "transposed", "x", '"bet,de->btd"', '"bet,de->bdt"'),
    ("transposition", "transposed", "w", '"btd,bet->de"', '"btd,bet->ed"'),
    flags=True,
)
