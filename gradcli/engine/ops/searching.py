"""Searching, counting and distinct values. Only `take_along_dim` and `mode` have derivatives."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from gradcli.engine.graph import Node, Undifferentiable
from gradcli.engine.module_name import printed_as
from gradcli.engine.ops.indexing import gather
from gradcli.engine.ops.operands import axis, refuse_kinds
from gradcli.engine.ops.reduction import ValuesIndices, named_result
from gradcli.engine.recording import record
from gradcli.engine.tensor import Tensor, from_array

MODE = named_result("mode")


class Unique2Backward0(Node):
    """Of `unique`: a backward pass that reaches it raises."""

    _refused = "_unique2"

    def _vjp(self, *_: Any) -> Any:
        raise NotImplementedError(f"the derivative for '{self._refused}' is not implemented.")


class UniqueDimBackward0(Unique2Backward0):
    """Of `unique` along an axis."""

    _refused = "unique_dim"


class UniqueConsecutiveBackward0(Unique2Backward0):
    """Of `unique_consecutive`."""

    _refused = "unique_consecutive"


def unique(
    input: Tensor,
    sorted: bool = True,
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: int | None = None,
) -> Any:
    """Return the distinct elements (or slices along an axis), in ascending order.

    Args:
        input: the elements.
        sorted: has no effect: they are always in order.
        return_inverse: return the index of each input element among the distinct ones as well.
        return_counts: return how often each occurs as well.
        dim: the axis whose slices are compared.
    """
    del sorted
    refuse_kinds("unique", input._data, "c")
    values, inverse, counts = np.unique(input._data, return_inverse=True, return_counts=True, axis=dim)
    inverse = inverse.reshape(input._data.shape if dim is None else -1)
    result = [record(Unique2Backward0 if dim is None else UniqueDimBackward0, values, (input,))]
    result += [from_array(inverse.astype(np.int64))] if return_inverse else []
    result += [from_array(counts.astype(np.int64))] if return_counts else []
    return result[0] if len(result) == 1 else tuple(result)


def searchsorted(sorted_sequence: Tensor, input: Any, *, right: bool = False, side: str | None = None) -> Tensor:
    """Return the indices (int64) at which values would be inserted into an ascending vector, or row by row.

    Args:
        sorted_sequence: a vector, or rows [..., n].
        input: the values: a tensor or a number; for rows, [..., k] with the same leading axes.
        right: insert after equal elements, not before.
        side: "left" or "right", instead of `right`.

    Raises:
        RuntimeError: the sequence has several axes, and its leading axes are not those of the values.
    """
    refuse_kinds("searchsorted", sorted_sequence._data, "c")
    values = input._data if isinstance(input, Tensor) else np.asarray(input)
    rows = sorted_sequence._data
    after = "right" if side == "right" or (side is None and right) else "left"
    if rows.ndim == 1:
        return from_array(np.asarray(np.searchsorted(rows, values, side=after)).astype(np.int64))  # type: ignore[call-overload]  # after is one of the two
    if values.shape[:-1] != rows.shape[:-1]:
        raise RuntimeError(
            "searchsorted: boundaries tensor should be 1 dimension or the first N-1 dimensions of boundaries tensor "
            f"and input value tensor must match, but got {list(rows.shape)} and {list(values.shape)}"
        )
    flat = zip(rows.reshape(-1, rows.shape[-1]), values.reshape(-1, values.shape[-1]), strict=True)
    found = [np.searchsorted(row, entries, side=after) for row, entries in flat]  # type: ignore[call-overload]  # as above
    return from_array(np.array(found, dtype=np.int64).reshape(values.shape))


def bucketize(input: Any, boundaries: Tensor, *, right: bool = False) -> Tensor:
    """Return the index of the bucket between ascending boundaries that each value falls in; see `searchsorted`."""
    return searchsorted(boundaries, input, right=right)


def bincount(input: Tensor, weights: Tensor | None = None, minlength: int = 0) -> Tensor:
    """Return how often each of 0, 1, ... occurs in a vector of non-negative integers, or the sum of its weights.

    Weights of type float32 have sums of this type, all others sums in float64; the sums have no derivative.
    """
    if weights is None:
        return from_array(np.bincount(input._data, None, minlength))
    sums = np.bincount(input._data, weights._data, minlength)
    single = weights._data.dtype == np.float32
    return record(Undifferentiable, sums.astype(np.float32) if single else sums, (input, weights), what="bincount")


def unique_consecutive(
    input: Tensor, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None
) -> Any:
    """Return the elements (or slices along an axis) without those equal to the one before; options as in `unique`."""
    lines = input._data.reshape(-1) if dim is None else np.moveaxis(input._data, dim, 0)
    flat = lines.reshape(len(lines), -1)
    new = np.ones(len(lines), dtype=np.bool_)
    new[1:] = (flat[1:] != flat[:-1]).any(axis=1)
    values = lines[new] if dim is None else np.moveaxis(lines[new], 0, dim)
    result = [record(UniqueConsecutiveBackward0, values.copy(), (input,))]
    if return_inverse:
        result.append(from_array((np.cumsum(new) - 1).reshape(input._data.shape if dim is None else -1)))
    if return_counts:
        result.append(from_array(np.diff(np.append(np.flatnonzero(new), len(lines))).astype(np.int64)))
    return result[0] if len(result) == 1 else tuple(result)


def isin(elements: Any, test_elements: Any, *, assume_unique: bool = False, invert: bool = False) -> Tensor:
    """Return, for every element, whether it is among the test elements."""
    first, second = (entry._data if isinstance(entry, Tensor) else entry for entry in (elements, test_elements))
    return from_array(np.asarray(np.isin(first, second, assume_unique=assume_unique, invert=invert)))


def argwhere(input: Tensor) -> Tensor:
    """Return the indices of the elements that are not 0, as rows [count, axes]."""
    return from_array(np.argwhere(input._data))


def nonzero(input: Tensor, *, as_tuple: bool = False) -> Any:
    """Return the indices of the elements that are not 0: rows [count, axes], or a tuple of one vector for each axis."""
    if as_tuple:
        return tuple(from_array(places) for places in np.nonzero(np.atleast_1d(input._data)))
    return from_array(np.argwhere(input._data))


def take_along_dim(input: Tensor, indices: Tensor, dim: int | None = None) -> Tensor:
    """As `gather`, with input and indices broadcast along the other axes; both are flattened without `dim`."""
    indices = indices.clone()  # as in PyTorch, the caller may change them before backward
    if dim is None:
        return gather(input.reshape(-1), 0, indices.reshape(-1))
    place, shapes = axis(dim, input._data.ndim), (input._data.shape, indices._data.shape)
    whole = [*np.broadcast_shapes(*((*shape[:place], 1, *shape[place + 1 :]) for shape in shapes))]
    source, index = (t.expand([*whole[:place], t._data.shape[place], *whole[place + 1 :]]) for t in (input, indices))
    return gather(source, place, index)


def _picked(kind: type[ValuesIndices], input: Tensor, places: Any, spot: int, keepdim: bool) -> ValuesIndices:
    indices = from_array(np.expand_dims(np.asarray(places, dtype=np.int64), spot))
    values = input.gather(spot, indices)
    return kind(values, indices) if keepdim else kind(values.squeeze(spot), indices.squeeze(spot))


def mode(input: Tensor, dim: int = -1, keepdim: bool = False) -> ValuesIndices:
    """Return (values, indices) of the most frequent element along an axis: the smallest of several, its last index."""
    refuse_kinds("mode", input._data, "c")
    spot = axis(dim, input._data.ndim)
    if not input._data.ndim:
        return MODE(input.clone(), from_array(np.zeros((), dtype=np.int64)))

    def last_of_the_most_frequent(line: Any) -> int:
        values, counts = np.unique(line, return_counts=True)
        return int(np.flatnonzero(line == values[np.argmax(counts)])[-1])

    if not input._data.shape[spot]:
        raise IndexError(f"mode(): Expected reduction dim {spot} to have non-zero size.")
    lines = np.moveaxis(input._data, spot, -1)
    rest = lines.shape[:-1]
    found = [last_of_the_most_frequent(lines[place]) for place in np.ndindex(rest)]
    return _picked(MODE, input, np.array(found, dtype=np.int64).reshape(rest), spot, keepdim)


@printed_as("histogram")
class Histogram(NamedTuple):
    """How many elements lie in each bin, and the ends of the bins."""

    hist: Tensor
    bin_edges: Tensor


def histogram(
    input: Tensor, bins: Any, *, range: Any = None, weight: Tensor | None = None, density: bool = False
) -> Histogram:
    """Count the elements in bins; not recorded.

    Args:
        input: the elements.
        bins: the number of equal bins, or a vector of the ends of all.
        range: the ends of the equal bins together; those of the elements unless given.
        weight: what each element counts; 1 unless given.
        density: divide by the total and the widths.
    """
    kind = input._data.dtype
    edges = bins._data if isinstance(bins, Tensor) else bins
    counts, edges = np.histogram(
        input._data, edges, range, weights=None if weight is None else weight._data, density=density
    )
    return Histogram(from_array(counts.astype(kind)), from_array(edges.astype(kind)))


def histc(input: Tensor, bins: int = 100, min: float = 0, max: float = 0) -> Tensor:
    """Return the histogram over equal bins from min to max, or over the range of the elements if min = max."""
    refuse_kinds("histc", input._data, "c")
    own = min == max and input._data.size
    low, high = (float(input._data.min()), float(input._data.max())) if own else (min, max)
    counts, _ = np.histogram(input._data, bins, (low, high))
    return from_array(counts.astype(input._data.dtype))
