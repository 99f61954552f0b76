"""Spectra and matrix functions: eigenvalues, singular values, square roots, exponentials."""

from __future__ import annotations

import functools

import numpy as np
import torch
from torch import linalg

from benchmarks.correct.draws import conditioned, distinct, drawn, normal, spd
from benchmarks.correct.general import general
from benchmarks.correct.specimen import Collection

SPECTRA = Collection("spectra")
add = functools.partial(general, SPECTRA)


def symmetric(m):
    return (m + m.mT) / 2


def shifted(n):
    """A matrix far from singular."""
    return drawn(lambda rng: rng.standard_normal((n, n)) + 2 * n * np.eye(n))


def spectrum(a):
    return linalg.eigvalsh(symmetric(a))


def spectrum_vjp(g, y, a):
    vectors = linalg.eigh(symmetric(a))[1]
    return (vectors * g) @ vectors.mT


def singular_values_vjp(g, y, a):
    u, _, v = linalg.svd(a, full_matrices=False)
    return (u * g) @ v


def nuclear_vjp(g, y, a):
    u, _, v = linalg.svd(a, full_matrices=False)
    return g * (u @ v)


def matrix_exp_vjp(g, y, a):
    n = a.shape[-1]
    top = torch.cat([a.mT, g], dim=1)
    bottom = torch.cat([torch.zeros_like(a), a.mT], dim=1)
    return linalg.matrix_exp(torch.cat([top, bottom]))[:n, n:]


def root_of(a):
    values, vectors = linalg.eigh(symmetric(a))
    return (vectors * values.sqrt()) @ vectors.mT


def root_vjp(g, y, a):
    values, vectors = linalg.eigh(symmetric(a))
    roots = values.sqrt()
    inner = vectors.mT @ symmetric(g) @ vectors / (roots[:, None] + roots)
    return vectors @ inner @ vectors.mT


def polar(a):
    u, _, v = linalg.svd(a)
    return u @ v


def polar_vjp(g, y, a):
    u, s, v = linalg.svd(a)
    inner = u.mT @ g @ v.mT
    return u @ ((inner - inner.mT) / (s[:, None] + s)) @ v


def projector(a):
    return a @ linalg.solve(a.mT @ a, a.mT)


def projector_vjp(g, y, a):
    pseudo = linalg.solve(a.mT @ a, a.mT)
    return (torch.eye(len(y), dtype=a.dtype) - y) @ (g + g.mT) @ pseudo.mT


def qr_r(a):
    return linalg.qr(a)[1]


def qr_r_vjp(g, y, a):
    q, r = linalg.qr(a)
    m = r @ torch.triu(g).mT
    inner = torch.tril(m) + torch.tril(m, -1).mT
    # with only R wanted: M = R gR', copied from its lower triangle
    return q @ linalg.solve_triangular(r, inner.mT, upper=True).mT


def sylvester(a, b, c):
    n, m = len(a), len(b)
    big = torch.kron(a.contiguous(), torch.eye(m, dtype=a.dtype)) + torch.kron(
        torch.eye(n, dtype=a.dtype), b.mT.contiguous()
    )
    return linalg.solve(big, c.reshape(-1)).reshape(n, m)


def sylvester_vjp(g, y, a, b, c):
    s = sylvester(a.mT, b.mT, g)
    return -s @ y.mT, -y.mT @ s, s


def top_vector(a):
    vector = linalg.eigh(symmetric(a))[1][:, -1]
    return vector * torch.sign(vector[0])


def top_vector_vjp(g, y, a):
    values, vectors = linalg.eigh(symmetric(a))
    gaps = values[-1] - values[:-1]
    others = vectors[:, :-1]
    return symmetric(torch.outer(others @ ((others.mT @ g) / gaps), y))


add("eigenvalues", spectrum, spectrum_vjp, spd(4))
add("eigenvalues, close together", spectrum, spectrum_vjp, spd(4, 1.0, 1.001), order=1, tolerance=1e-7)
add(
    "largest eigenvalue",
    lambda a: spectrum(a)[-1],
    lambda g, y, a: g * (lambda v: torch.outer(v, v))(linalg.eigh(symmetric(a))[1][:, -1]),
    spd(5),
)
add("leading eigenvector", top_vector, top_vector_vjp, spd(4, 0.5, 4), tolerance=1e-8)
add("sum of squared eigenvalues", lambda a: (spectrum(a) ** 2).sum(), lambda g, y, a: 2 * g * symmetric(a), spd(4))
add("singular values", linalg.svdvals, singular_values_vjp, normal(3, 4))
add(
    "singular values over decades", linalg.svdvals, singular_values_vjp, conditioned(4, 3, 1e6), order=1, tolerance=1e-8
)
add("nuclear norm", lambda a: linalg.svdvals(a).sum(), nuclear_vjp, normal(4, 3), order=1)
add(
    "spectral norm",
    lambda a: linalg.svdvals(a)[0],
    lambda g, y, a: (lambda u, s, v: g * torch.outer(u[:, 0], v[0]))(*linalg.svd(a, full_matrices=False)),
    normal(4, 3),
)
add("matrix exponential", linalg.matrix_exp, matrix_exp_vjp, normal(3, 3), order=1, tolerance=1e-8)
add("root of a positive matrix", root_of, root_vjp, spd(4), tolerance=1e-8)
add("orthogonal factor", polar, polar_vjp, shifted(3), tolerance=1e-8)
add("projector", projector, projector_vjp, normal(5, 2), tolerance=1e-8)
add("triangular factor of QR", qr_r, qr_r_vjp, normal(4, 4), tolerance=1e-8)
add("Sylvester equation", sylvester, sylvester_vjp, shifted(3), shifted(2), normal(3, 2))
add(
    "power by squaring",
    lambda a: linalg.matrix_power(a, 5),
    lambda g, y, a: sum(linalg.matrix_power(a.mT, k) @ g @ linalg.matrix_power(a.mT, 4 - k) for k in range(5)),
    normal(3, 3),
)
add(
    "adjugate",
    lambda a: linalg.det(a) * linalg.inv(a),
    lambda g, y, a: (lambda i, d: d * ((g * i).sum() * i.mT - i.mT @ g @ i.mT))(linalg.inv(a), linalg.det(a)),
    shifted(3),
)
add(
    "condition number",
    lambda a: linalg.svdvals(a)[0] / linalg.svdvals(a)[-1],
    lambda g, y, a: (
        lambda u, s, v: g * (torch.outer(u[:, 0], v[0]) / s[-1] - y / s[-1] * torch.outer(u[:, -1], v[-1]))
    )(*linalg.svd(a, full_matrices=False)),
    distinct(3, 3),
    tolerance=1e-8,
)
add(
    "eigenvalues by NumPy",
    lambda a: np.linalg.eigvalsh((a + a.T) / 2),
    lambda g, y, a: (lambda v: (v * g) @ v.T)(np.linalg.eigh((a + a.T) / 2)[1]),
    spd(5),
    numpy=True,
    reference=spectrum,
)
add(
    "singular values by NumPy",
    lambda a: np.linalg.svd(a, compute_uv=False),
    lambda g, y, a: (lambda u, s, v: (u * g) @ v)(*np.linalg.svd(a, full_matrices=False)),
    normal(3, 5),
    numpy=True,
    reference=linalg.svdvals,
)
