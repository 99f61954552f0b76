"""Calls of `numpy.linalg` with PyTorch's errors."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from gradcli.engine.dtypes import BY_NUMPY, Array
from gradcli.engine.ops.operands import check_broadcast


class _LinAlgError(RuntimeError, np.linalg.LinAlgError):
    """A matrix is singular, not positive definite, or an iteration did not converge."""


LinAlgError = _LinAlgError


_REASONS = {
    "inv": "The inversion could not be completed because the input matrix is singular.",
    "solve": "The solver failed because the input matrix is singular.",
    "cholesky": "The factorization could not be completed because the input is not positive-definite.",
}


def require_rows_of(name: str, a: Array, b: Array) -> None:
    """Raise RuntimeError unless AX = B has a solution X: as many rows in B as in A, and batches that broadcast."""
    if a.ndim > 1 and b.ndim > 1 and a.shape[-2] == a.shape[-1] != b.shape[-2]:
        raise RuntimeError(
            f"linalg.{name}: Incompatible shapes of A and B for the equation AX = B ({a.shape[-2]}x{a.shape[-1]} and "
            f"{b.shape[-2]}x{b.shape[-1]})"
        )
    check_broadcast(b.shape[:-2], a.shape[:-2])


def factored(name: str, function: Callable[..., Any], *matrices: Array, square: bool = True) -> Any:
    """Return `function(*matrices)`, a function of `numpy.linalg`.

    Args:
        name: the name of the operation in `linalg`, for messages.
        function: the function.
        matrices: its arrays; the first holds the matrices to factor, [..., m, n].
        square: require m = n.

    Raises:
        RuntimeError: the first array has fewer than two axes, or its matrices are not square.
        LinAlgError: `numpy.linalg` raised one: a matrix is singular, not positive definite, or nothing converged.
    """
    shape = matrices[0].shape
    if len(shape) < 2:
        raise RuntimeError(f"linalg.{name}: The input tensor A must have at least 2 dimensions.")
    if square and shape[-1] != shape[-2]:
        raise RuntimeError(
            f"linalg.{name}: A must be batches of square matrices, but they are {shape[-2]} by {shape[-1]} matrices"
        )
    if matrices[0].dtype.kind not in "fc":
        raise RuntimeError(
            f"linalg.{name}: Expected a floating point or complex tensor as input. Got "
            f"{BY_NUMPY[matrices[0].dtype].letter}"
        )
    try:
        return function(*matrices)
    except np.linalg.LinAlgError as error:
        raise LinAlgError(f"linalg.{name}: {_REASONS.get(name, str(error))}") from None


def of_hermitian(triangle: str) -> Callable[..., Any]:
    """Return `numpy.linalg.eigh` that reads one triangle.

    Raises:
        RuntimeError: the triangle is neither "L" nor "U".
    """
    if triangle.upper() not in ("L", "U"):
        raise RuntimeError(f"Expected UPLO argument to be 'L' or 'U', but got {triangle}")
    return partial(np.linalg.eigh, UPLO=triangle.upper())
