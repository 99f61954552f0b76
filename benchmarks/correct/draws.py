"""Where the inputs of the specimens lie: each draw makes one argument of forward from a random generator."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

Array = npt.NDArray[Any]
Draw = Callable[[np.random.Generator], Any]


def tensor(values: Any) -> torch.Tensor:
    """A float64 or complex128 leaf that requires a gradient."""
    return torch.tensor(np.asarray(values)).requires_grad_()


def drawn(make: Callable[[np.random.Generator], Any]) -> Draw:
    """A differentiable input from a function of the generator."""
    return lambda rng: tensor(make(rng))


def normal(*shape: int, scale: float = 1.0, offset: float = 0.0) -> Draw:
    """Normal entries, scaled and shifted."""
    return drawn(lambda rng: offset + scale * rng.standard_normal(shape))


def within(low: float, high: float, *shape: int) -> Draw:
    """Uniform entries; six of them unless a shape is given."""
    return drawn(lambda rng: rng.uniform(low, high, shape or (6,)))


def decades(low: float, high: float, *shape: int, signed: bool = True) -> Draw:
    """Entries whose decimal logarithm is uniform, of either sign."""

    def make(rng: np.random.Generator) -> Array:
        size = shape or (6,)
        signs = rng.choice([-1.0, 1.0], size) if signed else np.ones(size)
        return np.asarray(signs * 10.0 ** rng.uniform(low, high, size))

    return drawn(make)


def beside(centre: float, low: float, high: float, n: int = 6, *, above: bool = False) -> Draw:
    """Entries that miss a centre by 10^low to 10^high, on both sides or above."""

    def make(rng: np.random.Generator) -> Array:
        signs = np.ones(n) if above else rng.choice([-1.0, 1.0], n)
        return np.asarray(centre + signs * 10.0 ** rng.uniform(low, high, n))

    return drawn(make)


def at(*values: float) -> Draw:
    """The same entries for every seed."""
    return drawn(lambda _: np.array(values, dtype=float))


def some_at(*values: float) -> Draw:
    """Normal entries among which some are exactly these values."""

    def make(rng: np.random.Generator) -> Array:
        return np.asarray(rng.permutation(np.concatenate([rng.standard_normal(4), np.array(values)])))

    return drawn(make)


def ties(*shape: int) -> Draw:
    """Small whole numbers: equal entries everywhere."""
    return drawn(lambda rng: rng.integers(-1, 2, shape).astype(float))


def distinct(*shape: int, gap: float = 0.1) -> Draw:
    """Entries that differ by at least about `gap`."""

    def make(rng: np.random.Generator) -> Array:
        size = int(np.prod(shape))
        values = (np.arange(size) - size / 2 + rng.uniform(-0.3, 0.3, size)) * gap * 3
        return np.asarray(rng.permutation(values).reshape(shape))

    return drawn(make)


def spd(n: int, smallest: float = 0.5, largest: float = 2.0) -> Draw:
    """A symmetric matrix with eigenvalues between the two, evenly spread in the logarithm."""

    def make(rng: np.random.Generator) -> Array:
        basis = np.linalg.qr(rng.standard_normal((n, n)))[0]
        matrix = (basis * np.geomspace(smallest, largest, n)) @ basis.T
        return np.asarray((matrix + matrix.T) / 2)

    return drawn(make)


def conditioned(n: int, m: int, condition: float) -> Draw:
    """A general matrix with singular values from 1 down to 1 / condition."""

    def make(rng: np.random.Generator) -> Array:
        left = np.linalg.qr(rng.standard_normal((n, n)))[0]
        right = np.linalg.qr(rng.standard_normal((m, m)))[0]
        k = min(n, m)
        return np.asarray((left[:, :k] * np.geomspace(1, 1 / condition, k)) @ right[:k])

    return drawn(make)


def complex_normal(*shape: int, scale: float = 1.0, offset: complex = 0.0) -> Draw:
    """Complex normal entries."""
    return drawn(lambda rng: offset + scale * (rng.standard_normal(shape) + 1j * rng.standard_normal(shape)))


def value(constant: Any) -> Draw:
    """An argument that is no tensor, the same for every seed."""
    return lambda _: constant


def whole(high: int, *shape: int) -> Draw:
    """An integer tensor below `high`."""
    return lambda rng: torch.tensor(rng.integers(0, high, shape))


def untracked(draw: Draw) -> Draw:
    """The same tensor without requires_grad."""
    return lambda rng: draw(rng).detach()


def flags(*shape: int) -> Draw:
    """A boolean tensor with both values in it."""

    def make(rng: np.random.Generator) -> torch.Tensor:
        mask = rng.random(shape) < 0.6
        mask.flat[0], mask.flat[-1] = True, False
        return torch.tensor(mask)

    return make
