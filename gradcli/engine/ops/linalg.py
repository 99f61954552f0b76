"""Matrix products, inverses, linear systems, and Cholesky and eigenvalue decompositions."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from gradcli.engine.graph import Node
from gradcli.engine.module_name import printed_as
from gradcli.engine.ops.generic import product, transposed
from gradcli.engine.ops.kernels import multiplied
from gradcli.engine.ops.lapack import factored, of_hermitian, require_rows_of
from gradcli.engine.ops.operands import arrays, check_broadcast, conj, require_one_dtype
from gradcli.engine.ops.parts import diagonal
from gradcli.engine.ops.shape import SqueezeBackward4, UnsafeViewBackward0, transpose
from gradcli.engine.recording import record, record_many
from gradcli.engine.tensor import Tensor, from_array


def adjoint(matrix: Any) -> Any:
    """Return the conjugate transpose of the last two axes of a tensor or an array."""
    return conj(transpose(matrix, -2, -1) if isinstance(matrix, Tensor) else matrix.swapaxes(-2, -1))


def matrix_adjoint(input: Tensor) -> Tensor:
    """Return the conjugate transpose of a matrix, a 0-d tensor itself; raises RuntimeError for other tensors."""
    if input._data.ndim not in (0, 2):
        more = " For batches of matrices, consider using tensor.mH" if input._data.ndim > 2 else ""
        raise RuntimeError(
            f"tensor.H is only supported on matrices (2-D tensors). Got {input._data.ndim}-D tensor.{more}"
        )
    result: Tensor = adjoint(input) if input._data.ndim else conj(input)
    return result


class MmBackward0(Node):
    """d(A B) = dA B + A dB."""

    _on_arrays = True
    _saved_names = ("self", "mat2")

    def _vjp(self, g: Any) -> Any:
        a, b = self._unpack_like(g)
        return (
            product(g, transposed(b)) if self._needs(0) else None,
            product(transposed(a), g) if self._needs(1) else None,
        )


class BmmBackward0(Node):
    """As MmBackward0, for batches of matrices."""

    _on_arrays = True
    _saved_names = ("self", "mat2")

    def _vjp(self, g: Any) -> Any:
        a, b = self._unpack_like(g)
        return (
            product(g, adjoint(b)) if self._needs(0) else None,
            product(adjoint(a), g) if self._needs(1) else None,
        )


class MvBackward0(Node):
    """d(A v) = dA v + A dv."""

    _saved_names = ("self", "vec")

    def _vjp(self, g: Tensor) -> Any:
        a, v = self._unpack()
        return (
            g.unsqueeze(1) * conj(v).unsqueeze(0) if self._needs(0) else None,
            conj(a.t()).mv(g) if self._needs(1) else None,
        )


class DotBackward0(Node):
    """d(u . v) = du . v + u . dv."""

    _on_arrays = True
    _saved_names = ("self", "tensor")

    def _vjp(self, g: Any) -> Any:
        u, v = self._unpack_like(g)
        return g * conj(v) if self._needs(0) else None, g * conj(u) if self._needs(1) else None


class AddmmBackward0(Node):
    """d(beta C + alpha A B) = beta dC + alpha (dA B + A dB)."""

    _on_arrays = True
    _saved_names = ("mat1", "mat2")
    beta: float
    alpha: float

    def _vjp(self, g: Any) -> Any:
        a, b = self._unpack_like(g)
        scaled = g if self.alpha == 1 else g * self.alpha
        return (
            (g if self.beta == 1 else g * self.beta) if self._needs(0) else None,
            product(scaled, adjoint(b)) if self._needs(1) else None,
            product(adjoint(a), scaled) if self._needs(2) else None,
        )


class BaddbmmBackward0(AddmmBackward0):
    """As AddmmBackward0, for batches of matrices."""


class LinalgInvExBackward0(Node):
    """d(A^-1) = -A^-1 dA A^-1."""

    _saved_names = ("inverse",)

    def _vjp(self, g: Tensor) -> Any:
        (inverse,) = self._unpack()
        back = adjoint(inverse)
        return -back.matmul(g).matmul(back)


class LinalgSolveExBackward0(Node):
    """dX = A^-1 (dB - dA X), with X = A^-1 B."""

    _saved_names = ("A", "result")
    vector: bool

    def _vjp(self, g: Tensor) -> Any:
        a, x = self._unpack()
        by_b = solve(adjoint(a), g)
        if not self._needs(0):
            return None, by_b
        if self.vector:
            return -by_b.unsqueeze(-1) * conj(x).unsqueeze(-2), by_b
        return -by_b.matmul(adjoint(x)), by_b


class LinalgCholeskyExBackward0(Node):
    """dL = L Phi(L^-1 dA L^-H); Phi takes the lower triangle and halves its diagonal (Murray, arXiv 1602.07527)."""

    _saved_names = ("L",)

    def _vjp(self, g: Tensor) -> Any:
        (low,) = self._unpack()
        middle = adjoint(low).matmul(g).tril()
        middle = middle - (middle * _eye_like(middle)) / 2
        inverse = inv(low)
        full = adjoint(inverse).matmul(middle).matmul(inverse)
        return (full + adjoint(full)) / 2


class LinalgEighBackward0(Node):
    """d lambda = diag(V^H dA V); dV = V (F * V^H dA V), F_ij = 1 / (lambda_j - lambda_i), 0 on the diagonal."""

    _saved_names = ("eigenvalues", "eigenvectors")

    def _vjp(self, g_values: Tensor | None, g_vectors: Tensor | None) -> Any:
        values, vectors = self._unpack()
        inner: Any = None
        if g_vectors is not None:
            gap = values.unsqueeze(-2) - values.unsqueeze(-1)
            same = _eye_like(gap) != 0
            inner = (adjoint(vectors).matmul(g_vectors) / gap.masked_fill(same, 1)).masked_fill(same, 0)
        if g_values is not None:
            spread = g_values.unsqueeze(-1) * _eye_like(g_values.unsqueeze(-1) * values.unsqueeze(-2).detach())
            inner = spread if inner is None else inner + spread
        result = vectors.matmul(inner.to(vectors.dtype)).matmul(adjoint(vectors))
        return (result + adjoint(result)) / 2


def _eye_like(matrix: Tensor) -> Tensor:
    return from_array(np.broadcast_to(np.eye(*matrix._data.shape[-2:], dtype=matrix._data.dtype), matrix._data.shape))


class TraceBackward0(Node):
    """The cotangent times the identity."""

    shape: tuple[int, ...]

    def _vjp(self, g: Tensor) -> Any:
        return g * from_array(np.eye(*self.shape, dtype=g._data.dtype))


def _require_like(first: Tensor, second: Tensor, words: str) -> None:
    """Raise RuntimeError, in the words of an operation, unless two factors have one element type.

    The words contain {0} and {1} for the names of the types, {0.letter} for those of classes, and {0.in_c} for those
    of PyTorch's source.
    """
    if first._data.dtype != second._data.dtype:
        raise RuntimeError(words.format(first.dtype, second.dtype))


def mm(input: Tensor, mat2: Tensor) -> Tensor:
    """Return the product of two matrices.

    Raises:
        RuntimeError: they are not matrices of fitting shapes and one element type.
    """
    a, b = input._data, mat2._data
    if a.ndim != 2:
        raise RuntimeError("self must be a matrix")
    if b.ndim != 2:
        raise RuntimeError("mat2 must be a matrix")
    if a.shape[1] != b.shape[0]:
        raise RuntimeError(
            f"mat1 and mat2 shapes cannot be multiplied ({a.shape[0]}x{a.shape[1]} and {b.shape[0]}x{b.shape[1]})"
        )
    _require_like(input, mat2, "expected m1 and m2 to have the same dtype, but got: {0.in_c} != {1.in_c}")
    return record(MmBackward0, multiplied("addmm_impl_cpu_", a, b), (input, mat2), crossed=True)


def bmm(input: Tensor, mat2: Tensor) -> Tensor:
    """Return the products [N, m, p] of two batches of matrices [N, m, n] and [N, n, p]; raises as `mm`."""
    for name, batch in (("batch1", input), ("batch2", mat2)):
        if batch._data.ndim != 3:
            raise RuntimeError(f"{name} must be a 3D tensor")
    a, b = input._data.shape, mat2._data.shape
    if a[0] != b[0] or a[2] != b[1]:
        raise RuntimeError(
            "Expected size for first two dimensions of batch2 tensor to be: "
            f"[{a[0]}, {a[2]}] but got: [{b[0]}, {b[1]}]."
        )
    _require_like(input, mat2, "expected scalar type {0.letter} but found {1.letter}")
    return record(BmmBackward0, multiplied("bmm", input._data, mat2._data), (input, mat2), crossed=True)


def mv(input: Tensor, vec: Tensor) -> Tensor:
    """Return the product of a matrix and a vector; raises as `mm`."""
    a, v = input._data.ndim, vec._data.ndim
    if (a, v) != (2, 1):
        raise RuntimeError(f"vector + matrix @ vector expected, got 1, {a}, {v}")
    if input._data.shape[1] != vec._data.shape[0]:
        raise RuntimeError(f"size mismatch, got input ({input._data.shape[0]}), mat ({input._data.shape[0]}x"
                           f"{input._data.shape[1]}), vec ({vec._data.shape[0]})")  # fmt: skip
    words = "addmv input tensors must have the same dtype, but got {1.letter}, {0.letter}, and {1.letter}"
    _require_like(input, vec, words)
    return record(MvBackward0, multiplied("addmv_impl_cpu", input._data, vec._data), (input, vec), crossed=True)


def dot(input: Tensor, tensor: Tensor) -> Tensor:
    """Return sum(input * tensor) of two vectors, neither conjugated; raises as `mm`."""
    a, b = input._data.ndim, tensor._data.ndim
    if (a, b) != (1, 1):
        raise RuntimeError(f"1D tensors expected, but got {a}D and {b}D tensors")
    _require_like(input, tensor, "dot : expected both vectors to have same dtype, but found {0.letter} and {1.letter}")
    if input._data.shape != tensor._data.shape:
        raise RuntimeError(
            f"inconsistent tensor size, expected tensor [{input._data.size}] and src [{tensor._data.size}] to have the "
            f"same number of elements, but got {input._data.size} and {tensor._data.size} elements respectively"
        )
    return record(DotBackward0, multiplied("dot", input._data, tensor._data), (input, tensor), crossed=True)


def inner(input: Tensor, other: Tensor) -> Tensor:
    """Return the sums of products over the last axes of two tensors: [..., n] and [*, n] give [..., *]."""
    if not input._data.ndim or not other._data.ndim:
        return input * other
    _require_like(input, other, "both inputs should have same dtype")
    if input._data.ndim == other._data.ndim == 1:
        return dot(input, other)
    rows, columns = input.reshape(-1, input._data.shape[-1]), other.reshape(-1, other._data.shape[-1])
    return mm(rows, columns.t()).reshape(input._data.shape[:-1] + other._data.shape[:-1])


def outer(input: Tensor, vec2: Tensor) -> Tensor:
    """Return the matrix input_i * vec2_j of two vectors; raises RuntimeError for tensors of other axes."""
    for name, vector in (("self", input), ("vec2", vec2)):
        if vector._data.ndim != 1:
            raise RuntimeError(f"outer: Expected 1-D argument {name}, but got {vector._data.ndim}-D")
    return input.reshape(-1, 1) * vec2


def addmm(input: Tensor, mat1: Tensor, mat2: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
    """Return beta * input + alpha * (mat1 @ mat2)."""
    _require_like(input, mat2, "self and mat2 must have the same dtype, but got {0.letter} and {1.letter}")
    _require_like(mat1, mat2, "mat1 and mat2 must have the same dtype, but got {0.letter} and {1.letter}")
    if mat1._data.ndim != 2 or mat2._data.ndim != 2 or mat1._data.shape[1] != mat2._data.shape[0]:
        rows = "x".join(map(str, mat1._data.shape)), "x".join(map(str, mat2._data.shape))
        raise RuntimeError(f"mat1 and mat2 shapes cannot be multiplied ({rows[0]} and {rows[1]})")
    return _added(AddmmBackward0, input, mat1, mat2, beta, alpha)


def baddbmm(input: Tensor, batch1: Tensor, batch2: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
    """Return beta * input + alpha * bmm(batch1, batch2)."""
    if not input._data.dtype == batch1._data.dtype == batch2._data.dtype:
        kinds = [tensor.dtype.in_c for tensor in (input, batch1, batch2)]
        raise RuntimeError(
            f"Input dtypes must be the same, got: input {kinds[0]}, batch1: {kinds[1]}, batch2: {kinds[2]}"
        )
    for name, batch in (("batch1", batch1), ("batch2", batch2)):
        if batch._data.ndim != 3:
            raise RuntimeError(f"{name} must be a 3D tensor")
    return _added(BaddbmmBackward0, input, batch1, batch2, beta, alpha)


def _added(kind: type[Node], input: Tensor, a: Tensor, b: Tensor, beta: float, alpha: float) -> Tensor:
    product = multiplied("addmm_impl_cpu_", a._data, b._data)
    array = (product if alpha == 1 else product * alpha) + (input._data if beta == 1 else input._data * beta)
    return record(kind, array, (input, a, b), crossed=True, beta=beta, alpha=alpha)


def matmul(input: Tensor, other: Tensor) -> Tensor:  # noqa: PLR0911  (one return for each pair of ranks)
    """Return input @ other: a vector is a row on the left and a column on the right; leading axes are broadcast."""
    left, right = input._data.ndim, other._data.ndim
    if not left or not right:
        raise RuntimeError(f"both arguments to matmul need to be at least 1D, but they are {left}D and {right}D")
    if left == 1 and right == 1:
        return dot(input, other)
    if left == 2 and right == 1:
        return mv(input, other)
    if left == 1 and right == 2:
        product = mm(input.unsqueeze(0), other)
        return record(SqueezeBackward4, product._data.squeeze(0), (product,), shape=product._data.shape)
    if left == 2 and right == 2:
        return mm(input, other)
    if left == 1:
        return matmul(input.unsqueeze(0), other).squeeze(-2)
    if right == 1:
        flat = mv(input.reshape(-1, input._data.shape[-1]), other)
        return _unsafe_view(flat, input._data.shape[:-1])
    if right == 2:
        product = mm(input.reshape(-1, input._data.shape[-1]), other)
        return _unsafe_view(product, (*input._data.shape[:-1], other._data.shape[-1]))
    check_broadcast(input._data.shape[:-2], other._data.shape[:-2])
    batch = np.broadcast_shapes(input._data.shape[:-2], other._data.shape[:-2])
    a = input.expand(*batch, *input._data.shape[-2:]).reshape(math.prod(batch), *input._data.shape[-2:])
    b = other.expand(*batch, *other._data.shape[-2:]).reshape(math.prod(batch), *other._data.shape[-2:])
    product = bmm(a, b)
    return _unsafe_view(product, (*batch, *product._data.shape[-2:]))


def _unsafe_view(product: Tensor, shape: tuple[int, ...]) -> Tensor:
    return record(UnsafeViewBackward0, product._data.reshape(shape), (product,), shape=product._data.shape)


def trace(input: Tensor) -> Tensor:
    """Return the sum of the diagonal of a matrix; raises RuntimeError for other tensors."""
    if input._data.ndim != 2:
        raise RuntimeError(f"trace: expected a matrix, but got tensor with dim {input._data.ndim}")
    return record(TraceBackward0, np.asarray(diagonal(input)._data.sum()), (input,), shape=input._data.shape)


def inv(input: Tensor) -> Tensor:
    """Return the inverses of matrices [..., m, m]; raises LinAlgError if one is singular."""
    return record(LinalgInvExBackward0, factored("inv", np.linalg.inv, input._data), (input,), keep=True)


def solve(input: Tensor, other: Tensor, *, left: bool = True) -> Tensor:
    """Return X with input @ X = other, for input [..., m, m] and other [..., m, k] or vectors [..., m].

    With `left=False`, return X with X @ input = other, for other [..., k, m].
    """
    if not left:
        turned: Tensor = solve(input.mT, other.mT).mT
        return turned
    require_one_dtype("linalg.solve", input, other)
    a, b = arrays(input, other)
    vector = b.ndim == 1 or (b.ndim == a.ndim - 1 and b.shape == a.shape[:-1])
    columns = b[..., None] if vector else b
    require_rows_of("solve", a, columns)
    array = factored("solve", np.linalg.solve, a, columns)
    array = array[..., 0] if vector else array
    return record(LinalgSolveExBackward0, array, (input, other), (input,), keep=True, vector=vector)


def cholesky(input: Tensor, *, upper: bool = False) -> Tensor:
    """Return lower triangular L with L L^H = input, positive definite, or with `upper` L^H.

    Only the lower triangle of the input is read, with `upper` only the upper one.
    """
    source = adjoint(input) if upper else input
    array = factored("cholesky", np.linalg.cholesky, source._data)
    result = record(LinalgCholeskyExBackward0, array, (source,), keep=True)
    return adjoint(result) if upper else result


@printed_as("linalg_eigh")
class Eigen(NamedTuple):
    """Eigenvalues, ascending, and the eigenvectors as columns."""

    eigenvalues: Tensor
    eigenvectors: Tensor


def eigh(input: Tensor, UPLO: str = "L") -> Eigen:
    """Return eigenvalues and eigenvectors of Hermitian matrices [..., m, m], of which one triangle is read: L or U."""
    values, vectors = factored("eigh", of_hermitian(UPLO), input._data)
    return Eigen(*record_many(LinalgEighBackward0, [values, vectors], (input,), keep=True))
