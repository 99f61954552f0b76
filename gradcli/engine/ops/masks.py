"""Filling and keeping elements by masks."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradcli.engine.dtypes import Array
from gradcli.engine.graph import Node
from gradcli.engine.ops.operands import require_axes
from gradcli.engine.recording import record
from gradcli.engine.tensor import Tensor, from_array


class MaskedFillBackward0(Node):
    """Nothing goes back where the mask holds."""

    _saved_names = ("mask",)

    def _vjp(self, g: Tensor) -> Any:
        (mask,) = self._unpack()
        return (masked_fill(g, mask, 0) if self._needs(0) else None,)


class MaskedFillBackward1(Node):
    """As MaskedFillBackward0; a tensor that was filled in gets the sum of what the mask covers."""

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
    """Nothing goes back above the diagonal."""


class TriuBackward0(_Triangle):
    """Nothing goes back below the diagonal."""


def masked_fill(input: Tensor, mask: Tensor, value: Any) -> Tensor:
    """Return a copy with a value where the mask holds."""
    if isinstance(value, Tensor):
        array = np.where(mask._data, value._data.astype(input._data.dtype, copy=False), input._data)
        return record(MaskedFillBackward1, array, (input, value), (mask,))
    x, hidden = input._data, mask._data
    if x.size > _MANY and x.dtype in _WORDS and type(value) in _NUMBERS and value == 0 and hidden.shape == x.shape:
        array = _cleared(x, hidden)
    else:
        array = np.where(hidden, x.dtype.type(value), x)
    return record(MaskedFillBackward0, array, (input,), (mask,))


_MANY = 1000
_NUMBERS = frozenset((int, float))
_WORDS: dict[Any, np.dtype[Any]] = {np.dtype(np.float32): np.dtype(np.int32), np.dtype(np.float64): np.dtype(np.int64)}


def _cleared(x: Array, hidden: Array) -> Array:
    """Return x with +0 where hidden: the bits are and-ed, since choosing by a random mask stalls the processor."""
    word = _WORDS[x.dtype]
    keep = (hidden.view(np.int8) - np.int8(1)).astype(word)
    bits: Array = np.bitwise_and(np.ascontiguousarray(x).view(word), keep, out=keep)
    return bits.view(x.dtype)


def _triangle(kind: type[Node], mask: Array, input: Tensor) -> Tensor:
    return record(kind, np.where(mask, input._data, input._data.dtype.type(0)), (input,), mask=from_array(mask))


def _below(input: Tensor, offset: int) -> Array:
    require_axes("tril and triu", input, 2)
    rows, columns = input._data.shape[-2:]
    return np.tri(rows, columns, offset, dtype=np.bool_)


def tril(input: Tensor, diagonal: int = 0) -> Tensor:
    """Return a copy with zeros above a diagonal."""
    return _triangle(TrilBackward0, _below(input, diagonal), input)


def triu(input: Tensor, diagonal: int = 0) -> Tensor:
    """Return a copy with zeros below a diagonal."""
    return _triangle(TriuBackward0, ~_below(input, diagonal - 1), input)
