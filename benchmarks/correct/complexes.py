"""Complex functions and Fourier transforms; gradients are adjoints for the real pairing, as PyTorch has it."""

from __future__ import annotations

import functools
import math

import numpy as np
import torch

from benchmarks.correct.draws import complex_normal, normal, value, within
from benchmarks.correct.general import general
from benchmarks.correct.specimen import Collection

COMPLEX = Collection("complex")
add = functools.partial(general, COMPLEX)


def half_spectrum_vjp(g, y, x):
    n = x.shape[-1]
    return torch.fft.ifft(torch.nn.functional.pad(g, (0, n - g.shape[-1])), dim=-1, norm="forward").real


def circular(x, w):
    return torch.fft.ifft(torch.fft.fft(x) * torch.fft.fft(w)).real


def circular_vjp(g, y, x, w):
    u = torch.fft.fft(g.to(torch.complex128))
    return torch.fft.ifft(u * torch.fft.fft(w).conj()).real, torch.fft.ifft(u * torch.fft.fft(x).conj()).real


def spectrum_power(x):
    return torch.fft.rfft(x).abs() ** 2


def spectrum_power_vjp(g, y, x):
    return 2 * half_spectrum_vjp(g * torch.fft.rfft(x), None, x)


def phase_vjp(g, y, z):
    return g * 1j * z / (z.abs() ** 2)


ENVELOPE = torch.tensor([1, 2, 2, 2, 1, 0, 0, 0.0], dtype=torch.float64)


def envelope_vjp(g, y, x):
    w = torch.fft.ifft(torch.fft.fft(x) * ENVELOPE)
    return torch.fft.ifft(torch.fft.fft(g * w / y) * ENVELOPE).real


def discrete_cosine(x):
    n = len(x)
    k = torch.arange(n, dtype=x.dtype)
    return torch.cos(math.pi / n * k[:, None] * (k + 0.5)) @ x


def discrete_cosine_vjp(g, y, x):
    k = torch.arange(len(x), dtype=x.dtype)
    return torch.cos(math.pi / len(x) * k[:, None] * (k + 0.5)).mT @ g


