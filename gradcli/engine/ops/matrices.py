"""Functions of matrices composed of factorisations and products: norms, triangular systems, exp, covariance."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gradcli.engine.ops.derived import matrix_power
from gradcli.engine.ops.factorisation import svdvals
from gradcli.engine.ops.joining import stack
from gradcli.engine.ops.lapack import factored, require_rows_of
from gradcli.engine.ops.linalg import adjoint, cholesky, eigh, inv, matmul, solve
from gradcli.engine.ops.masks import tril, triu
from gradcli.engine.ops.operands import Operand, axes, axis
from gradcli.engine.ops.shape import movedim
from gradcli.engine.ops.statistics import vector_norm
from gradcli.engine.tensor import Tensor, from_array


def matrix_norm(
    A: Tensor,
    ord: Any = "fro",
    dim: Any = (-2, -1),
    keepdim: bool = False,
    *,
    dtype: Any = None,
) -> Tensor:
    """Return a norm of matrices.

    Args:
        A: tensors [..., m, n].
        ord: "fro"; "nuc" (the sum of the singular values); 2, -2 (the largest, the smallest of them); 1, -1 (the
            largest, the smallest sum of |column|); inf, -inf (of |row|).
        dim: the two axes of the matrices.
        keepdim: keep these axes, with length 1.
        dtype: cast to this element type first.

    Raises:
        RuntimeError: the order is unknown, or there are fewer than two axes.
    """
    source = A if dtype is None else A.to(dtype=dtype)
    _require_two("matrix_norm", source, dim)
    rows, columns = axes(dim, source._data.ndim)
    if ord == "fro":
        return vector_norm(source, 2, (rows, columns), keepdim)
    if ord in (1, -1, math.inf, -math.inf):
        first, second = (rows, columns) if abs(ord) == 1 else (columns, rows)
        sums = source.abs().sum(first, keepdim=True)
        result = sums.amax(second, keepdim=True) if ord > 0 else sums.amin(second, keepdim=True)
        return result if keepdim else result.squeeze((rows, columns))
    if ord not in ("nuc", 2, -2):
        raise RuntimeError(f"linalg.matrix_norm: Order {ord} not supported.")
    values = svdvals(movedim(source, (rows, columns), (-2, -1)))
    result = values.sum(-1) if ord == "nuc" else values.amax(-1) if ord == 2 else values.amin(-1)
    return result.unsqueeze(min(rows, columns)).unsqueeze(max(rows, columns)) if keepdim else result


_ORDERS = ("fro", "nuc", 1, -1, 2, -2, math.inf, -math.inf)


def _require_two(name: str, A: Tensor, dim: Any) -> None:
    """Raise RuntimeError unless a tensor has two axes, and `dim` names two that differ."""
    if A._data.ndim < 2:
        raise RuntimeError(f"linalg.{name}: The input tensor A must have at least 2 dimensions.")
    if isinstance(dim, int) or len(dim) != 2:
        raise RuntimeError(f"linalg.{name}: dim must be a 2-tuple. Got {dim if isinstance(dim, int) else list(dim)}")
    first, second = (axis(place, A._data.ndim) for place in dim)
    if first == second:
        raise RuntimeError(f"linalg.{name}: dims must be different. Got ({first}, {second})")


def norm(A: Tensor, ord: Any = None, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    """Return a vector norm over one axis or all, or a matrix norm if `ord` is given and there are two axes.

    Raises:
        RuntimeError: the order is unknown, or does not exist for this number of axes.
    """
    source = A if dtype is None else A.to(dtype=dtype)
    if isinstance(ord, str):
        if ord not in _ORDERS:
            raise RuntimeError(f"linalg.matrix_norm: Order {ord} not supported.")
        return matrix_norm(source, ord, (-2, -1) if dim is None else dim, keepdim)
    if ord is not None and dim is None and source._data.ndim > 2:
        raise RuntimeError(
            f"linalg.norm: If dim is not specified but ord is, the input must be 1D or 2D. Got {source._data.ndim}D."
        )
    if dim is not None and not isinstance(dim, int) and len(dim) not in (1, 2):
        raise RuntimeError(f"linalg.norm: If dim is specified, it must be of length 1 or 2. Got {list(dim)}")
    if dim is None and ord is None:
        return vector_norm(source, 2, None, keepdim)
    places = axes(dim, source._data.ndim)
    if len(places) == 2 and ord is not None:
        return matrix_norm(source, ord, places, keepdim)
    return vector_norm(source, 2 if ord is None else ord, places, keepdim)


def eigvalsh(A: Tensor, UPLO: str = "L") -> Tensor:
    """Return the eigenvalues of Hermitian matrices, ascending; one triangle is read: "L" or "U"."""
    return eigh(A, UPLO).eigenvalues


def matrix_rank(A: Tensor, *, tol: Any = None, hermitian: bool = False) -> Tensor:
    """Return the number of singular values above `tol`: by default the largest times max(m, n) times the precision."""
    del hermitian
    return from_array(np.asarray(np.linalg.matrix_rank(A._data, tol=tol)).astype(np.int64))


def cond(A: Tensor, p: Any = None) -> Tensor:
    """Return the condition numbers of matrices in a matrix norm, by default 2: largest over smallest singular value.

    Raises:
        RuntimeError: the order is unknown.
    """
    if p in (None, 2, -2):
        values = svdvals(A)
        return values.amax(-1) / values.amin(-1) if p != -2 else values.amin(-1) / values.amax(-1)
    if p not in _ORDERS:
        raise RuntimeError(f"linalg.cond got an invalid norm type: {p}")
    return matrix_norm(A, p) * matrix_norm(inv(A), p)


def solve_triangular(A: Tensor, B: Tensor, *, upper: bool, left: bool = True, unitriangular: bool = False) -> Tensor:
    """Return X with A X = B (or X A = B), where only one triangle of A is read.

    Args:
        A: matrices [..., m, m].
        B: right-hand sides.
        upper: read the upper triangle.
        left: solve A X = B, not X A = B.
        unitriangular: take the diagonal as ones.
    """
    triangle = triu(A) if upper else tril(A)
    if unitriangular:
        eye = from_array(np.eye(A._data.shape[-1], dtype=A._data.dtype))
        triangle = (triu(A, 1) if upper else tril(A, -1)) + eye
    if left:
        require_rows_of("solve_triangular", A._data, B._data)
        return solve(triangle, B)
    return solve(triangle.mT, B.mT).mT


def cholesky_solve(B: Tensor, L: Tensor, upper: bool = False) -> Tensor:
    """Return X with L L^H X = B; with `upper`, L is upper triangular and L^H L X = B."""
    factor = adjoint(L) if upper else L
    half = solve_triangular(factor, B, upper=False)
    solution: Tensor = solve_triangular(adjoint(factor), half, upper=True)
    return solution


def cholesky_inverse(L: Tensor, upper: bool = False) -> Tensor:
    """Return the inverse of L L^H; with `upper`, of L^H L."""
    return cholesky_solve(from_array(np.eye(L._data.shape[-1], dtype=L._data.dtype)), L, upper)


def matrix_exp(A: Tensor) -> Tensor:
    """Return the exponential of square matrices, by scaling, a Taylor series of degree 18, and squaring."""
    factored("matrix_exp", lambda matrix: matrix, A._data)
    size = float(np.abs(A._data).sum(-2).max(initial=0.0)) if A._data.size else 0.0
    squarings = max(0, math.ceil(math.log2(size)) + 1) if size > 0 and math.isfinite(size) else 0
    scaled = A / 2**squarings
    eye = from_array(np.broadcast_to(np.eye(A._data.shape[-1], dtype=A._data.dtype), A._data.shape).copy())
    result = eye
    for degree in range(18, 0, -1):  # Horner's scheme; for a 1-norm of at most 1/2 the remainder is below 1e-22
        result = eye + matmul(scaled, result) / degree
    return matrix_power(result, 2**squarings)


def vander(x: Tensor, N: int | None = None, *, increasing: bool = False) -> Tensor:
    """Return the Vandermonde matrix [n, N] of a vector; powers descend by default, as in `torch.vander`."""
    count = x._data.shape[-1] if N is None else N
    powers = [x**degree for degree in range(count)]
    if not powers:
        return x.unsqueeze(-1)[..., :0]
    columns: Tensor = stack(powers if increasing else powers[::-1], -1)
    return columns


def rising_vander(x: Tensor, *, N: int | None = None) -> Tensor:
    """Return the Vandermonde matrix [..., n, N] with ascending powers, as `torch.linalg.vander`."""
    return vander(x, N, increasing=True)


def cov(input: Tensor, *, correction: int = 1, fweights: Any = None, aweights: Any = None) -> Tensor:
    """Return the covariance matrix [m, m] of m variables in rows, with n observations in columns.

    Raises:
        NotImplementedError: weights are given.
    """
    if fweights is not None or aweights is not None:
        raise NotImplementedError("cov: weights are not supported by gradcli.engine; weight the observations by hand")
    rows = input if input._data.ndim > 1 else input.reshape(1, -1)
    centred = rows - rows.mean(1, keepdim=True)
    result: Tensor = matmul(centred, adjoint(centred)) / (rows._data.shape[1] - correction)
    return result if input._data.ndim > 1 else result.reshape(())


def corrcoef(input: Tensor) -> Tensor:
    """Return the correlation matrix [m, m] of m variables in rows."""
    covariance = cov(input)
    if not covariance._data.ndim:
        return covariance / covariance
    scale = covariance.diagonal().sqrt()
    return covariance / scale.unsqueeze(0) / scale.unsqueeze(1)


def renorm(input: Tensor, p: float, dim: int, maxnorm: float) -> Tensor:
    """Return a copy with each slice along an axis scaled down to a p-norm of `maxnorm` if its norm is larger."""
    place = axis(dim, input._data.ndim)
    others = tuple(other for other in range(input._data.ndim) if other != place)
    size = vector_norm(input, p, others, keepdim=True)
    large = from_array(size._data > maxnorm)
    factor = (maxnorm / (size + 1e-7)).masked_fill(~large, 1)
    return input * factor


def chain_matmul(*matrices: Operand) -> Tensor:
    """Return the product of matrices, from left to right."""
    result: Tensor = matrices[0]
    for matrix in matrices[1:]:
        result = matmul(result, matrix)
    return result


__all__ = [
    "chain_matmul",
    "cholesky",
    "cholesky_inverse",
    "cholesky_solve",
    "cond",
    "corrcoef",
    "cov",
    "eigvalsh",
    "matrix_exp",
    "matrix_norm",
    "matrix_rank",
    "norm",
    "renorm",
    "solve_triangular",
    "vander",
]
