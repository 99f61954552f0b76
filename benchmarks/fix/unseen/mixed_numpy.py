"""Functions of several fields with their vjps by hand, in NumPy."""

import numpy as np

from benchmarks.fix.other_hand.record import Family

PLANT = Family("mixed", "numpy", __file__)


YEARS = 4


def annuity(payment, rate):
    """The present value of a payment each year, for many rates."""
    factor = (1 - (1 + rate) ** -YEARS) / rate
    return payment * factor


def annuity_vjp(payment, rate, g):
    shrink = (1 + rate) ** -YEARS
    factor = (1 - shrink) / rate
    slope = (YEARS * shrink / (1 + rate) - factor) / rate
    return (g * factor).sum(), g * payment * slope


PLANT(
    "annuity",
    "payment=scalar rate=N,domain=positive",
    (
        "missing-term",
        "missing-term",
        "rate",
        "(YEARS * shrink / (1 + rate) - factor) / rate",
        "YEARS * shrink / (1 + rate) / rate",
    ),
    ("missing-reduction", "missing-reduction wrong-shape", "payment", "(g * factor).sum()", "g * factor"),
    ("missing-factor", "wrong-factor", "rate", "g * payment * slope", "g * slope"),
    flags=True,
)


def ray_sphere(origin, direction):
    """How far rays fly until they leave a sphere around the middle."""
    b = (origin * direction).sum(-1)
    return -b + np.sqrt(b * b - (origin * origin).sum(-1) + 25.0)


def ray_sphere_vjp(origin, direction, g):
    b = (origin * direction).sum(-1)
    root = np.sqrt(b * b - (origin * origin).sum(-1) + 25.0)
    db = g * (b / root - 1)
    return (
        db[:, None] * direction - (g / root)[:, None] * origin,
        db[:, None] * origin,
    )


PLANT(
    "ray_sphere",
    "origin=Nx3 direction=Nx3",
    (
        "missing-term",
        "missing-term",
        "origin",
        "db[:, None] * direction - (g / root)[:, None] * origin",
        "db[:, None] * direction",
    ),
    (
        "wrong-argument",
        "wrong-gradient wrong-factor swapped-gradients",
        "direction",
        "        db[:, None] * origin,",
        "        db[:, None] * direction,",
    ),
    ("missing-term", "missing-term wrong-factor", "origin direction", "g * (b / root - 1)", "g * b / root"),
    flags=True,
)


def spectrum_filter(signal, response):
    """A signal filtered in the frequency domain."""
    return np.fft.ifft(np.fft.fft(signal) * response)


def spectrum_filter_vjp(signal, response, g):
    spectrum = np.fft.fft(g) / g.shape[-1]
    to_product = spectrum
    return g.shape[-1] * np.fft.ifft(to_product * np.conj(response)), (to_product * np.conj(np.fft.fft(signal))).sum(0)


PLANT(
    "spectrum_filter",
    "signal=NxT,dtype=complex128 response=T,dtype=complex128",
    (
        "conjugate",
        "missing-conjugate wrong-gradient",
        "signal",
        "to_product * np.conj(response)",
        "to_product * response",
    ),
    ("conjugate", "missing-conjugate wrong-gradient", "response", "np.conj(np.fft.fft(signal))", "np.fft.fft(signal)"),
    ("size", "wrong-factor wrong-reduction", "response signal", "np.fft.fft(g) / g.shape[-1]", "np.fft.fft(g)"),
    flags=True,
)


def bilinear(grid, x, y):
    """Values between the nodes of a grid, at fractions of its first cell."""
    top = grid[0, 0] * (1 - x) + grid[0, 1] * x
    low = grid[1, 0] * (1 - x) + grid[1, 1] * x
    return top * (1 - y) + low * y


def bilinear_vjp(grid, x, y, g):
    dgrid = np.zeros_like(grid)
    dgrid[0, 0] = (g * (1 - x) * (1 - y)).sum()
    dgrid[0, 1] = (g * x * (1 - y)).sum()
    dgrid[1, 0] = (g * (1 - x) * y).sum()
    dgrid[1, 1] = (g * x * y).sum()
    top = grid[0, 0] * (1 - x) + grid[0, 1] * x
    low = grid[1, 0] * (1 - x) + grid[1, 1] * x
    dx = (grid[0, 1] - grid[0, 0]) * (1 - y) + (grid[1, 1] - grid[1, 0]) * y
    return dgrid, g * dx, g * (low - top)


PLANT(
    "bilinear",
    "grid=2x2 x=N y=N",
    ("sign", "wrong-sign", "y", "g * (low - top)", "g * (top - low)"),
    (
        "shift",
        "wrong-entries wrong-shift transposed",
        "grid",
        "dgrid[0, 1] = (g * x * (1 - y)).sum()\n    dgrid[1, 0] = (g * (1 - x) * y).sum()",
        "dgrid[1, 0] = (g * x * (1 - y)).sum()\n    dgrid[0, 1] = (g * (1 - x) * y).sum()",
    ),
    (
        "missing-term",
        "missing-term",
        "x",
        "(grid[0, 1] - grid[0, 0]) * (1 - y) + (grid[1, 1] - grid[1, 0]) * y",
        "(grid[0, 1] - grid[0, 0]) * (1 - y)",
    ),
    ("missing-entry", "wrong-entries", "grid", "    dgrid[1, 1] = (g * x * y).sum()\n", ""),
    flags=True,
)


def whiten(x, mix):
    """Centred rows, mixed by a matrix."""
    return (x - x.mean(0)) @ mix.T


def whiten_vjp(x, mix, g):
    dz = g @ mix
    return dz - dz.mean(0), g.T @ (x - x.mean(0))


PLANT(
    "whiten",
    "x=NxM mix=MxM",
    ("missing-term", "missing-term", "x", "dz - dz.mean(0)", "dz"),
    ("transposition", "transposed", "x", "dz = g @ mix", "dz = g @ mix.T"),
    ("transposition", "transposed", "mix", "g.T @ (x - x.mean(0))", "(x - x.mean(0)).T @ g"),
    ("wrong-axis", "wrong-reduction missing-term", "x", "dz - dz.mean(0)", "dz - dz.mean(1, keepdims=True)"),
    flags=True,
)


def running_total(flow):
    """What has flowed up to each moment, and its square."""
    level = np.cumsum(flow, axis=-1)
    return level, level**2


def running_total_vjp(flow, g):
    g_level, g_square = g
    level = np.cumsum(flow, axis=-1)
    inner = g_level + 2 * level * g_square
    return np.flip(np.cumsum(np.flip(inner, -1), axis=-1), -1)


PLANT(
    "running_total",
    "flow=NxT",
    (
        "order",
        "wrong-shift wrong-gradient missing-term",
        "flow",
        "np.flip(np.cumsum(np.flip(inner, -1), axis=-1), -1)",
        "np.cumsum(inner, axis=-1)",
    ),
    (
        "ignored-cotangent",
        "ignores-grad-output missing-term",
        "flow",
        "g_level + 2 * level * g_square",
        "2 * level * g_square",
    ),
    (
        "wrong-axis",
        "wrong-reduction wrong-shift wrong-gradient",
        "flow",
        "np.cumsum(np.flip(inner, -1), axis=-1)",
        "np.cumsum(np.flip(inner, -1), axis=0)",
    ),
    flags=True,
)
