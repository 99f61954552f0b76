"""Functions of NumPy arrays with their gradients, Jacobians or vjps by hand; this file names no other framework."""

from __future__ import annotations

import numpy as np


def softmax(x):
    e = np.exp(x - x.max())
    return e / e.sum()


def kepler(m):
    e = m
    for _ in range(30):
        e = e - (e - 0.3 * np.sin(e) - m) / (1 - 0.3 * np.cos(e))
    return e


def knots():
    return np.array([np.interp(np.linspace(0, 4, 9), np.arange(5.0), row) for row in np.eye(5)]).T


def neighbours_gradient(x):
    order, r = np.argsort(x), np.diff(np.sort(x))
    d = -12 * r**-13 + 12 * r**-7
    found = np.zeros_like(x)
    found[order] = np.concatenate([[0], d]) - np.concatenate([d, [0]])
    return found


def rosenbrock_gradient(x):
    inner = x[1:] - x[:-1] ** 2
    found = np.zeros_like(x)
    found[:-1] = -400 * x[:-1] * inner - 2 * (1 - x[:-1])
    found[1:] += 200 * inner
    return found


def ackley(x):
    return -20 * np.exp(-0.2 * np.sqrt(np.mean(x**2))) - np.exp(np.mean(np.cos(2 * np.pi * x)))


def ackley_gradient(x):
    r = np.sqrt(np.mean(x**2))
    wave = np.exp(np.mean(np.cos(2 * np.pi * x)))
    return (4 * np.exp(-0.2 * r) * x / r + wave * 2 * np.pi * np.sin(2 * np.pi * x)) / len(x)


def logistic_gradient(w, x):
    p = 1 / (1 + np.exp(-x @ w))
    return x.T @ p, np.outer(p, w)


PAIRS = {
    "sum of sines": (lambda x: np.sum(np.sin(x)), np.cos),
    "Rosenbrock": (lambda x: np.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2), rosenbrock_gradient),
    "quadratic form": (lambda x, a: x @ a @ x, lambda x, a: ((a + a.T) @ x, np.outer(x, x))),
    "softmax with Jacobian": (softmax, lambda x: np.diag(softmax(x)) - np.outer(softmax(x), softmax(x))),
    "elementwise": (lambda x: np.tanh(x), lambda x: 1 / np.cosh(x) ** 2),
    "vjp of a product": (lambda a, b: np.matmul(a, b), lambda a, b, g: (g @ b.T, a.T @ g)),
    "log determinant": (lambda a: np.linalg.slogdet(a)[1], lambda a: np.linalg.inv(a).T),
    "logistic loss": (lambda w, x: np.sum(np.logaddexp(0, x @ w)), logistic_gradient),
    "Styblinski-Tang": (lambda x: np.sum(x**4 - 16 * x**2 + 5 * x) / 2, lambda x: 2 * x**3 - 16 * x + 2.5),
    "Ackley": (ackley, ackley_gradient),
    "Lennard-Jones": (lambda x: np.sum([r**-12 - 2 * r**-6 for r in np.diff(np.sort(x))]), neighbours_gradient),
    "cross product": (lambda a, b: np.cross(a, b), lambda a, b, g: (np.cross(b, g), np.cross(g, a))),
    "interpolation": (lambda y: np.interp(np.linspace(0, 4, 9), np.arange(5.0), y), lambda _: knots()),
    "Kepler's equation": (kepler, lambda m: 1 / (1 - 0.3 * np.cos(kepler(m)))),
    "variance of offset data": (lambda x: np.var(x), lambda x: 2 * (x - x.mean()) / x.size),
    "float32 energy": (lambda x: float(np.sum(np.sin(x.astype(np.float32)) ** 2)), lambda x: np.sin(2 * x)),
    "value and gradient": (lambda x: (np.sum(x**4), 4 * x**3), None),
    "sum of ten thousand cubes": (lambda x: np.sum(x**3), lambda x: 3 * x**2),
}
