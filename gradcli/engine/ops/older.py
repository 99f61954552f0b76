"""Factorisations with the arguments and results that PyTorch had before it had `linalg`."""

from __future__ import annotations

from typing import NamedTuple

from gradcli.engine.creation import zeros
from gradcli.engine.module_name import printed_as
from gradcli.engine.ops import factorisation, linalg
from gradcli.engine.ops.linalg import adjoint
from gradcli.engine.ops.matrices import solve_triangular
from gradcli.engine.tensor import Tensor


@printed_as("svd")
class OldSVD(NamedTuple):
    """A = U diag(S) V^H, the singular values descending."""

    U: Tensor
    S: Tensor
    V: Tensor


@printed_as("qr")
class OldQR(NamedTuple):
    """A = Q R, R upper triangular."""

    Q: Tensor
    R: Tensor


def svd(input: Tensor, some: bool = True, compute_uv: bool = True) -> OldSVD:
    """Return U, S and V, not V^H as `linalg.svd`, of matrices [..., m, n].

    Args:
        input: the matrices.
        some: return U [..., m, k] and V [..., n, k] with k = min(m, n), not square ones.
        compute_uv: with False, U and V are square and zero.
    """
    if not compute_uv:
        *batch, rows, columns = input._data.shape
        square = [zeros(*batch, size, size, dtype=input.dtype) for size in (rows, columns)]
        return OldSVD(square[0], factorisation.svdvals(input), square[1])
    u, s, vh = factorisation.svd(input, full_matrices=not some)
    return OldSVD(u, s, adjoint(vh))


@printed_as("triangular_solve")
class OldSolution(NamedTuple):
    """The solution of a triangular system, and its matrix."""

    solution: Tensor
    cloned_coefficient: Tensor


def triangular_solve(
    input: Tensor, A: Tensor, upper: bool = True, transpose: bool = False, unitriangular: bool = False
) -> OldSolution:
    """Solve A X = input, or A^T X = input with `transpose`, for triangular A; see `linalg.solve_triangular`."""
    matrix, above = (A.mT, not upper) if transpose else (A, upper)
    solution = solve_triangular(matrix, input, upper=above, unitriangular=unitriangular)
    return OldSolution(solution, A.clone())


def qr(input: Tensor, some: bool = True) -> OldQR:
    """Return Q [..., m, k] and R with k = min(m, n), or a square Q unless `some`; see `linalg.qr`."""
    return OldQR(*factorisation.qr(input, "reduced" if some else "complete"))


def cholesky(input: Tensor, upper: bool = False) -> Tensor:
    """Return lower triangular L with L L^H = input, or L^H; see `linalg.cholesky`."""
    return linalg.cholesky(input, upper=upper)
