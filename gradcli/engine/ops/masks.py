"""`masked_fill`, and the triangles of matrices."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradcli.engine.dtypes import Array
from gradcli.engine.graph import Node
from gradcli.engine.ops.kernels import cleared
from gradcli.engine.ops.operands import require_axes
from gradcli.engine.recording import record
from gradcli.engine.tensor import Tensor, from_array


class MaskedFillBackward0(Node):
    """The cotangent, 0 where the mask is True."""

    _on_arrays = True
    _saved_names = ("mask",)

    def _vjp(self, g: Any) -> Any:
        (mask,) = self._unpack_like(g)
        if isinstance(g, Tensor):
            return (masked_fill(g, mask, 0),)
        return (cleared(np.asarray(g), mask),)


class MaskedFillBackward1(Node):
    """As MaskedFillBackward0, for a fill value that is a tensor: it gets the sum of the cotangent under the mask."""

    _saved_names = ("mask",)

    def _vjp(self, g: Tensor) -> Any:
        (mask,) = self._unpack()
        inside = masked_fill(g, ~mask, 0).sum() if self._needs(1) else None
        return masked_fill(g, mask, 0) if self._needs(0) else None, inside


class _Triangle(Node):
    mask: Tensor

    def _vjp(self, g: Tensor) -> Any:
        return masked_fill(g, ~self.mask, 0)


class TrilBackward0(_Triangle):
    """The cotangent, 0 above the diagonal."""


class TriuBackward0(_Triangle):
    """The cotangent, 0 below the diagonal."""


_NUMBERS = frozenset((int, float))


def masked_fill(input: Tensor, mask: Tensor, value: Any) -> Tensor:
    """Return a copy with a number, or the only element of a tensor, where a boolean mask is True.

    Raises:
        RuntimeError: the mask is not boolean.
    """
    if mask._data.dtype.kind != "b":
        raise RuntimeError(f"masked_fill_ only supports boolean masks, but got mask with dtype {mask.dtype.in_c}")
    if isinstance(value, Tensor):
        array = np.where(mask._data, value._data.astype(input._data.dtype, copy=False), input._data)
        return record(MaskedFillBackward1, array, (input, value), (mask,))
    x, hidden = input._data, mask._data
    zero = type(value) in _NUMBERS and value == 0
    array = cleared(x, hidden) if zero else np.where(hidden, x.dtype.type(value), x)
    return record(MaskedFillBackward0, array, (input,), (mask,))


def _triangle(kind: type[Node], mask: Array, input: Tensor) -> Tensor:
    return record(kind, np.where(mask, input._data, input._data.dtype.type(0)), (input,), mask=from_array(mask))


def _below(name: str, input: Tensor, offset: int) -> Array:
    require_axes(name, input, 2)
    rows, columns = input._data.shape[-2:]
    return np.tri(rows, columns, offset, dtype=np.bool_)


def tril(input: Tensor, diagonal: int = 0) -> Tensor:
    """Return a copy of matrices [..., m, n] with zeros above a diagonal (0: the main one, 1: the one above it)."""
    return _triangle(TrilBackward0, _below("tril", input, diagonal), input)


def triu(input: Tensor, diagonal: int = 0) -> Tensor:
    """Return a copy of matrices [..., m, n] with zeros below a diagonal (0: the main one, 1: the one above it)."""
    return _triangle(TriuBackward0, ~_below("triu", input, diagonal - 1), input)
