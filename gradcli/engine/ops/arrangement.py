"""Rotations, stacking by columns and depth, block matrices, splits, and combinations of elements."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from gradcli.engine.ops.copies import flip
from gradcli.engine.ops.joining import cat, diag_embed, hstack
from gradcli.engine.ops.operands import axis, require_axes, sizes
from gradcli.engine.ops.parts import narrow
from gradcli.engine.ops.shape import broadcast_to, transpose
from gradcli.engine.tensor import Tensor, from_array


def fliplr(input: Tensor) -> Tensor:
    """Return a copy with the second axis reversed."""
    require_axes("fliplr", input, 2)
    return flip(input, 1)


def flipud(input: Tensor) -> Tensor:
    """Return a copy with the first axis reversed."""
    require_axes("flipud", input)
    return flip(input, 0)


def rot90(input: Tensor, k: int = 1, dims: Sequence[int] = (0, 1)) -> Tensor:
    """Return a copy rotated k times by 90 degrees in the plane of two axes, from the first towards the second."""
    require_axes("rot90", input, 2)
    first, second = (axis(dim, input._data.ndim) for dim in dims)
    turns = k % 4
    if turns == 0:
        return input.clone()
    if turns == 2:
        return flip(input, first, second)
    turned = flip(input, second) if turns == 1 else flip(input, first)
    return transpose(turned, first, second)


def _at_least(input: Tensor, shapes: Sequence[tuple[int, ...]]) -> Tensor:
    return input.reshape(shapes[input._data.ndim]) if input._data.ndim < len(shapes) else input


def _each(function: Any, tensors: tuple[Any, ...]) -> Any:
    if len(tensors) == 1 and isinstance(tensors[0], Tensor):
        return function(tensors[0])
    return tuple(function(entry) for entry in (tensors[0] if len(tensors) == 1 else tensors))


def atleast_1d(*tensors: Any) -> Any:
    """Return each tensor with at least one axis; a tuple unless a single tensor was given."""
    return _each(lambda x: _at_least(x, [(1,)]), tensors)


def atleast_2d(*tensors: Any) -> Any:
    """Return each tensor with at least two axes; a vector becomes a row [1, n]."""
    return _each(lambda x: _at_least(x, [(1, 1), (1, -1)]), tensors)


def atleast_3d(*tensors: Any) -> Any:
    """Return each tensor with at least three axes; a vector becomes [1, n, 1], a matrix [m, n, 1]."""
    return _each(lambda x: _at_least(x, [(1, 1, 1), (1, -1, 1), (*x._data.shape, 1)]), tensors)


def column_stack(tensors: Sequence[Tensor]) -> Tensor:
    """Return tensors joined along their second axis; a vector is one column."""
    return hstack([piece.reshape(-1, 1) if piece._data.ndim < 2 else piece for piece in tensors])


def dstack(tensors: Sequence[Tensor]) -> Tensor:
    """Return tensors joined along their third axis, with at least three axes; see `atleast_3d`."""
    return cat(list(_each(lambda x: _at_least(x, [(1, 1, 1), (1, -1, 1), (*x._data.shape, 1)]), (tensors,))), 2)


def broadcast_tensors(*tensors: Tensor) -> tuple[Tensor, ...]:
    """Return the tensors expanded to a common shape."""
    shape = np.broadcast_shapes(*(entry._data.shape for entry in tensors))
    return tuple(broadcast_to(entry, shape) for entry in tensors)


def block_diag(*tensors: Tensor) -> Tensor:
    """Return the block diagonal matrix of the given matrices; vectors are rows."""
    blocks = [_at_least(entry, [(1, 1), (1, -1)]) for entry in tensors]
    width = sum(block._data.shape[1] for block in blocks)
    rows, before = [], 0
    for block in blocks:
        height, own = block._data.shape
        left, right = block.new_zeros((height, before)), block.new_zeros((height, width - before - own))
        rows.append(cat([left, block, right], 1))
        before += own
    return cat(rows, 0)


def diagflat(input: Tensor, offset: int = 0) -> Tensor:
    """Return the matrix with all elements, flattened, on a diagonal; zeros elsewhere."""
    return diag_embed(input.reshape(-1), offset)


def tensor_split(input: Tensor, indices_or_sections: Any, dim: int = 0) -> tuple[Tensor, ...]:
    """Return views of parts of an axis.

    Args:
        input: the tensor.
        indices_or_sections: the number of parts, the first of which may be one longer, or the indices to cut before.
        dim: the axis.
    """
    spot = axis(dim, input._data.ndim)
    size = input._data.shape[spot]
    if isinstance(indices_or_sections, int):
        least, more = divmod(size, indices_or_sections)
        lengths = [least + (place < more) for place in range(indices_or_sections)]
        cuts = [0, *np.cumsum(lengths).tolist()]
    else:
        given = [operator.index(entry) for entry in indices_or_sections]
        cuts = [0, *(min(entry if entry >= 0 else entry + size, size) for entry in given), size]
    return tuple(narrow(input, spot, start, max(end - start, 0)) for start, end in itertools.pairwise(cuts))


def hsplit(input: Tensor, indices_or_sections: Any) -> tuple[Tensor, ...]:
    """Return parts of the second axis, or of the only one; see `tensor_split`."""
    return tensor_split(input, indices_or_sections, 1 if input._data.ndim > 1 else 0)


def vsplit(input: Tensor, indices_or_sections: Any) -> tuple[Tensor, ...]:
    """Return parts of the first axis; see `tensor_split`."""
    return tensor_split(input, indices_or_sections, 0)


def dsplit(input: Tensor, indices_or_sections: Any) -> tuple[Tensor, ...]:
    """Return parts of the third axis; see `tensor_split`."""
    return tensor_split(input, indices_or_sections, 2)


def sum_to_size(input: Tensor, *size: Any) -> Tensor:
    """Return the tensor summed to a shape that broadcasts to its own.

    Raises:
        RuntimeError: the shape does not broadcast to that of the tensor.
    """
    shape = sizes(size)
    have = input._data.shape
    lead = len(have) - len(shape)
    if lead < 0 or any(want not in (1, size) for want, size in zip(shape, have[lead:], strict=True)):
        raise RuntimeError(f"size {{{list(shape)}}} is not expandable to size {{{list(have)}}}.")
    dims = [*range(lead), *(lead + i for i, want in enumerate(shape) if want == 1 and have[lead + i] != 1)]
    return input.sum(dims, keepdim=True).reshape(shape) if dims else input


def combinations(input: Tensor, r: int = 2, with_replacement: bool = False) -> Tensor:
    """Return the combinations of r elements of a vector, in the order of itertools, as rows [count, r]."""
    choose = itertools.combinations_with_replacement if with_replacement else itertools.combinations
    places = np.array(list(choose(range(len(input)), r)), dtype=np.int64).reshape(-1, r)
    return input[from_array(places)]


def tril_indices(row: int, col: int, offset: int = 0) -> Tensor:
    """Return the indices [2, count] (rows, columns) of the entries on and below a diagonal."""
    return from_array(np.stack(np.tril_indices(row, offset, col)).astype(np.int64))


def triu_indices(row: int, col: int, offset: int = 0) -> Tensor:
    """Return the indices [2, count] (rows, columns) of the entries on and above a diagonal."""
    return from_array(np.stack(np.triu_indices(row, offset, col)).astype(np.int64))


def cartesian_prod(*tensors: Tensor) -> Tensor:
    """Return the Cartesian product of vectors as rows; a single vector is returned as a vector."""
    grids = np.meshgrid(*(np.arange(entry._data.shape[0]) for entry in tensors), indexing="ij")
    columns = [entry.index_select(0, from_array(grid.reshape(-1))) for entry, grid in zip(tensors, grids, strict=True)]
    return columns[0] if len(columns) == 1 else column_stack(columns)
