"""Physics, finance, geometry, signals and solvers with their vjps by hand, in NumPy."""

import numpy as np

from benchmarks.fix.other_hand.record import Family

PLANT = Family("science", "numpy", __file__)


def pair_energy(positions, epsilon, sigma):
    """Lennard-Jones energy of a few atoms."""
    d = positions[:, None] - positions[None]
    i, j = np.triu_indices(len(positions), 1)
    r2 = (d[i, j] ** 2).sum(-1) + 1.0
    s6 = (sigma**2 / r2) ** 3
    return 4 * epsilon * (s6**2 - s6).sum()


def pair_energy_vjp(positions, epsilon, sigma, g):
    i, j = np.triu_indices(len(positions), 1)
    d = positions[i] - positions[j]
    r2 = (d**2).sum(-1) + 1.0
    s6 = (sigma**2 / r2) ** 3
    force = 4 * epsilon * (-12 * s6**2 + 6 * s6) / r2
    out = np.zeros_like(positions)
    np.add.at(out, i, force[:, None] * d)
    np.add.at(out, j, -force[:, None] * d)
    return g * out, g * 4 * (s6**2 - s6).sum(), g * 4 * epsilon * (12 * s6**2 - 6 * s6).sum() / sigma


PLANT(
    "pair_energy",
    "positions=KxN epsilon=scalar,domain=positive sigma=scalar,domain=positive",
    (
        "sign",
        "wrong-sign missing-term wrong-gradient",
        "positions",
        "np.add.at(out, j, -force",
        "np.add.at(out, j, force",
    ),
    ("factor-missing", "wrong-factor missing-term", "positions", "-12 * s6**2 + 6 * s6", "-6 * s6**2 + 6 * s6"),
    # the row of the first atom, which is never the second of a pair, stays right
    ("missing-term", "missing-term wrong-entries", "positions", "    np.add.at(out, j, -force[:, None] * d)\n", ""),
    (
        "sign",
        "wrong-sign",
        "positions",
        "force = 4 * epsilon * (-12 * s6**2 + 6 * s6) / r2",
        "force = 4 * epsilon * (12 * s6**2 - 6 * s6) / r2",
    ),
    ("power", "wrong-factor wrong-gradient", "positions", "/ r2\n    out", "/ np.sqrt(r2)\n    out"),
    ("factor-missing", "wrong-factor", "sigma", ".sum() / sigma", ".sum()"),
    flags=True,
)


def discounted(cash, rate):
    """The present value of payments at the ends of years."""
    t = np.arange(1, cash.shape[-1] + 1)
    return (cash / (1 + rate[:, None]) ** t).sum(-1)


def discounted_vjp(cash, rate, g):
    t = np.arange(1, cash.shape[-1] + 1)
    base = 1 + rate[:, None]
    dcash = g[:, None] / base**t
    drate = -g * (t * cash / base ** (t + 1)).sum(-1)
    return dcash, drate


PLANT(
    "discounted",
    "cash=NxM rate=N,domain=unit",
    (
        "off-by-one",
        "wrong-factor wrong-shift",
        "cash",
        "dcash = g[:, None] / base**t",
        "dcash = g[:, None] / base ** (t - 1)",
    ),
    ("power", "wrong-factor wrong-gradient", "rate", "base ** (t + 1)", "base**t"),
    ("factor-missing", "wrong-factor wrong-gradient", "rate", "(t * cash / base", "(cash / base"),
    ("sign", "wrong-sign", "rate", "drate = -g", "drate = g"),
    ("swapped-two", "swapped-gradients wrong-shape", "cash rate", "return dcash, drate", "return drate, dcash"),
)


def portfolio_risk(weights, cov):
    return np.sqrt(weights @ cov @ weights)


def portfolio_risk_vjp(weights, cov, g):
    risk = np.sqrt(weights @ cov @ weights)
    dweights = g * (cov + cov.T) @ weights / (2 * risk)
    dcov = g * np.outer(weights, weights) / (2 * risk)
    return dweights, dcov


PLANT(
    "portfolio_risk",
    "weights=M cov=MxM,domain=spd",
    (
        "factor-missing",
        "wrong-factor",
        "cov",
        "np.outer(weights, weights) / (2 * risk)",
        "np.outer(weights, weights) / risk",
    ),
    ("missing-term", "missing-term wrong-factor transposed", "weights", "(cov + cov.T) @ weights", "cov @ weights"),
    ("power", "wrong-factor", "weights", "@ weights / (2 * risk)", "@ weights / (2 * risk**2)"),
    ("ignored-grad-output", "ignores-grad-output", "cov", "dcov = g * np.outer", "dcov = np.outer"),
    flags=True,
)


def smooth(signal, kernel):
    """Full convolution of rows with one kernel."""
    return np.stack([np.convolve(row, kernel) for row in signal])


def smooth_vjp(signal, kernel, g):
    dsignal = np.stack([np.convolve(row, kernel[::-1], mode="valid") for row in g])
    dkernel = sum(np.convolve(row, x[::-1], mode="valid") for row, x in zip(g, signal, strict=True))
    return dsignal, dkernel


PLANT(
    "smooth",
    "signal=NxT kernel=N",
    ("kernel-not-flipped", "wrong-shift wrong-entries wrong-gradient", "signal", "kernel[::-1]", "kernel"),
    ("kernel-not-flipped", "wrong-shift wrong-entries wrong-gradient", "kernel", "x[::-1]", "x"),
    ("wrong-argument", "wrong-shape", "signal", 'kernel[::-1], mode="valid"', 'kernel[::-1], mode="same"'),
    (
        "order-reversed",
        "wrong-shift wrong-entries wrong-gradient",
        "kernel",
        "return dsignal, dkernel",
        "return dsignal, dkernel[::-1]",
    ),
    flags=True,
)


