"""Determinants and their logarithms; the gradient of a determinant is the adjugate, a polynomial in the entries."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from gradcli.engine.dtypes import Array
from gradcli.engine.graph import Node
from gradcli.engine.module_name import printed_as
from gradcli.engine.ops.comparison import where
from gradcli.engine.ops.joining import cat, stack
from gradcli.engine.ops.lapack import factored
from gradcli.engine.ops.linalg import adjoint, inv
from gradcli.engine.ops.operands import conj
from gradcli.engine.recording import record, record_many
from gradcli.engine.tensor import Tensor, from_array

# Pivots above this share of the first are inverted together. A derivative of order q by an inverse loses a factor of
# the condition number for each order, which the share bounds.
_LARGE = 0.01


class LinalgDetBackward0(Node):
    """d det(A) = tr(adj(A) dA)."""

    _saved_names = ("A", "result")

    def _vjp(self, g: Tensor) -> Any:
        a, result = self._unpack()
        return g[..., None, None] * adjoint(_adjugate(a, result))


class LinalgSlogdetBackward0(Node):
    """d log|det(A)| = Re tr(A^-1 dA), and d sign = i sign Im tr(A^-1 dA), which is 0 for real matrices."""

    _saved_names = ("A", "sign", "logabsdet")

    def _vjp(self, g_sign: Tensor | None, g_log: Tensor | None) -> Any:
        a, sign, _ = self._unpack()
        along: Any = g_log
        if g_sign is not None and sign.is_complex():
            turned = (conj(g_sign) * sign).imag * -1j
            along = turned if along is None else along + turned
        return None if along is None else along[..., None, None] * adjoint(inv(a))


def _adjugate(a: Tensor, result: Tensor | None = None) -> Tensor:
    """Return adj(A), which is det(A) A^-1 and at singular matrices the limit of it.

    Every branch is an identity of polynomials near A, so that its derivatives of every order are those of adj(A). For
    det(A) A^-1 alone this is true on paper only: near a singular matrix its terms grow and cancel.

    Args:
        a: matrices [..., n, n].
        result: their determinants, where known.
    """
    n = a._data.shape[-1]
    if n <= 3:
        return _by_minors(a)
    order = _pivots(a._data)
    if order.size == n:
        return (det(a) if result is None else result)[..., None, None] * inv(a)
    if order.size:
        return _by_blocks(a, order)
    if a._data.any() and a._data.ndim > 2:
        single = [_adjugate(matrix) for matrix in a.reshape(-1, n, n).unbind(0)]
        return stack(single).reshape(a._data.shape)
    return _at_zero(a)


def _by_minors(a: Tensor) -> Tensor:
    """Return the adjugates by the determinants without a row and a column, with alternating signs."""
    n = a._data.shape[-1]
    if n < 2:
        return a.masked_fill(from_array(np.ones_like(a._data, dtype=np.bool_)), 1)
    kept = np.array([[k for k in range(n) if k != left_out] for left_out in range(n)])
    rows, columns = from_array(kept[:, None, :, None]), from_array(kept[None, :, None, :])
    signs = from_array(np.where(np.add.outer(np.arange(n), np.arange(n)) % 2, -1, 1).astype(a._data.dtype))
    return (det(a[..., rows, columns]) * signs).mT


class _Order(NamedTuple):
    """Permutation matrices L and K; the leading block of L A K, of `size` rows, is well conditioned."""

    left: Array
    right: Array
    size: int


def _pivots(matrices: Array) -> _Order:
    """Choose pivots of Gaussian elimination, each the largest entry that is left, while they are large in all matrices.

    A smaller block than possible gives the same result, with more work left for the rest.
    """
    n = matrices.shape[-1]
    work = matrices.reshape(math.prod(matrices.shape[:-2]), n, n).copy()
    each = np.arange(len(work))
    left, right = (np.broadcast_to(np.eye(n, dtype=work.dtype), work.shape).copy() for _ in range(2))
    count = n
    first: Any = None
    for k in range(n if work.size and np.isfinite(work).all() else 0):
        sizes = np.abs(work[:, k:, k:]).reshape(len(work), -1)
        place = sizes.argmax(1)
        largest = sizes[each, place]
        first = largest if first is None else first
        if not (largest > _LARGE * first).all():
            count = k
            break
        row, column = place // (n - k) + k, place % (n - k) + k
        for array in (work, left):
            array[each, k], array[each, row] = array[each, row], array[each, k]
        for array in (work, right):
            array[each, :, k], array[each, :, column] = array[each, :, column], array[each, :, k]
        steps = work[:, k + 1 :, k] / work[:, k, k, None]
        work[:, k + 1 :, k + 1 :] -= steps[:, :, None] * work[:, k, None, k + 1 :]
    return _Order(left.reshape(matrices.shape), right.reshape(matrices.shape), count)


def _by_blocks(a: Tensor, order: _Order) -> Tensor:
    """Return the adjugates by the inverse of a block P that has one: L A K = [[P, Q], [R, T]].

    With S = T - R P^-1 Q the determinant is det(P) det(S), and the adjugate det(P) times [[det(S) P^-1, 0], [0, 0]] +
    [P^-1 Q; -I] adj(S) [R P^-1, -I].
    """
    left, right, r = from_array(order.left), from_array(order.right), order.size
    turned = left.matmul(a).matmul(right)
    block = turned[..., :r, :r]
    inverse = inv(block)
    across, down = inverse.matmul(turned[..., :r, r:]), turned[..., r:, :r].matmul(inverse)
    rest = turned[..., r:, r:] - down.matmul(turned[..., :r, r:])
    minus = from_array(np.broadcast_to(-np.eye(rest._data.shape[-1], dtype=rest._data.dtype), rest._data.shape))
    outer = cat([across, minus], -2).matmul(_adjugate(rest)).matmul(cat([down, minus], -1))
    corner = inverse * det(rest)[..., None, None]
    beside, below = from_array(np.zeros_like(across._data)), from_array(np.zeros_like(turned._data[..., r:, :]))
    whole = (outer + cat([cat([corner, beside], -1), below], -2)) * det(block)[..., None, None]
    sign = np.linalg.det(order.left) * np.linalg.det(order.right)
    return right.matmul(whole).matmul(left) * from_array(sign[..., None, None])


def _at_zero(a: Tensor) -> Tensor:
    """Return the adjugates of zeros, n > 1, which are 0.

    adj(A + t I) is a polynomial in t of degree n - 1, so adj(A) is its mean over the n-th roots of unity, where the
    matrices are well conditioned.
    """
    n = a._data.shape[-1]
    kind = np.result_type(a._data.dtype, np.complex64)
    roots = np.exp(2j * np.pi * np.arange(n) / n)
    shifted = a.to(from_array(np.zeros(0, kind)).dtype).unsqueeze(-3) + from_array(
        (roots[:, None, None] * np.eye(n)).astype(kind)
    )
    mean = (det(shifted)[..., None, None] * inv(shifted)).mean(-3)
    result = mean if a.is_complex() else mean.real
    return result - result.detach()


def det(input: Tensor) -> Tensor:
    """Return the determinants of matrices [..., m, m]."""
    return record(LinalgDetBackward0, factored("det", np.linalg.det, input._data), (input,), (input,), keep=True)


@printed_as("linalg_slogdet")
class SignLogdet(NamedTuple):
    """The sign of a determinant, and the logarithm of its absolute value."""

    sign: Tensor
    logabsdet: Tensor


def slogdet(input: Tensor) -> SignLogdet:
    """Return (sign, logabsdet) of the determinants of matrices [..., m, m]; 0 and -inf of singular ones."""
    sign, log = (np.asarray(array) for array in factored("slogdet", np.linalg.slogdet, input._data))
    return SignLogdet(*record_many(LinalgSlogdetBackward0, [sign, log], (input,), (input,), keep=True))


def logdet(input: Tensor) -> Tensor:
    """Return the logarithms of the determinants of matrices [..., m, m]; NaN of negative ones."""
    sign, log = slogdet(input)
    if sign.is_complex():
        return log + sign.log()
    result: Tensor = where(sign == -1, float("nan"), log)
    return result
