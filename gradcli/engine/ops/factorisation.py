"""Singular value and QR decompositions, pseudo-inverse, least squares, and distances of rows."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy as np

from gradcli.engine.graph import Node
from gradcli.engine.module_name import printed_as
from gradcli.engine.ops.lapack import factored
from gradcli.engine.ops.linalg import adjoint, solve
from gradcli.engine.recording import record, record_many
from gradcli.engine.tensor import Tensor, from_array

FULL_FACTORS = (
    "{name}: the gradient through the full factors is not defined, since their further columns are not: call it with "
    "{instead}"
)


class LinalgSvdBackward0(Node):
    """With dP = U^H dA V: dS = Re diag(dP); dU and dV follow from the rest of dP, divided by s_j^2 - s_i^2.

    The derivation is in Giles, "Collected matrix derivative results for forward and reverse mode" (2008), section 3.2.
    """

    _saved_names = ("U", "S", "Vh")

    def _vjp(self, g_u: Any, g_s: Any, g_vh: Any) -> Any:
        u, s, vh = self._unpack()
        core = _diagonal_matrix(g_s.to(u.dtype)) if g_s is not None else None
        squares = s * s
        gap = squares.unsqueeze(-2) - squares.unsqueeze(-1)
        gap = gap + from_array(np.eye(gap._data.shape[-1], dtype=gap._data.dtype))
        if g_u is not None:
            turned = _skew(adjoint(u).matmul(g_u))
            core = _sum(core, turned / gap * s.unsqueeze(-2))
            if u.is_complex() and g_vh is not None:
                core = _sum(core, _diagonal_matrix(turned.diagonal(0, -2, -1) / (2 * s)))
        if g_vh is not None:
            core = _sum(core, s.unsqueeze(-1) * (_skew(vh.matmul(adjoint(g_vh))) / gap))
        if core is None:
            return None
        result = u.matmul(core).matmul(vh)
        if g_u is not None and u._data.shape[-2] > u._data.shape[-1]:
            rest = g_u - u.matmul(adjoint(u).matmul(g_u))
            result = result + (rest / s.unsqueeze(-2)).matmul(vh)
        if g_vh is not None and vh._data.shape[-1] > vh._data.shape[-2]:
            rest = g_vh - g_vh.matmul(adjoint(vh)).matmul(vh)
            result = result + (u / s.unsqueeze(-2)).matmul(rest)
        return result


class FullFactorBackward0(Node):
    """Raises RuntimeError: the columns that complete U or V are not unique, so they have no derivative."""

    def _vjp(self, g: Tensor) -> Any:
        del g
        raise RuntimeError(FULL_FACTORS.format(name="linalg.svd", instead="full_matrices=False"))


class LinalgQrBackward0(Node):
    """gA = (gQ + Q M) R^-H, M Hermitian with the upper triangle of gR R^H - Q^H gQ (Seeger et al., arXiv 1710.08717).

    For a wide A, this is for the square part of R; the columns of A beyond it get Q times their part of gR.
    """

    _saved_names = ("Q", "R")

    def _vjp(self, g_q: Any, g_r: Any) -> Any:
        q, r = self._unpack()
        rows, columns = q._data.shape[-1], r._data.shape[-1]
        if g_q is None and g_r is None:
            return None
        if q._data.shape[-2] < q._data.shape[-1] or r._data.shape[-2] != min(q._data.shape[-2], columns):
            raise RuntimeError(FULL_FACTORS.format(name="linalg.qr", instead="mode='reduced'"))
        left = r[..., :rows]
        g_left = None if g_r is None else g_r[..., :rows]
        extra = None
        if columns > rows and g_r is not None:
            extra = q.matmul(g_r[..., rows:])
            further = q.matmul(r[..., rows:]).matmul(adjoint(g_r[..., rows:]))
            g_q = further if g_q is None else g_q + further
        inner = None if g_left is None else g_left.matmul(adjoint(left))
        if g_q is not None:
            turned = adjoint(q).matmul(g_q)
            inner = -turned if inner is None else inner - turned
        assert inner is not None  # noqa: S101  (one of the two cotangents is there)
        whole = q.matmul(_mirrored(inner))
        if g_q is not None:
            whole = whole + g_q
        square = adjoint(solve(left, adjoint(whole)))
        if columns == rows:
            return square
        return square.cat([square, extra if extra is not None else q.matmul(r[..., rows:]) * 0], -1)


class LinalgPinvBackward0(Node):
    """dA+ = -A+ dA A+ + A+ A+^H dA^H (I - A A+) + (I - A+ A) dA^H A+^H A+ (Golub and Pereyra, 1973)."""

    _saved_names = ("A", "result")

    def _vjp(self, g: Tensor) -> Any:
        a, inverse = self._unpack()
        back, turned = adjoint(inverse), adjoint(g)
        first = -back.matmul(g).matmul(back)
        outside = turned - a.matmul(inverse.matmul(turned))
        second = outside.matmul(inverse).matmul(back)
        third = back.matmul(inverse.matmul(turned - turned.matmul(inverse).matmul(a)))
        return first + second + third


def _sum(first: Any, second: Any) -> Any:
    return second if first is None else first + second


def _skew(matrix: Tensor) -> Any:
    return matrix - adjoint(matrix)


def _diagonal_matrix(diagonal: Tensor) -> Any:
    return diagonal.unsqueeze(-1) * from_array(np.eye(diagonal._data.shape[-1], dtype=diagonal._data.dtype))


def _mirrored(matrix: Tensor) -> Any:
    """Return the Hermitian matrix with the upper triangle of another, and the real part of its diagonal."""
    upper = matrix.triu()
    both = upper + adjoint(upper)
    half = from_array(1 - np.eye(matrix._data.shape[-1], dtype=np.float64) / 2)
    if matrix.is_complex():
        diagonal = _diagonal_matrix(upper.diagonal(0, -2, -1).real.to(upper.dtype))
        return upper.triu(1) + adjoint(upper.triu(1)) + diagonal
    return both * half.to(matrix.dtype)


@printed_as("linalg_svd")
class SVD(NamedTuple):
    """A = U diag(S) Vh, the singular values descending."""

    U: Tensor
    S: Tensor
    Vh: Tensor


@printed_as("linalg_qr")
class QR(NamedTuple):
    """A = Q R, R upper triangular."""

    Q: Tensor
    R: Tensor


@printed_as("linalg_lstsq")
class LeastSquares(NamedTuple):
    """The result of `lstsq`; `singular_values` is always empty."""

    solution: Tensor
    residuals: Tensor
    rank: Tensor
    singular_values: Tensor


def svd(A: Tensor, full_matrices: bool = True, *, driver: None = None) -> SVD:
    """Return the singular value decompositions of matrices.

    Gradients through U and Vh exist only where the singular values are distinct.

    Args:
        A: matrices [..., m, n].
        full_matrices: return square U [..., m, m] and Vh [..., n, n], not U [..., m, k] and Vh [..., k, n] with k =
            min(m, n). Unless m = n, only S then has a gradient; that of U or Vh raises RuntimeError.
        driver: has no effect.
    """
    del driver
    u, s, vh = factored("svd", partial(np.linalg.svd, full_matrices=full_matrices), A._data, square=False)
    rows, columns = A._data.shape[-2:]
    count = min(rows, columns)
    if not full_matrices or rows == columns:
        return SVD(*record_many(LinalgSvdBackward0, [u, s, vh], (A,), keep=True))
    thin = [np.ascontiguousarray(u[..., :count]), s, np.ascontiguousarray(vh[..., :count, :])]
    _, values, _ = record_many(LinalgSvdBackward0, thin, (A,), keep=True)
    return SVD(record(FullFactorBackward0, u, (A,)), values, record(FullFactorBackward0, vh, (A,)))


def svdvals(A: Tensor) -> Tensor:
    """Return the singular values of matrices [..., m, n], descending."""
    return svd(A, full_matrices=False).S


def qr(A: Tensor, mode: str = "reduced") -> QR:
    """Return Q and R of matrices [..., m, n].

    Args:
        A: the matrices.
        mode: "reduced" for Q [..., m, k] with k = min(m, n); "complete" for Q [..., m, m], which has no gradient if m >
            n; "r" for R alone, not recorded, and an empty Q.

    Raises:
        ValueError: the mode is not "reduced", "complete" or "r".
    """
    if mode not in ("reduced", "complete", "r"):
        raise ValueError(f"qr expects mode 'reduced', 'complete' or 'r', got mode={mode!r}")
    if mode == "r":
        return QR(from_array(np.empty(0, dtype=A._data.dtype)), from_array(np.linalg.qr(A._data, mode="r")))
    q, r = np.linalg.qr(A._data, mode=mode)  # type: ignore[call-overload]  # the mode is one of two
    return QR(*record_many(LinalgQrBackward0, [q, r], (A,), keep=True))


def pinv(A: Tensor, rcond: float | None = None, hermitian: bool = False, *, rtol: float | None = None) -> Tensor:
    """Return the Moore-Penrose pseudo-inverses of matrices; the gradient takes the rank as constant.

    Args:
        A: the matrices.
        rcond: singular values of at most this share of the largest count as 0; the number of rows or columns, whichever
            is larger, times the precision unless given.
        hermitian: has no effect.
        rtol: another name of `rcond`.
    """
    del hermitian
    least = rcond if rcond is not None else rtol
    if least is None:
        least = max(A._data.shape[-2:]) * float(np.finfo(A._data.dtype).eps)
    return record(LinalgPinvBackward0, np.linalg.pinv(A._data, least), (A,), (A,), keep=True)


def lstsq(A: Tensor, B: Tensor, rcond: float | None = None, *, driver: str | None = None) -> LeastSquares:
    """Return the least-squares solution X of A X = B, the one of least norm, as pinv(A) @ B.

    `residuals` holds the sums of squares if m > n and all ranks are n, and is empty otherwise. The gradient takes the
    rank as constant.

    Args:
        A: matrices [..., m, n].
        B: right-hand sides [..., m, k].
        rcond: has no effect.
        driver: has no effect.
    """
    del rcond, driver
    if A._data.ndim > 1 and B._data.ndim == A._data.ndim and A._data.shape[-2] != B._data.shape[-2]:
        raise RuntimeError("linalg.lstsq: input.size(-2) should match other.size(-2)")
    solution = pinv(A).matmul(B)
    rank = np.asarray(np.linalg.matrix_rank(A._data)).astype(np.int64)
    rows, columns = A._data.shape[-2:]
    residuals = from_array(np.empty(0, dtype=A._data.dtype))
    if rows > columns and bool((rank == columns).all()):
        residuals = ((A.matmul(solution) - B).abs() ** 2).sum(-2)
    return LeastSquares(solution, residuals, from_array(rank), from_array(np.empty(0, dtype=A._data.dtype)))


def pdist(input: Tensor, p: float = 2.0) -> Tensor:
    """Return the p-norm distances of all pairs of rows of [N, M], as the upper triangle of `cdist` has them.

    Args:
        input: the rows.
        p: the norm.

    Raises:
        RuntimeError: the input does not have two axes, or p is negative.
    """
    if input._data.ndim != 2:
        raise RuntimeError(f"pdist only supports 2D tensors, got: {input._data.ndim}D")
    if p < 0:
        raise RuntimeError("pdist only supports non-negative p values")
    first, second = (from_array(places) for places in np.triu_indices(input._data.shape[0], 1))
    return (input[first] - input[second]).norm(p, -1)


def cdist(x1: Tensor, x2: Tensor, p: float = 2.0, compute_mode: str | None = None) -> Tensor:
    """Return the p-norm distances [..., P, R] of rows [..., P, M] and rows [..., R, M]; the gradient at 0 is 0.

    Args:
        x1: the first rows.
        x2: the second rows.
        p: the norm.
        compute_mode: has no effect: distances are always norms of differences.
    """
    del compute_mode
    return (x1.unsqueeze(-2) - x2.unsqueeze(-3)).norm(p, -1)
