"""Finance, scattered rows and geometry with custom rules in JAX."""

import jax
import jax.numpy as jnp

from benchmarks.fix.other_hand.record import Family

PLANT = Family("science", "jax", __file__)


@jax.custom_vjp
def option_value(spot, vol):
    """An at-the-money call by Bachelier's formula, with strike 1."""
    d = (spot - 1.0) / vol
    return (spot - 1.0) * jax.scipy.stats.norm.cdf(d) + vol * jax.scipy.stats.norm.pdf(d)


def option_value_fwd(spot, vol):
    return option_value(spot, vol), (spot, vol)


def option_value_bwd(res, g):
    spot, vol = res
    d = (spot - 1.0) / vol
    return g * jax.scipy.stats.norm.cdf(d), g * jax.scipy.stats.norm.pdf(d)


option_value.defvjp(option_value_fwd, option_value_bwd)

PLANT(
    "option_value",
    "spot=N vol=N,domain=positive",
    ("wrong-function", "wrong-factor wrong-gradient", "spot", "norm.cdf(d), g", "norm.pdf(d), g"),
    (
        "swapped-two",
        "swapped-gradients",
        "spot vol",
        "return g * jax.scipy.stats.norm.cdf(d), g * jax.scipy.stats.norm.pdf(d)",
        "return g * jax.scipy.stats.norm.pdf(d), g * jax.scipy.stats.norm.cdf(d)",
    ),
    (
        "factor-extra",
        "wrong-factor",
        "vol",
        "g * jax.scipy.stats.norm.pdf(d)",
        "g * jax.scipy.stats.norm.pdf(d) * jnp.sqrt(2.0)",
    ),
    ("factor-extra", "wrong-factor", "vol", "g * jax.scipy.stats.norm.pdf(d)", "vol * g * jax.scipy.stats.norm.pdf(d)"),
    flags=True,
)


@jax.custom_vjp
def scatter_rows(values, index):
    return jnp.zeros((5, values.shape[1]), values.dtype).at[index].add(values)


def scatter_rows_fwd(values, index):
    return scatter_rows(values, index), index


def scatter_rows_bwd(index, g):
    return g[index], None


scatter_rows.defvjp(scatter_rows_fwd, scatter_rows_bwd)

PLANT(
    "scatter_rows",
    "values=MxN index=M,domain=indices,high=5",
    ("off-by-one", "wrong-shift wrong-gradient", "values", "g[index]", "g[index - 1]"),
    ("factor-extra", "wrong-factor", "values", "g[index]", "2.0 * g[index]"),
    ("permuted", "wrong-shift wrong-gradient wrong-entries", "values", "g[index]", "g[: len(index)]"),
    flags=True,
)


@jax.custom_vjp
def volume(a, b, c):
    return jnp.sum(a * jnp.cross(b, c), -1)


def volume_fwd(a, b, c):
    return volume(a, b, c), (a, b, c)


def volume_bwd(res, g):
    a, b, c = res
    g = g[:, None]
    return g * jnp.cross(b, c), g * jnp.cross(c, a), g * jnp.cross(a, b)


volume.defvjp(volume_fwd, volume_bwd)

PLANT(
    "volume",
    "a=Nx3 b=Nx3 c=Nx3",
    ("sign", "wrong-sign", "b", "g * jnp.cross(c, a)", "g * jnp.cross(a, c)"),
    ("wrong-variable", "wrong-gradient wrong-factor", "c", "jnp.cross(a, b)", "jnp.cross(a, c)"),
    (
        "swapped-three",
        "swapped-gradients",
        "a b c",
        "g * jnp.cross(b, c), g * jnp.cross(c, a), g * jnp.cross(a, b)",
        "g * jnp.cross(c, a), g * jnp.cross(a, b), g * jnp.cross(b, c)",
    ),
    ("factor-extra", "wrong-factor", "a", "return g * jnp.cross(b, c)", "return 3 * g * jnp.cross(b, c)"),
    flags=True,
)
