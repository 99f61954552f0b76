"""Functions of one entry that leave PyTorch for NumPy or SciPy: autodiff of the body has nothing to say."""

from __future__ import annotations

import functools
import math

import numpy as np
import torch
from mpmath import mp
from scipy import special

from benchmarks.correct.draws import beside, decades, normal, within
from benchmarks.correct.elementwise import entry
from benchmarks.correct.specimen import Collection

ARRAYS = Collection("arrays")
add = functools.partial(entry, ARRAYS, style="numpy")
half = functools.partial(entry, ARRAYS, style="numpy forward")
TWO_ROOT_PI = 2 / math.sqrt(math.pi)


add("sine and linear", lambda x: np.sin(x) + 2 * x, lambda x: np.cos(x) + 2, lambda x: mp.sin(x) + 2 * x, normal(6))
half("tanh of NumPy", np.tanh, lambda y: 1 - y * y, mp.tanh, normal(6), decades(-8, -7), from_output=True)
half("exp of NumPy", np.exp, lambda y: y, mp.exp, normal(6), within(-40, 40), from_output=True)
half("cosine of NumPy", np.cos, lambda x: -torch.sin(x), mp.cos, normal(6), normal(6, scale=1e4))
half("arctangent of NumPy", np.arctan, lambda x: 1 / (1 + x * x), mp.atan, normal(6), decades(3, 6))
half("logarithm of NumPy", np.log, lambda x: 1 / x, mp.log, decades(-15, 15, signed=False))
half("power 2.5 of NumPy", lambda x: x**2.5, lambda x: 2.5 * x**1.5, lambda x: mp.mpf(x) ** mp.mpf(2.5), within(0.1, 4))
add("erf of SciPy", special.erf, lambda x: TWO_ROOT_PI * np.exp(-x * x), mp.erf, normal(6), within(4, 5.5))
add("erfc of SciPy", special.erfc, lambda x: -TWO_ROOT_PI * np.exp(-x * x), mp.erfc, within(5, 20))
add(
    "erfcx",
    special.erfcx,
    lambda x: 2 * x * special.erfcx(x) - TWO_ROOT_PI,
    lambda x: mp.exp(x * x) * mp.erfc(x),
    within(-2, 3),
    tolerance=1e-8,
)
add(
    "log of normal distribution",
    special.log_ndtr,
    lambda x: np.exp(-x * x / 2 - special.log_ndtr(x)) / math.sqrt(2 * math.pi),
    lambda x: mp.log(mp.erfc(-x / mp.sqrt(2)) / 2),
    within(-5, 5),
    within(-30, -10),
    tolerance=1e-8,
)
add(
    "normal quantile",
    special.ndtri,
    lambda p: math.sqrt(2 * math.pi) * np.exp(special.ndtri(p) ** 2 / 2),
    lambda p: mp.sqrt(2) * mp.erfinv(2 * p - 1),
    within(0.01, 0.99),
    tolerance=1e-8,
)
add(
    "gamma",
    special.gamma,
    lambda x: special.gamma(x) * special.digamma(x),
    mp.gamma,
    within(0.2, 6),
    within(-2.8, -2.2),
    tolerance=1e-8,
)
add(
    "log of gamma of SciPy", special.gammaln, special.digamma, mp.loggamma, within(0.1, 30), decades(4, 8, signed=False)
)
add(
    "trigamma",
    lambda x: special.polygamma(1, x),
    lambda x: special.polygamma(2, x),
    lambda x: mp.psi(1, x),
    within(0.3, 5),
    tolerance=1e-8,
)
add("Bessel j0", special.j0, lambda x: -special.j1(x), lambda x: mp.besselj(0, x), normal(6, scale=4), tolerance=1e-8)
add(
    "Bessel j1",
    special.j1,
    lambda x: special.j0(x) - special.j1(x) / x,
    lambda x: mp.besselj(1, x),
    within(0.5, 20),
    tolerance=1e-8,
)
add("Bessel y0", special.y0, lambda x: -special.y1(x), lambda x: mp.bessely(0, x), within(0.1, 20), tolerance=1e-8)
add("Bessel k0", special.k0, lambda x: -special.k1(x), lambda x: mp.besselk(0, x), within(0.1, 20), tolerance=1e-8)
add("Bessel i0", special.i0, special.i1, lambda x: mp.besseli(0, x), normal(6, scale=3), tolerance=1e-8)
add(
    "Bessel of order 2.5",
    lambda x: special.jv(2.5, x),
    lambda x: special.jvp(2.5, x),
    lambda x: mp.besselj(mp.mpf(2.5), x),
    within(0.5, 15),
    tolerance=1e-8,
)
add(
    "spherical Bessel",
    lambda x: special.spherical_jn(3, x),
    lambda x: special.spherical_jn(3, x, derivative=True),
    lambda x: mp.sqrt(mp.pi / (2 * x)) * mp.besselj(mp.mpf(3.5), x),
    within(1, 12),
    tolerance=1e-8,
)
add("Airy", lambda x: special.airy(x)[0], lambda x: special.airy(x)[1], mp.airyai, within(-8, 4), tolerance=1e-8)
add(
    "Lambert W",
    lambda x: special.lambertw(x).real,
    lambda x: 1 / (np.exp(special.lambertw(x).real) * (1 + special.lambertw(x).real)),
    lambda x: mp.lambertw(x).real,
    within(0.1, 20),
    beside(-math.exp(-1), -4, -2, above=True),
    tolerance=1e-7,
)
add(
    "exponential integral", special.exp1, lambda x: -np.exp(-x) / x, lambda x: mp.e1(x), within(0.1, 20), tolerance=1e-8
)
add(
    "Dawson",
    special.dawsn,
    lambda x: 1 - 2 * x * special.dawsn(x),
    lambda x: mp.sqrt(mp.pi) / 2 * mp.exp(-x * x) * mp.erfi(x),
    normal(6, scale=2),
    tolerance=1e-8,
)
add(
    "Fresnel sine",
    lambda x: special.fresnel(x)[0],
    lambda x: np.sin(math.pi / 2 * x * x),
    mp.fresnels,
    normal(6, scale=2),
    tolerance=1e-8,
)
add("sine integral", lambda x: special.sici(x)[0], lambda x: np.sin(x) / x, mp.si, within(0.5, 15), tolerance=1e-8)
add(
    "dilogarithm",
    special.spence,
    lambda x: np.log(x) / (1 - x),
    lambda x: mp.polylog(2, 1 - x),
    within(0.1, 0.9),
    tolerance=1e-7,
)
add(
    "complete elliptic integral",
    special.ellipk,
    lambda m: (special.ellipe(m) - (1 - m) * special.ellipk(m)) / (2 * m * (1 - m)),
    mp.ellipk,
    within(0.05, 0.99),
    tolerance=1e-7,
)
add(
    "zeta",
    special.zeta,
    lambda x: np.array([float(mp.zeta(v, derivative=1)) for v in x]),
    mp.zeta,
    within(1.5, 6),
    tolerance=1e-8,
)
add(
    "regularised gamma of 2.5",
    lambda x: special.gammainc(2.5, x),
    lambda x: np.exp(-x) * x**1.5 / special.gamma(2.5),
    lambda x: mp.gammainc(mp.mpf(2.5), 0, x, regularized=True),
    within(0.1, 12),
    tolerance=1e-8,
)
add(
    "regularised beta",
    lambda x: special.betainc(2.0, 3.5, x),
    lambda x: x * (1 - x) ** 2.5 / special.beta(2.0, 3.5),
    lambda x: mp.betainc(2, mp.mpf(3.5), 0, x, regularized=True),
    within(0.05, 0.95),
    tolerance=1e-8,
)
add(
    "hypergeometric",
    lambda x: special.hyp2f1(0.5, 1.5, 2.5, x),
    lambda x: 0.3 * special.hyp2f1(1.5, 2.5, 3.5, x),
    lambda x: mp.hyp2f1(mp.mpf(0.5), mp.mpf(1.5), mp.mpf(2.5), x),
    within(-0.8, 0.8),
    tolerance=1e-8,
)
add(
    "Kummer's function",
    lambda x: special.hyp1f1(1.5, 2.5, x),
    lambda x: 0.6 * special.hyp1f1(2.5, 3.5, x),
    lambda x: mp.hyp1f1(mp.mpf(1.5), mp.mpf(2.5), x),
    normal(6, scale=2),
    tolerance=1e-8,
)
add(
    "Legendre polynomial of degree 20",
    lambda x: special.eval_legendre(20, x),
    lambda x: 20 * (x * special.eval_legendre(20, x) - special.eval_legendre(19, x)) / (x * x - 1),
    lambda x: mp.legendre(20, x),
    within(-0.95, 0.95),
    tolerance=1e-7,
)
add(
    "Chebyshev polynomial of degree 40",
    lambda x: np.cos(40 * np.arccos(x)),
    lambda x: 40 * np.sin(40 * np.arccos(x)) / np.sqrt(1 - x * x),
    lambda x: mp.cos(40 * mp.acos(x)),
    within(-0.98, 0.98),
    tolerance=1e-8,
)
add(
    "Hermite polynomial of degree 8",
    lambda x: special.eval_hermite(8, x),
    lambda x: 16 * special.eval_hermite(7, x),
    lambda x: mp.hermite(8, x),
    normal(6),
    tolerance=1e-8,
)
add(
    "expit of SciPy",
    special.expit,
    lambda x: special.expit(x) * special.expit(-x),
    lambda x: 1 / (1 + mp.exp(-x)),
    normal(6, scale=10),
)
add(
    "xlogy",
    lambda x: special.xlogy(x, x),
    lambda x: np.log(x) + 1,
    lambda x: x * mp.log(x),
    decades(-8, 2, signed=False),
)
add("entropy of SciPy", special.entr, lambda x: -np.log(x) - 1, lambda x: -x * mp.log(x), within(0.01, 2))
add(
    "Box-Cox of 0.3",
    lambda x: special.boxcox(x, 0.3),
    lambda x: x**-0.7,
    lambda x: (mp.mpf(x) ** mp.mpf(0.3) - 1) / mp.mpf(0.3),
    within(0.1, 9),
)
add(
    "Voigt",
    lambda x: special.voigt_profile(x, 1.0, 0.3),
    lambda x: -(special.wofz((x + 0.3j) / math.sqrt(2)) * (x + 0.3j)).real / math.sqrt(2 * math.pi),
    lambda x: (
        (mp.exp(-(((x + mp.mpc(0, 0.3)) / mp.sqrt(2)) ** 2)) * mp.erfc(-1j * (x + mp.mpc(0, 0.3)) / mp.sqrt(2))).real
        / mp.sqrt(2 * mp.pi)
    ),
    normal(6),
    tolerance=1e-7,
)
add(
    "sum of a long series",
    lambda x: sum(np.sin(k * x) / k**2 for k in range(1, 60)),
    lambda x: sum(np.cos(k * x) / k for k in range(1, 60)),
    lambda x: mp.fsum(mp.sin(k * x) / k**2 for k in range(1, 60)),
    normal(6),
)
add(
    "Weierstrass, six terms",
    lambda x: sum(0.5**k * np.cos(7.0**k * x) for k in range(6)),
    lambda x: -sum(3.5**k * np.sin(7.0**k * x) for k in range(6)),
    lambda x: mp.fsum(mp.mpf(0.5) ** k * mp.cos(7**k * x) for k in range(6)),
    normal(6),
)
add(
    "continued fraction",
    lambda x: x / (1 + x / (2 + x / (3 + x / 4))),
    lambda x: np.imag((z := x + 1e-200j) / (1 + z / (2 + z / (3 + z / 4)))) / 1e-200,
    lambda x: x / (1 + x / (2 + x / (3 + x / 4))),
    within(0, 5),
)
add(
    "complex step inside",
    lambda x: np.exp(np.sin(x)) / (1 + x * x),
    lambda x: np.imag(np.exp(np.sin(x + 1e-200j)) / (1 + (x + 1e-200j) ** 2)) / 1e-200,
    lambda x: mp.exp(mp.sin(x)) / (1 + x * x),
    normal(6),
)
half(
    "hypotenuse of NumPy",
    lambda x: np.hypot(x, 1e-3),
    lambda x: x * torch.rsqrt(x * x + 1e-6),
    lambda x: mp.sqrt(x * x + mp.mpf(1e-3) ** 2),
    normal(6),
    decades(-5, -2),
    tolerance=1e-8,
)
half(
    "Gauss bell far out",
    lambda x: np.exp(-0.5 * (x / 0.1) ** 2),
    lambda x: -100 * x * torch.exp(-50 * x * x),
    lambda x: mp.exp(-((x / mp.mpf(0.1)) ** 2) / 2),
    within(0.5, 1.5),
    tolerance=1e-8,
)
half("offset 1e6 of NumPy", lambda x: 1e6 + np.sinh(x), torch.cosh, lambda x: 10**6 + mp.sinh(x), normal(6))
half(
    "difference of logarithms",
    lambda x: np.log(1e6 + x) - np.log(1e6),
    lambda x: 1 / (1e6 + x),
    lambda x: mp.log(10**6 + x) - mp.log(10**6),
    normal(6),
    tolerance=1e-8,
)
half(
    "log of cosh of NumPy",
    lambda x: np.logaddexp(x, -x),
    torch.tanh,
    lambda x: mp.log(2 * mp.cosh(x)),
    normal(6),
    within(10, 300),
)
half(
    "cubic spline piece",
    lambda x: np.where(np.abs(x) < 1, 1 - 1.5 * x**2 + 0.75 * np.abs(x) ** 3, 0.25 * np.maximum(2 - np.abs(x), 0) ** 3),
    lambda x: torch.where(
        x.abs() < 1, -3 * x + 2.25 * x * x.abs(), -0.75 * torch.sign(x) * torch.relu(2 - x.abs()) ** 2
    ),
    lambda x: 1 - mp.mpf(1.5) * x**2 + mp.mpf(0.75) * abs(x) ** 3 if abs(x) < 1 else max(2 - abs(x), 0) ** 3 / 4,
    normal(6),
)
add(
    "table, linear between knots",
    lambda x: np.interp(x, np.arange(-6, 7.0), np.arange(-6, 7.0) ** 2),
    lambda x: 2 * np.floor(x) + 1,
    lambda x: mp.floor(x) ** 2 + (x - mp.floor(x)) * (2 * mp.floor(x) + 1),
    normal(6),
)
