"""Eigenvalues of any square matrix, reflections, equations of tensors, and the variants of solvers that report."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from gradcli.engine.dtypes import Array
from gradcli.engine.graph import Node
from gradcli.engine.module_name import printed_as
from gradcli.engine.ops.lapack import LinAlgError, factored
from gradcli.engine.ops.linalg import adjoint, cholesky, inv, solve
from gradcli.engine.recording import record_many
from gradcli.engine.tensor import Tensor, from_array

PHASE = (
    "linalg_eig_backward: The eigenvectors in the complex case are specified up to multiplication by e^{i phi}. The "
    "specified loss function depends on this quantity, so it is ill-defined."
)


class LinalgEigBackward0(Node):
    """dL = diag(V^-1 dA V); dV = V P, P_ij = (V^-1 dA V)_ij / (L_j - L_i), then each column projected to length 1."""

    _saved_names = ("eigenvalues", "eigenvectors")

    def _vjp(self, g_values: Tensor | None, g_vectors: Tensor | None) -> Any:
        values, vectors = self._unpack()
        inner: Any = None
        if g_vectors is not None:
            turned = adjoint(vectors).matmul(g_vectors)
            own = turned.diagonal(0, -2, -1)
            size = max(1.0, float(np.abs(turned._data).max(initial=0)))
            if not np.allclose(own._data.imag, 0, rtol=0, atol=size * math.sqrt(np.finfo(own._data.dtype).eps)):
                raise RuntimeError(PHASE)
            turned = turned - adjoint(vectors).matmul(vectors * own.real.unsqueeze(-2))
            gap = (values.unsqueeze(-2) - values.unsqueeze(-1)).conj()
            same = from_array(np.broadcast_to(np.eye(gap._data.shape[-1], dtype=bool), gap._data.shape))
            inner = turned / gap.masked_fill(same, 1)
        if g_values is not None:
            inner = g_values.diag_embed() if inner is None else inner + g_values.diag_embed()
        back = adjoint(vectors)
        return solve(back, inner.matmul(back))


@printed_as("linalg_eig")
class Eig(NamedTuple):
    """Eigenvalues in no order, and the eigenvectors as columns of length 1; both complex."""

    eigenvalues: Tensor
    eigenvectors: Tensor


def _complex_eig(matrix: Array) -> tuple[Array, Array]:
    kind = np.result_type(matrix.dtype, np.complex64)
    values, vectors = np.linalg.eig(matrix)
    return values.astype(kind), vectors.astype(kind)


def eig(input: Tensor) -> Eig:
    """Return the eigenvalues and eigenvectors of square matrices [..., m, m], as complex numbers."""
    values, vectors = factored("eig", _complex_eig, input._data)
    return Eig(*record_many(LinalgEigBackward0, [values, vectors], (input,), keep=True))


def eigvals(input: Tensor) -> Tensor:
    """Return the eigenvalues of square matrices [..., m, m], as complex numbers in no order."""
    return eig(input).eigenvalues


def householder_product(input: Tensor, tau: Tensor) -> Tensor:
    """Return the first columns of the product of the reflections 1 - tau_i v_i v_i^H.

    Args:
        input: [..., m, n], m >= n; v_i is column i below the diagonal, 1 on it, and 0 above.
        tau: [..., k], k <= n.

    Raises:
        RuntimeError: the shapes do not fit.
    """
    shape = input._data.shape
    if len(shape) < 2:
        raise RuntimeError("torch.linalg.householder_product: input must have at least 2 dimensions.")
    if shape[-2] < shape[-1]:
        raise RuntimeError("torch.linalg.householder_product: input.shape[-2] must be greater than or equal to "
                           "input.shape[-1]")  # fmt: skip
    if shape[-1] < tau._data.shape[-1]:
        raise RuntimeError("torch.linalg.householder_product: input.shape[-1] must be greater than or equal to "
                           "tau.shape[-1]")  # fmt: skip
    if shape[:-2] != tau._data.shape[:-1]:
        raise RuntimeError(
            "torch.linalg.householder_product: Expected batch dimensions of tau to be equal to "
            f"input.shape[:-2], but got {list(tau._data.shape[:-1])}"
        )
    unit = from_array(np.broadcast_to(np.eye(*shape[-2:], dtype=input._data.dtype), shape))
    columns = input.tril(-1) + unit
    result: Tensor = unit
    for number in reversed(range(tau._data.shape[-1])):
        column = columns[..., number : number + 1]
        result = result - column.matmul(adjoint(column).matmul(result)) * tau[..., number, None, None]
    return result


def tensorsolve(input: Tensor, other: Tensor, dims: Sequence[int] | None = None) -> Tensor:
    """Return X with tensordot(input, X, X.ndim) = other.

    Args:
        input: a tensor whose first axes have as many elements as its last.
        other: as many elements as the first axes of input.
        dims: axes of input to move to its end first.

    Raises:
        RuntimeError: the first and last axes of input have different numbers of elements.
    """
    whole = input if dims is None else input.movedim(tuple(dims), tuple(range(-len(dims), 0)))
    shape = whole._data.shape[other._data.ndim :]
    size = math.prod(shape)
    if size != math.prod(whole._data.shape[: other._data.ndim]):
        raise RuntimeError(
            "Expected self to satisfy the requirement prod(self.shape[other.ndim:]) == prod(self.shape[:other.ndim]), "
            f"but got {size} != {math.prod(whole._data.shape[: other._data.ndim])}"
        )
    return solve(whole.reshape(size, size), other.reshape(-1)).reshape(shape)


def tensorinv(input: Tensor, ind: int = 2) -> Tensor:
    """Return X with tensordot(X, B, ind) = tensorsolve(input, B) for every B of `ind` axes.

    Raises:
        RuntimeError: `ind` is not positive, or the axes before and after it have different numbers of elements.
    """
    if ind <= 0:
        raise RuntimeError("Expected a strictly positive integer for 'ind'")
    first, last = input._data.shape[:ind], input._data.shape[ind:]
    if math.prod(first) != math.prod(last):
        raise RuntimeError(
            "Expected self to satisfy the requirement prod(self.shape[ind:]) == prod(self.shape[:ind]), but got "
            f"{math.prod(last)} != {math.prod(first)}"
        )
    return inv(input.reshape(math.prod(last), -1)).reshape(*last, *first)


@printed_as("linalg_inv_ex")
class InverseInfo(NamedTuple):
    """Inverses, and for each 0."""

    inverse: Tensor
    info: Tensor


@printed_as("linalg_solve_ex")
class SolutionInfo(NamedTuple):
    """Solutions, and for each 0."""

    result: Tensor
    info: Tensor


@printed_as("linalg_cholesky_ex")
class CholeskyInfo(NamedTuple):
    """Factors, and for each 0."""

    L: Tensor
    info: Tensor


def _reported(kind: Callable[..., Any], operation: Callable[..., Tensor], check_errors: bool, *inputs: Tensor) -> Any:
    try:
        result = operation(*inputs)
    except LinAlgError as error:
        if check_errors:
            raise
        raise NotImplementedError(f"{error} gradcli.engine gives no result and info of such a matrix") from None
    return kind(result, from_array(np.zeros(inputs[0]._data.shape[:-2], dtype=np.int32)))


def inv_ex(input: Tensor, *, check_errors: bool = False) -> InverseInfo:
    """Return inverses and infos of 0; a singular matrix raises also without `check_errors`."""
    result: InverseInfo = _reported(InverseInfo, inv, check_errors, input)
    return result


def solve_ex(input: Tensor, other: Tensor, *, check_errors: bool = False) -> SolutionInfo:
    """Return solutions and infos of 0; a singular matrix raises also without `check_errors`."""
    result: SolutionInfo = _reported(SolutionInfo, solve, check_errors, input, other)
    return result


def cholesky_ex(input: Tensor, *, check_errors: bool = False) -> CholeskyInfo:
    """Return factors and infos of 0; a matrix that is not positive definite raises also without `check_errors`."""
    result: CholeskyInfo = _reported(CholeskyInfo, cholesky, check_errors, input)
    return result
