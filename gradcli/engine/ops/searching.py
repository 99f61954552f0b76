"""Finding values and their places; none of these has a gradient."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradcli.engine.tensor import Tensor, from_array


def unique(
    input: Tensor,
    sorted: bool = True,
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: int | None = None,
) -> Any:
    """Return the distinct elements (or slices along an axis), and where asked which each was and how many there were.

    Args:
        input: the elements.
        sorted: has no effect: they are always in order.
        return_inverse: return, for every element, the place of its like.
        return_counts: return how often each occurred.
        dim: the axis whose slices are compared.
    """
    del sorted
    values, inverse, counts = np.unique(input._data, return_inverse=True, return_counts=True, axis=dim)
    inverse = inverse.reshape(input._data.shape if dim is None else -1)
    result = [from_array(values)]
    result += [from_array(inverse.astype(np.int64))] if return_inverse else []
    result += [from_array(counts.astype(np.int64))] if return_counts else []
    return result[0] if len(result) == 1 else tuple(result)


def searchsorted(sorted_sequence: Tensor, input: Any, *, right: bool = False, side: str | None = None) -> Tensor:
    """Return where values belong in an ascending vector.

    Args:
        sorted_sequence: the vector.
        input: the values, a tensor or a number.
        right: after elements that are equal, rather than before.
        side: "left" or "right", instead of `right`.

    Raises:
        ValueError: the sequence has several axes.
    """
    if sorted_sequence._data.ndim != 1:
        raise ValueError(f"searchsorted supports a vector only, got sorted_sequence of shape {sorted_sequence.shape}")
    values = input._data if isinstance(input, Tensor) else np.asarray(input)
    after = side == "right" or (side is None and right)
    found = np.searchsorted(sorted_sequence._data, values, side="right" if after else "left")
    return from_array(np.asarray(found).astype(np.int64))


def bucketize(input: Any, boundaries: Tensor, *, right: bool = False) -> Tensor:
    """Return the number of the bucket between ascending boundaries that each value falls in."""
    return searchsorted(boundaries, input, right=right)


def bincount(input: Tensor, weights: Tensor | None = None, minlength: int = 0) -> Tensor:
    """Return how often each whole number occurs, or the sum of the weights there."""
    return from_array(np.bincount(input._data, None if weights is None else weights._data, minlength))
