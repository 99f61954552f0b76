"""Linear algebra: products, solves, inverses, determinants, Cholesky factors, well and ill conditioned."""

from __future__ import annotations

import functools

import numpy as np
import torch
from torch import linalg

from benchmarks.correct.draws import conditioned, drawn, normal, spd
from benchmarks.correct.general import general
from benchmarks.correct.specimen import Collection

MATRICES = Collection("matrices")
add = functools.partial(general, MATRICES)


def symmetric(m):
    return (m + m.mT) / 2


def shifted(n):
    """A matrix far from singular."""
    return drawn(lambda rng: rng.standard_normal((n, n)) + 2 * n * np.eye(n))


def lower_half(m):
    """Φ of the Cholesky rule: the lower triangle with half the diagonal."""
    return torch.tril(m) - 0.5 * torch.diag_embed(torch.diagonal(m, dim1=-2, dim2=-1))


def hilbert(n):
    return drawn(lambda rng: 1.0 / (np.arange(n)[:, None] + np.arange(n) + 1) * (1 + 1e-3 * rng.random((n, n))))


def solve_vjp(g, y, a, b):
    gb = linalg.solve(a.mT, g)
    return -torch.outer(gb, y), gb


def cholesky_vjp(g, y, a):
    inner = lower_half(y.mT @ torch.tril(g))
    left = linalg.solve_triangular(y.mT, inner, upper=True)
    return symmetric(linalg.solve_triangular(y, left, upper=False, left=False))


def symmetric_cholesky(a):
    return linalg.cholesky(symmetric(a))


def inverse_vjp(g, y, a):
    return -(y.mT @ g @ y.mT)


def triangular_vjp(g, y, a, b):
    gb = linalg.solve_triangular(torch.tril(a).mT, g, upper=True)
    return torch.tril(-gb @ y.mT), gb


def least_squares(a, b):
    return linalg.solve(a.mT @ a, a.mT @ b)


def least_squares_vjp(g, y, a, b):
    w = linalg.solve(a.mT @ a, g)
    residual = b - a @ y
    return torch.outer(residual, w) - torch.outer(a @ w, y), a @ w


def mahalanobis(x, a):
    return x @ linalg.solve(a, x)


def mahalanobis_vjp(g, y, x, a):
    right, left = linalg.solve(a, x), linalg.solve(a.mT, x)
    return g * (right + left), -g * torch.outer(left, right)


def gaussian_density(x, a):
    factor = linalg.cholesky(symmetric(a))
    z = linalg.solve_triangular(factor, x[:, None], upper=False)
    return -0.5 * (z**2).sum() - factor.diagonal().log().sum()


def gaussian_density_vjp(g, y, x, a):
    inverse = linalg.inv(symmetric(a))
    w = inverse @ x
    return -g * w, g * 0.5 * (torch.outer(w, w) - inverse)


