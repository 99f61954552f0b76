"""Rows of tables at classes: embeddings, and one-hot vectors."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradcli.engine.dtypes import Array
from gradcli.engine.graph import Node
from gradcli.engine.in_place import bump
from gradcli.engine.ops.operands import require_places
from gradcli.engine.recording import record
from gradcli.engine.tensor import Tensor, from_array


class EmbeddingBackward0(Node):
    """The cotangents of equal rows are added up; the padding row gets 0."""

    _saved_names = ("indices",)
    _constant_names = ("padding_idx", "scale_grad_by_freq")
    padding_idx: int
    rows: int
    scale_grad_by_freq: bool = False

    def _vjp(self, g: Tensor) -> Any:
        (indices,) = self._unpack()
        flat = indices.reshape(-1)
        given = g.reshape(flat._data.size, g._data.shape[-1])
        if self.padding_idx >= 0:
            given = given.masked_fill((flat == self.padding_idx).unsqueeze(-1), 0)
        if self.scale_grad_by_freq:
            counts = np.bincount(flat._data, minlength=self.rows)[flat._data].astype(given._data.dtype)
            given = given / from_array(counts).unsqueeze(-1)
        return g.new_zeros(self.rows, g._data.shape[-1]).index_add(0, flat, given)


def embedding(
    input: Tensor,
    weight: Tensor,
    padding_idx: int | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,  # noqa: ARG001  (gradients are dense)
) -> Tensor:
    """Return the rows of a table: an index [*] and a weight [rows, D] give [*, D].

    Args:
        input: the index.
        weight: the table.
        padding_idx: a row that gets no gradient.
        max_norm: first scale the rows at the index whose norm is larger down to it, in place.
        norm_type: the order of this norm.
        scale_grad_by_freq: divide the gradient of a row by how often it was read.
        sparse: has no effect.

    Raises:
        RuntimeError: the index does not hold integers.
        IndexError: an index is negative, or not below the number of rows.
    """
    if input._data.dtype.kind not in "iu":
        raise RuntimeError(
            "Expected tensor for argument #1 'indices' to have one of the following scalar types: Long, Int; but got "
            f"{input.type()} instead"
        )
    rows = weight._data.shape[0]
    require_places(input.reshape(-1), rows)
    padding = -1 if padding_idx is None else padding_idx % rows
    if max_norm is not None:
        _scale_down(weight, np.unique(input._data), max_norm, norm_type)
    array = np.take(weight._data, input._data, axis=0)
    constants = {"padding_idx": padding, "rows": rows, "scale_grad_by_freq": scale_grad_by_freq}
    return record(EmbeddingBackward0, array, (weight,), (input,), **constants)


def _scale_down(weight: Tensor, rows: Array, limit: float, order: float) -> None:
    norms = np.linalg.norm(weight._data[rows], order, axis=1)
    long = norms > limit
    if long.any():
        weight._data[rows[long]] *= (limit / (norms[long] + 1e-7))[:, None].astype(weight._data.dtype)
        bump(weight)


def one_hot(tensor: Tensor, num_classes: int = -1) -> Tensor:
    """Return [..., classes] with 1 at each class and 0 elsewhere (int64), from classes [...].

    Raises:
        RuntimeError: the classes are not integers from 0 to num_classes - 1 (-1: any number of classes).
    """
    if tensor._data.dtype.kind not in "iu":
        raise RuntimeError("one_hot is only applicable to index tensor of type LongTensor.")
    count = int(tensor._data.max()) + 1 if num_classes == -1 else num_classes
    if tensor._data.size and tensor._data.min() < 0:
        raise RuntimeError("Class values must be non-negative.")
    if tensor._data.size and tensor._data.max() >= count:
        raise RuntimeError("Class values must be smaller than num_classes.")
    return from_array((tensor._data[..., None] == np.arange(count)).astype(np.int64))
