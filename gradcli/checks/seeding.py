"""Cotangents and directions for arrays whose shapes are known only once a call has been made."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

_LENGTH = 997
_GENERATOR = np.random.default_rng(43)
_SIGNED = _GENERATOR.choice([-1.0, 1.0], _LENGTH) * (0.5 + 0.5 * _GENERATOR.random(_LENGTH))
"""Numbers of either sign and of magnitudes in [1/2, 1), repeated cyclically from some position on."""


def signed(shape: Sequence[int], dtype: np.dtype[Any], start: int) -> NDArray[Any]:
    """An array of the numbers in `_SIGNED`, from position `start` on; the same in every call."""
    size = math.prod(shape)
    found = np.resize(np.roll(_SIGNED, -start), size)
    if dtype.kind == "c":
        places = np.arange(start, start + size) % _LENGTH
        found = found + 1j * _SIGNED[places - size]
    return found.reshape(shape)


def signed_cotangents(outputs: Sequence[NDArray[Any]]) -> list[NDArray[Any]]:
    """A cotangent for each of the outputs, the same each time for outputs of the same shapes."""
    return [signed(output.shape, output.dtype, 101 * number) for number, output in enumerate(outputs)]


def paired(one: NDArray[Any], other: NDArray[Any]) -> float:
    """The real inner product of two arrays, Re <one, other>, with respect to which gradients are defined."""
    return float(np.vdot(one, other).real)


def all_finite(arrays: Sequence[NDArray[Any] | None]) -> bool:
    """Whether every floating-point entry of the arrays is finite; None has no entries."""
    return all(bool(np.isfinite(a).all()) for a in arrays if a is not None and a.dtype.kind in "fc")