add("matrix product", lambda a, b: a @ b, lambda g, y, a, b: (g @ b.mT, a.mT @ g), normal(3, 4), normal(4, 2))
add(
    "product of tiny and huge",
    lambda a, b: a @ b,
    lambda g, y, a, b: (g @ b.mT, a.mT @ g),
    normal(3, 4, scale=1e-12),
    normal(4, 2, scale=1e9),
)
add("Gram matrix", lambda a: a @ a.mT, lambda g, y, a: (g + g.mT) @ a, normal(4, 3))
add(
    "quadratic form",
    lambda a, x: x @ a @ x,
    lambda g, y, a, x: (g * torch.outer(x, x), g * (a @ x + a.mT @ x)),
    normal(4, 4),
    normal(4),
)
add("outer product", torch.outer, lambda g, y, a, b: (g @ b, g.mT @ a), normal(3), normal(5))
add(
    "Kronecker product",
    torch.kron,
    lambda g, y, a, b: (
        torch.einsum("ikjl,kl->ij", g.reshape(2, 3, 2, 2), b),
        torch.einsum("ikjl,ij->kl", g.reshape(2, 3, 2, 2), a),
    ),
    normal(2, 2),
    normal(3, 2),
)
add(
    "bilinear einsum",
    lambda a, b, c: torch.einsum("ij,jk,ik->i", a, b, c),
    lambda g, y, a, b, c: (
        torch.einsum("i,jk,ik->ij", g, b, c),
        torch.einsum("i,ij,ik->jk", g, a, c),
        torch.einsum("i,ij,jk->ik", g, a, b),
    ),
    normal(3, 4),
    normal(4, 2),
    normal(3, 2),
)
add(
    "cubed matrix",
    lambda a: a @ a @ a,
    lambda g, y, a: g @ a.mT @ a.mT + a.mT @ g @ a.mT + a.mT @ a.mT @ g,
    normal(3, 3),
)
add(
    "commutator",
    lambda a, b: a @ b - b @ a,
    lambda g, y, a, b: (g @ b.mT - b.mT @ g, a.mT @ g - g @ a.mT),
    normal(3, 3),
    normal(3, 3),
)
add(
    "trace of a product",
    lambda a, b: torch.trace(a @ b),
    lambda g, y, a, b: (g * b.mT, g * a.mT),
    normal(3, 4),
    normal(4, 3),
)
add("solve", linalg.solve, solve_vjp, shifted(4), normal(4))
add("ill-conditioned solve", linalg.solve, solve_vjp, conditioned(5, 5, 1e6), normal(5), tolerance=1e-6, order=1)
add("Hilbert solve", linalg.solve, solve_vjp, hilbert(5), normal(5), tolerance=1e-5, order=1)
add("inverse", linalg.inv, inverse_vjp, shifted(4))
add("ill-conditioned inverse", linalg.inv, inverse_vjp, conditioned(4, 4, 1e5), tolerance=1e-6)
add("inverse of a symmetric matrix", linalg.inv, inverse_vjp, spd(4))
add("determinant", linalg.det, lambda g, y, a: g * y * linalg.inv(a).mT, normal(4, 4))
add(
    "determinant of a nearly singular matrix",
    linalg.det,
    lambda g, y, a: g * y * linalg.inv(a).mT,
    conditioned(3, 3, 1e7),
    tolerance=1e-5,
    order=1,
)
add("logarithm of the determinant", lambda a: linalg.slogdet(a)[1], lambda g, y, a: g * linalg.inv(a).mT, normal(4, 4))
add(
    "log determinant of a symmetric matrix",
    lambda a: torch.logdet(a),
    lambda g, y, a: g * linalg.inv(a).mT,
    spd(5, 0.01, 10),
)
add("Cholesky of the symmetric part", symmetric_cholesky, cholesky_vjp, spd(4))
add("Cholesky, ill-conditioned", symmetric_cholesky, cholesky_vjp, spd(4, 1e-6, 1.0), tolerance=1e-6, order=1)
add(
    "Cholesky, lower triangle only",
    lambda a: linalg.cholesky(torch.tril(a) + torch.tril(a, -1).mT),
    lambda g, y, a: (lambda s: torch.tril(2 * s) - torch.diag_embed(s.diagonal()))(cholesky_vjp(g, y, a)),
    spd(4),
)
add("Frobenius norm", lambda a: (a * a).sum().sqrt(), lambda g, y, a: g * a / y, normal(4, 3))
add(
    "pseudo-inverse of full rank",
    linalg.pinv,
    lambda g, y, a: -(y.mT @ g @ y.mT) + (torch.eye(len(a), dtype=a.dtype) - a @ y) @ g.mT @ (y @ y.mT),
    normal(5, 3),
    tolerance=1e-8,
)
add(
    "triangular solve",
    lambda a, b: linalg.solve_triangular(torch.tril(a), b, upper=False),
    triangular_vjp,
    shifted(4),
    normal(4, 2),
)
add("least squares", least_squares, least_squares_vjp, normal(6, 3), normal(6))
add(
    "least squares, collinear",
    least_squares,
    least_squares_vjp,
    conditioned(6, 3, 1e3),
    normal(6),
    order=1,
    tolerance=1e-6,
)
add("Mahalanobis distance", mahalanobis, mahalanobis_vjp, normal(4), spd(4))
add("Gaussian log density", gaussian_density, gaussian_density_vjp, normal(4), spd(4, 0.05, 3))
add(
    "Rayleigh quotient",
    lambda a, x: x @ a @ x / (x @ x),
    lambda g, y, a, x: (g * torch.outer(x, x) / (x @ x), g * (a @ x + a.mT @ x - 2 * y * x) / (x @ x)),
    normal(4, 4),
    normal(4),
)
add(
    "trace of the inverse",
    lambda a: torch.trace(linalg.inv(a)),
    lambda g, y, a: -g * (linalg.inv(a) @ linalg.inv(a)).mT,
    shifted(4),
)
add(
    "solve by NumPy",
    np.linalg.solve,
    lambda g, y, a, b: (lambda w: (-np.outer(w, y), w))(np.linalg.solve(a.T, g)),
    shifted(4),
    normal(4),
    numpy=True,
    reference=linalg.solve,
)
add("inverse by NumPy", np.linalg.inv, lambda g, y, a: -(y.T @ g @ y.T), shifted(4), numpy=True, reference=linalg.inv)
add(
    "ill-conditioned solve by NumPy",
    np.linalg.solve,
    lambda g, y, a, b: (lambda w: (-np.outer(w, y), w))(np.linalg.solve(a.T, g)),
    conditioned(5, 5, 1e7),
    normal(5),
    numpy=True,
    reference=linalg.solve,
    tolerance=1e-6,
)
add(
    "determinant by NumPy",
    lambda a: np.asarray(np.linalg.det(a)),
    lambda g, y, a: g * y * np.linalg.inv(a).T,
    normal(5, 5),
    numpy=True,
    reference=linalg.det,
)
add(
    "log determinant by NumPy",
    lambda a: np.asarray(np.linalg.slogdet(a)[1]),
    lambda g, y, a: g * np.linalg.inv(a).T,
    spd(6, 1e-4, 1e3),
    numpy=True,
    reference=torch.logdet,
    tolerance=1e-8,
)
add(
    "lower triangle of Cholesky by NumPy",
    np.linalg.cholesky,
    lambda g, y, a: (lambda s: np.tril(s + s.T) - np.diag(s.diagonal()))(
        (lambda i, m: i.T @ (np.tril(m) - np.diag(m.diagonal()) / 2) @ i)(np.linalg.inv(y), y.T @ np.tril(g))
    ),
    spd(4),
    numpy=True,
    reference=lambda a: linalg.cholesky(torch.tril(a) + torch.tril(a, -1).mT),
)
