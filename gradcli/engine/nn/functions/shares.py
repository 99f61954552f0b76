"""The softmax family, whose axis old programs leave out."""

from __future__ import annotations

import warnings
from typing import Any

from gradcli.engine.ops import activation
from gradcli.engine.ops.operands import numpy_names
from gradcli.engine.tensor import Tensor


def _chosen(name: str, dim: int | None, input: Tensor, stacklevel: int) -> int:
    """Return an axis as given, or the one that PyTorch takes without one, with its warning."""
    if dim is not None:
        return dim
    warnings.warn(
        f"Implicit dimension choice for {name} has been deprecated. Change the call to include dim=X as an argument.",
        UserWarning,
        stacklevel=stacklevel + 2,
    )
    return 0 if input._data.ndim in (0, 1, 3) else 1


@numpy_names
def softmax(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None) -> Tensor:
    """Return exp(x) / sum(exp(x)) along an axis, without overflow; cast to `dtype` first if given."""
    return activation.softmax(input, _chosen("softmax", dim, input, _stacklevel), dtype=dtype)


@numpy_names
def log_softmax(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None) -> Tensor:
    """Return log(softmax(x)) along an axis, without overflow; cast to `dtype` first if given."""
    return activation.log_softmax(input, _chosen("log_softmax", dim, input, _stacklevel), dtype=dtype)


def softmin(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None) -> Tensor:
    """Return softmax(-x) along an axis."""
    return activation.softmax(-input, _chosen("softmin", dim, input, _stacklevel), dtype=dtype)
