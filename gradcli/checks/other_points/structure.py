"""Arrays whose entries only make sense together: masks, probabilities, and matrices with a structure."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

_ONE = 1e-5
"""Entries whose sum is that close to 1 are taken for probabilities."""


def has_structure(value: NDArray[Any]) -> bool:
    """Whether an array is visibly a symmetric, triangular or orthogonal matrix, a mask, or probabilities."""
    if value.size < 2:
        return False
    if bool(((value == 0) | (value == 1)).all()):
        return True
    rows = value.real.sum(-1)
    if bool((value.real >= 0).all()) and (bool((np.abs(rows - 1) <= _ONE).all()) or abs(rows.sum() - 1) <= _ONE):
        return True
    if value.ndim < 2 or value.shape[-1] != value.shape[-2] or value.shape[-1] < 2:
        return False
    mirrored = np.swapaxes(value, -1, -2)
    alike = [mirrored, mirrored.conj(), -mirrored, np.tril(value), np.triu(value)]
    return any(np.array_equal(value, other) for other in alike) or _is_orthogonal(value)


def _is_orthogonal(value: NDArray[Any]) -> bool:
    with np.errstate(all="ignore"):
        product = value @ np.swapaxes(value.conj(), -1, -2)
    return bool(np.allclose(product, np.eye(value.shape[-1])))
