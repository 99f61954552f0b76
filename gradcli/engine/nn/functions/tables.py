"""Rows of tables at classes: embeddings, and one-hot vectors."""

from __future__ import annotations

import numpy as np

from gradcli.engine.tensor import Tensor, from_array


def embedding(input: Tensor, weight: Tensor, padding_idx: int | None = None) -> Tensor:
    """Return the rows of a table: an index [*] and a weight [rows, D] give [*, D]; row padding_idx gets no gradient.

    Raises:
        RuntimeError: the index does not hold integers.
        IndexError: there is no such row; negative numbers are none.
    """
    if input._data.dtype.kind not in "iu":
        raise RuntimeError(
            "Expected tensor for argument #1 'indices' to have one of the following scalar types: Long, Int; but got "
            f"{input.type()} instead"
        )
    rows = weight.index_select(0, input.reshape(-1)).reshape(*input._data.shape, weight._data.shape[1])
    if padding_idx is None:
        return rows
    mask = (input == padding_idx % weight._data.shape[0]).unsqueeze(-1)
    return rows.masked_fill(mask, 0) + rows.detach().masked_fill(~mask, 0)


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
