"""Rows of tables at classes: embeddings, and one-hot vectors."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradcli.engine.graph import Node
from gradcli.engine.ops.operands import require_places
from gradcli.engine.recording import record
from gradcli.engine.tensor import Tensor, from_array


class EmbeddingBackward0(Node):
    """The cotangents of equal rows are added up; the padding row gets 0."""

    _saved_names = ("indices",)
    _constant_names = ("padding_idx",)
    padding_idx: int
    rows: int

    def _vjp(self, g: Tensor) -> Any:
        (indices,) = self._unpack()
        flat = indices.reshape(-1)
        given = g.reshape(flat._data.size, g._data.shape[-1])
        if self.padding_idx >= 0:
            given = given.masked_fill((flat == self.padding_idx).unsqueeze(-1), 0)
        return g.new_zeros(self.rows, g._data.shape[-1]).index_add(0, flat, given)


def embedding(input: Tensor, weight: Tensor, padding_idx: int | None = None) -> Tensor:
    """Return the rows of a table: an index [*] and a weight [rows, D] give [*, D]; row padding_idx gets no gradient.

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
    array = np.take(weight._data, input._data, axis=0)
    return record(EmbeddingBackward0, array, (weight,), (input,), padding_idx=padding, rows=rows)


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
