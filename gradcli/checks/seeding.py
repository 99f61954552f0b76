"""Seeded cotangents for outputs whose shapes are known only once a call has been made."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gradcli.backends.visits import Seeds


def signed_cotangents(seed: int) -> Seeds:
    """Makes cotangents of either sign, of magnitudes in [1/2, 1): the same each time for the same shapes."""

    def cotangents(outputs: Sequence[NDArray[Any]]) -> list[NDArray[Any]]:
        generator = np.random.default_rng([seed, 43])
        return [_signed(generator, output) for output in outputs]

    return cotangents


def _signed(generator: np.random.Generator, output: NDArray[Any]) -> NDArray[Any]:
    parts = [
        generator.choice([-1.0, 1.0], output.shape) * (0.5 + 0.5 * generator.random(output.shape))
        for _ in range(1 + (output.dtype.kind == "c"))
    ]
    return np.asarray(parts[0] if len(parts) == 1 else parts[0] + 1j * parts[1])


def paired(one: NDArray[Any], other: NDArray[Any]) -> float:
    """The real pairing of two arrays, Re <one, other>, by which gradients are meant."""
    return float(np.sum(one.real * other.real) + np.sum(one.imag * other.imag))


def all_finite(arrays: Sequence[NDArray[Any] | None]) -> bool:
    """Whether every floating entry of the arrays is finite; None has none."""
    return all(bool(np.isfinite(a).all()) for a in arrays if a is not None and a.dtype.kind in "fc")
