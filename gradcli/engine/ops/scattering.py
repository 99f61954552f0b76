"""Copies with a part replaced, `scatter_reduce` and `index_reduce`."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradcli.engine.graph import Node
from gradcli.engine.in_place import bump, check_may_change, in_place, writeable
from gradcli.engine.ops.comparison import where
from gradcli.engine.ops.constant import passed
from gradcli.engine.ops.copies import clone
from gradcli.engine.ops.indexing import gather, index_put, scatter_add
from gradcli.engine.ops.operands import axis, require_one_dtype, require_places, require_rows
from gradcli.engine.recording import record, tracked
from gradcli.engine.tensor import Tensor, from_array

_FIRST = {"sum": 0.0, "mean": 0.0, "prod": 1.0, "amax": -np.inf, "amin": np.inf}


class IndexFillBackward0(Node):
    """The cotangent, 0 in the slices that were filled."""

    _saved_names = ("index",)
    dim: int

    def _vjp(self, g: Tensor) -> Any:
        (index,) = self._unpack()
        return (index_fill(g, self.dim, index, 0),)


class IndexFillBackward1(IndexFillBackward0):
    """As IndexFillBackward0, for a value that is a tensor: it gets the sum of the cotangent in the slices."""

    def _vjp(self, g: Tensor) -> Any:
        (index,) = self._unpack()
        places = from_array(index._data % max(g._data.shape[self.dim], 1))
        return index_fill(g, self.dim, index, 0), g.index_select(self.dim, places).sum() if self._needs(1) else None


def put(input: Tensor, index: Tensor, source: Tensor, accumulate: bool = False) -> Tensor:
    """Return a copy with values written to, or added at, positions of the flattened tensor.

    Raises:
        IndexError: a position is out of range, or index and source have different numbers of elements.
    """
    size = input._data.size
    if index._data.size != source._data.size:
        raise IndexError(
            "put_(): Expected source and index to have the same number of elements, but got source.numel() = "
            f"{source._data.size}, index.numel() = {index._data.size}"
        )
    outside = index._data[(index._data < -size) | (index._data >= size)]
    if outside.size:
        raise IndexError(f"out of range: tried to access index {outside[0]} on a tensor of {size} elements.")
    flat = index_put(input.reshape(-1), (index.reshape(-1) % max(size, 1),), source.reshape(-1), accumulate)
    return flat.reshape(input._data.shape)


def index_fill(input: Tensor, dim: int, index: Tensor, value: Any) -> Tensor:
    """Return a copy with one value in the slices of an axis at an index vector, which may count from the end.

    Raises:
        IndexError: the index does not hold integers, or an entry of it is out of range.
    """
    if index._data.dtype.kind not in "iu":
        raise IndexError("index_fill_(): Expected dtype int64 for index.")
    if not input._data.ndim:
        return index_fill(input.reshape(1), dim, index, value).reshape(())
    place, array = axis(dim, input._data.ndim), input._data.copy()
    array[(slice(None),) * place + (index._data,)] = value._data if isinstance(value, Tensor) else value
    kind = IndexFillBackward1 if isinstance(value, Tensor) else IndexFillBackward0
    return record(kind, array, (input, value) if isinstance(value, Tensor) else (input,), (index,), dim=place)


def masked_scatter(input: Tensor, mask: Tensor, source: Tensor) -> Tensor:
    """Return a copy with the first elements of `source`, in order, where the mask is True."""
    require_one_dtype("masked_scatter", input, source)
    full = mask.expand(input._data.shape)
    return index_put(input, (full,), source.reshape(-1)[: int(full._data.sum())])


def select_scatter(input: Tensor, src: Tensor, dim: int, index: int) -> Tensor:
    """Return a copy with `src` written to `select(dim, index)`."""
    result = clone(input)
    result.select(dim, index).copy_(src)
    return result


def slice_scatter(
    input: Tensor, src: Tensor, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1
) -> Tensor:
    """Return a copy with `src` written to the slice start:end:step of an axis."""
    result = clone(input)
    result[(slice(None),) * axis(dim, input._data.ndim) + (slice(start, end, step),)].copy_(src)
    return result


def diagonal_scatter(input: Tensor, src: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    """Return a copy with `src` written to `diagonal(offset, dim1, dim2)`."""
    result = clone(input)
    result.diagonal(offset, dim1, dim2).copy_(src)
    return result


def fill_diagonal_(input: Tensor, fill_value: float, wrap: bool = False) -> Tensor:
    """Write a number to the main diagonal in place; with `wrap`, it starts again below each square of a tall matrix."""
    if tracked(input):
        check_may_change(input)
        mask = np.zeros(input._data.shape, dtype=np.bool_)
        np.fill_diagonal(mask, True, wrap=wrap)
        return in_place(input, lambda before: before.masked_fill(from_array(mask), fill_value))
    np.fill_diagonal(writeable(input), fill_value, wrap=wrap)
    bump(input)
    return input


def scatter_reduce(
    input: Tensor, dim: int, index: Tensor, src: Tensor, reduce: str, *, include_self: bool = True
) -> Tensor:
    """Return a copy with out[index[i, j, ...], j, ...] (for dim = 0) reduced with all src[i, j, ...] of this place.

    Args:
        input: the tensor.
        dim: the axis that the index counts along.
        index: the places, at most of the shape of `src`.
        src: the values.
        reduce: "sum", "mean", "prod", "amax" or "amin". Equal extremes share the gradient. PyTorch counts the old value
            among them even without `include_self`; here it is not.
        include_self: reduce the old value of a place as well.

    Raises:
        RuntimeError: there is no such reduction.
    """
    if reduce not in _FIRST:
        raise RuntimeError(f"reduce argument must be either sum, prod, mean, amax or amin, got {reduce}")
    part = src[tuple(slice(0, size) for size in index._data.shape)]
    ones = from_array(np.ones(index._data.shape, dtype=input._data.dtype))
    hits = scatter_add(from_array(np.zeros_like(input._data)), dim, index, ones)
    start = input if include_self else where(hits > 0, from_array(np.full_like(input._data, _FIRST[reduce])), input)
    if reduce == "sum":
        return scatter_add(start, dim, index, part)
    if reduce == "mean":
        count = hits + 1 if include_self else hits.clamp(min=1)
        total = scatter_add(start, dim, index, part)
        return total / count if input._data.dtype.kind in "fc" else total.div(count, rounding_mode="floor")
    if reduce == "prod":
        return _product(start, dim, index, part)
    return _extreme(start, dim, index, part, np.maximum if reduce == "amax" else np.minimum)


def _positions(dim: int, index: Tensor, shape: tuple[int, ...]) -> Any:
    grids: list[Any] = list(np.indices(index._data.shape, sparse=True))
    if shape:
        grids[axis(dim, len(shape))] = index._data
    return tuple(grids)


def _product(start: Tensor, dim: int, index: Tensor, part: Tensor) -> Tensor:
    """Multiply by one index along `dim` after the other: within one, no two elements fall on the same place."""
    result = passed(start, start)
    for turn in range(index._data.shape[axis(dim, index._data.ndim)] if index._data.ndim else 1):
        layer = (slice(None),) * axis(dim, max(index._data.ndim, 1)) + (slice(turn, turn + 1),)
        places = index[layer] if index._data.ndim else index
        factor = from_array(np.ones_like(result._data)).scatter(dim, places, part[layer] if index._data.ndim else part)
        result = result * factor
    return result


def _extreme(start: Tensor, dim: int, index: Tensor, part: Tensor, function: np.ufunc) -> Tensor:
    best = start._data.copy()
    function.at(best, _positions(dim, index, best.shape), part._data)
    peak = from_array(best)
    kept, came = start == peak, part == gather(peak, dim, index)
    count = scatter_add(kept.to(peak.dtype), dim, index, came.to(peak.dtype)).clamp(min=1)
    shared = where(kept, start / count, 0.0)
    return scatter_add(shared, dim, index, where(came, part / gather(count, dim, index), 0.0))


def index_reduce(
    input: Tensor, dim: int, index: Tensor, source: Tensor, reduce: str, *, include_self: bool = True
) -> Tensor:
    """Return a copy with slices of `source` merged into those of an axis at an index vector; see `scatter_reduce`.

    Raises:
        RuntimeError: `reduce` is not "prod", "mean", "amax" or "amin", or the shapes do not fit.
    """
    if reduce not in ("prod", "mean", "amax", "amin"):
        raise RuntimeError(f"index_reduce(): Expected reduce to be one of prod, mean, amax or amin but got {reduce}.")
    place = axis(dim, input._data.ndim)
    require_one_dtype("index_reduce", input, source)
    require_rows(input, place, index, source)
    require_places(index, input._data.shape[place])
    shape = [1] * source._data.ndim
    shape[place] = -1
    whole = index.reshape(shape).expand(source._data.shape)
    return scatter_reduce(input, place, whole, source, reduce, include_self=include_self)