add("complex square", lambda z: z * z, lambda g, y, z: g * (2 * z).conj(), complex_normal(4))
add("complex exponential", torch.exp, lambda g, y, z: g * y.conj(), complex_normal(4))
add("complex reciprocal", torch.reciprocal, lambda g, y, z: -g * (y * y).conj(), complex_normal(4))
add(
    "complex sine, far up", torch.sin, lambda g, y, z: g * torch.cos(z).conj(), complex_normal(4, scale=0.5, offset=20j)
)
add(
    "complex logarithm beside its cut",
    torch.log,
    lambda g, y, z: g / z.conj(),
    complex_normal(4, scale=1e-2, offset=-1 + 0.1j),
)
add("complex square root", torch.sqrt, lambda g, y, z: g / (2 * y).conj(), complex_normal(4, scale=0.3, offset=1))
add(
    "complex product",
    lambda a, b: a * b,
    lambda g, y, a, b: (g * b.conj(), g * a.conj()),
    complex_normal(4),
    complex_normal(4),
)
add(
    "complex product with a real factor",
    lambda a, x: a * x,
    lambda g, y, a, x: (g * x, (g * a.conj()).real),
    complex_normal(4),
    normal(4),
)
add("conjugate", lambda z: z.conj() * z.conj(), lambda g, y, z: g.conj() * 2 * z.conj(), complex_normal(4))
add("squared magnitude", lambda z: z.real**2 + z.imag**2, lambda g, y, z: 2 * g * z, complex_normal(4))
add("magnitude", torch.abs, lambda g, y, z: g * z / z.abs(), complex_normal(4))
add("magnitude of tiny numbers", torch.abs, lambda g, y, z: g * z / z.abs(), complex_normal(4, scale=1e-8))
add("phase", torch.angle, phase_vjp, complex_normal(4, scale=0.3, offset=1))
add(
    "polar to complex",
    torch.polar,
    lambda g, y, r, a: ((g * torch.polar(torch.ones_like(a), a).conj()).real, (g * (1j * y).conj()).real),
    within(0.2, 2, 4),
    normal(4),
)
add("unit phase", lambda z: z / z.abs(), lambda g, y, z: (g - y * (g * y.conj()).real) / z.abs(), complex_normal(4))
add("real part of a power", lambda z: (z**3).real, lambda g, y, z: g * 3 * (z * z).conj(), complex_normal(4))
add(
    "Moebius transform",
    lambda z, a: (z - a) / (1 - a.conj() * z),
    lambda g, y, z, a: (
        g * ((1 - a * a.conj()) / (1 - a.conj() * z) ** 2).conj(),
        -g / (1 - a * z.conj()) + (g.conj() * y / (1 - a.conj() * z) * z),
    ),
    complex_normal(4, scale=0.2),
    complex_normal(4, scale=0.2),
)
add(
    "complex matrix product",
    lambda a, b: a @ b,
    lambda g, y, a, b: (g @ b.mH, a.mH @ g),
    complex_normal(3, 2),
    complex_normal(2, 3),
)
add(
    "complex solve",
    torch.linalg.solve,
    lambda g, y, a, b: (lambda w: (-torch.outer(w, y.conj()), w))(torch.linalg.solve(a.mH, g)),
    lambda rng: torch.tensor(
        rng.standard_normal((3, 3)) + 1j * rng.standard_normal((3, 3)) + 6 * np.eye(3)
    ).requires_grad_(),
    complex_normal(3),
)
add(
    "complex determinant", torch.linalg.det, lambda g, y, a: g * y.conj() * torch.linalg.inv(a).mH, complex_normal(3, 3)
)
add(
    "Hermitian form",
    lambda a, z: (z.conj() @ a @ z).real,
    lambda g, y, a, z: (g * torch.outer(z, z.conj()), g * (a @ z + a.mH @ z)),
    complex_normal(3, 3),
    complex_normal(3),
)
add(
    "Fourier transform",
    lambda z: torch.fft.fft(z),
    lambda g, y, z: torch.fft.ifft(g, norm="forward"),
    complex_normal(8),
)
add(
    "inverse Fourier transform",
    lambda z: torch.fft.ifft(z),
    lambda g, y, z: torch.fft.fft(g) / g.shape[-1],
    complex_normal(7),
)
add("half spectrum", lambda x: torch.fft.rfft(x), half_spectrum_vjp, normal(8))
add("power spectrum", spectrum_power, spectrum_power_vjp, normal(8))
add("circular convolution", circular, circular_vjp, normal(8), normal(8))
add(
    "Fourier transform in two dimensions",
    lambda z: torch.fft.fft2(z),
    lambda g, y, z: torch.fft.ifft2(g, norm="forward"),
    complex_normal(3, 4),
)
add(
    "low-pass filter",
    lambda x, k: torch.fft.irfft(torch.fft.rfft(x) * (torch.arange(5) < k), n=8),
    lambda g, y, x, k: (torch.fft.irfft(torch.fft.rfft(g) * (torch.arange(5) < k), n=8), None),
    normal(8),
    value(3),
)
add("cosine transform", discrete_cosine, discrete_cosine_vjp, normal(8))
add("analytic envelope", lambda x: torch.fft.ifft(torch.fft.fft(x) * ENVELOPE).abs(), envelope_vjp, normal(8))
add(
    "complex exponential by NumPy",
    np.exp,
    lambda g, y, z: g * np.conj(y),
    complex_normal(4),
    numpy=True,
    reference=torch.exp,
)
add(
    "Fourier transform by NumPy",
    np.fft.fft,
    lambda g, y, z: np.fft.ifft(g, norm="forward"),
    complex_normal(6),
    numpy=True,
    reference=torch.fft.fft,
)
add(
    "magnitude of the spectrum by NumPy",
    lambda x: np.abs(np.fft.rfft(x)),
    lambda g, y, x: np.fft.ifft(np.pad(g * np.fft.rfft(x) / y, (0, 3)), norm="forward").real,
    normal(8),
    numpy=True,
    reference=lambda x: torch.fft.rfft(x).abs(),
)
