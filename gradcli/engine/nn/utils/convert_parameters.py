"""Parameters as one vector, and back."""

from __future__ import annotations

from collections.abc import Iterable

from gradcli.engine.ops.joining import cat
from gradcli.engine.tensor import Tensor


def parameters_to_vector(parameters: Iterable[Tensor]) -> Tensor:
    """Return a vector of the elements of all tensors, flattened and concatenated."""
    return cat([parameter.reshape(-1) for parameter in parameters])


def vector_to_parameters(vec: Tensor, parameters: Iterable[Tensor]) -> None:
    """Set the data of tensors to views of consecutive parts of a vector; the inverse of `parameters_to_vector`.

    Raises:
        TypeError: the vector is not a tensor.
    """
    if not isinstance(vec, Tensor):
        raise TypeError(f"expected torch.Tensor, but got: {type(vec)}")
    start = 0
    for parameter in parameters:
        stop = start + parameter.numel()
        parameter.data = vec[start:stop].view_as(parameter).data
        start = stop