def running_total(x):
    return np.cumsum(x, axis=1)


def running_total_vjp(x, g):
    return np.cumsum(g[:, ::-1], axis=1)[:, ::-1]


PLANT(
    "running_total",
    "x=MxM",
    (
        "order-forgotten",
        "wrong-shift wrong-gradient wrong-reduction",
        "x",
        "np.cumsum(g[:, ::-1], axis=1)[:, ::-1]",
        "np.cumsum(g, axis=1)",
    ),
    (
        "wrong-axis",
        "wrong-reduction wrong-gradient transposed",
        "x",
        "np.cumsum(g[:, ::-1], axis=1)",
        "np.cumsum(g[:, ::-1], axis=0)",
    ),
    (
        "off-by-one",
        "wrong-shift missing-term",
        "x",
        "np.cumsum(g[:, ::-1], axis=1)[:, ::-1]",
        "np.cumsum(g[:, ::-1], axis=1)[:, ::-1] - g",
    ),
    ("order-forgotten", "wrong-shift wrong-gradient wrong-reduction", "x", "axis=1)[:, ::-1]", "axis=1)"),
    flags=True,
)


def jacobi_step(u, f, h=0.5):
    """One sweep of Jacobi's method for Poisson's equation on a line."""
    out = u.copy()
    out[1:-1] = 0.5 * (u[:-2] + u[2:] - h * h * f[1:-1])
    return out


def jacobi_step_vjp(u, f, h, g):
    du, df = np.zeros_like(u), np.zeros_like(f)
    du[0], du[-1] = g[0], g[-1]
    du[:-2] += 0.5 * g[1:-1]
    du[2:] += 0.5 * g[1:-1]
    df[1:-1] = -0.5 * h * h * g[1:-1]
    return du, df


PLANT(
    "jacobi_step",
    "u=T f=T h:0.5",
    ("missing-entries", "wrong-entries", "u", "    du[0], du[-1] = g[0], g[-1]\n", ""),
    # the first two entries, which are no right neighbours, stay right
    ("missing-term", "missing-term wrong-shift wrong-entries", "u", "    du[2:] += 0.5 * g[1:-1]\n", ""),
    ("factor-missing", "wrong-factor", "f", "-0.5 * h * h * g", "-h * h * g"),
    ("sign", "wrong-sign", "f", "df[1:-1] = -0.5", "df[1:-1] = 0.5"),
    ("off-by-one", "wrong-shift wrong-entries wrong-gradient", "u", "du[2:] += 0.5 * g[1:-1]", "du[2:] += 0.5 * g[2:]"),
    ("power", "wrong-factor", "f", "-0.5 * h * h", "-0.5 * h"),
    flags=True,
)


def rotate(points, angle):
    c, s = np.cos(angle), np.sin(angle)
    return points @ np.array([[c, s], [-s, c]])


def rotate_vjp(points, angle, g):
    c, s = np.cos(angle), np.sin(angle)
    turn = np.array([[c, s], [-s, c]])
    dturn = np.array([[-s, c], [-c, -s]])
    return g @ turn.T, (g * (points @ dturn)).sum()


PLANT(
    "rotate",
    "points=Nx2 angle=scalar",
    ("transposed-operand", "transposed", "points", "g @ turn.T", "g @ turn"),
    ("one-entry", "wrong-entries wrong-gradient wrong-sign", "angle", "[[-s, c], [-c, -s]]", "[[-s, c], [-c, s]]"),
    ("sign", "wrong-sign", "angle", "(g * (points @ dturn)).sum()", "-(g * (points @ dturn)).sum()"),
    ("derivative-forgotten", "wrong-gradient wrong-factor", "angle", "(points @ dturn)", "(points @ turn)"),
    (
        "missing-reduction",
        "missing-reduction wrong-shape",
        "angle",
        "(g * (points @ dturn)).sum()",
        "g * (points @ dturn)",
    ),
    flags=True,
)


def power_spectrum(z):
    """|z|^2 of complex amplitudes."""
    return z.real**2 + z.imag**2


def power_spectrum_vjp(z, g):
    return 2 * g * z


PLANT(
    "power_spectrum",
    "z=NxM,dtype=complex128",
    ("conjugate", "missing-conjugate", "z", "2 * g * z", "2 * g * z.conj()"),
    ("factor-missing", "wrong-factor", "z", "2 * g * z", "g * z"),
    ("real-part", "missing-term wrong-gradient wrong-entries", "z", "2 * g * z", "2 * g * z.real"),
    flags=True,
)


def mix(a, b):
    """The product of complex matrices."""
    return a @ b


def mix_vjp(a, b, g):
    return g @ b.conj().T, a.conj().T @ g


PLANT(
    "mix",
    "a=NxN,dtype=complex128 b=NxN,dtype=complex128",
    ("conjugate", "missing-conjugate", "a", "g @ b.conj().T", "g @ b.T"),
    ("conjugate", "missing-conjugate", "b", "a.conj().T @ g", "a.T @ g"),
    ("transposed-operand", "transposed", "a", "g @ b.conj().T", "g @ b.conj()"),
    (
        "swapped-two",
        "swapped-gradients",
        "a b",
        "return g @ b.conj().T, a.conj().T @ g",
        "return a.conj().T @ g, g @ b.conj().T",
    ),
    flags=True,
)
