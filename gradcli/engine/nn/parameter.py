"""`Parameter` and `Buffer`: tensors that a module registers when they are assigned to its attributes."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradcli.engine.dtypes import get_default_dtype
from gradcli.engine.interface.printing import text
from gradcli.engine.tensor import Tensor


class Parameter(Tensor):
    """A leaf tensor that a module registers among its parameters when it is assigned to an attribute.

    Args:
        data: the values; the memory is shared. An empty tensor unless given.
        requires_grad: whether backward computes its gradient.
    """

    def __init__(self, data: Tensor | None = None, requires_grad: bool = True) -> None:
        self._data = np.empty((0,), dtype=get_default_dtype().numpy) if data is None else data._data
        if requires_grad and self._data.dtype.kind not in "fc":
            raise RuntimeError("Only Tensors of floating point and complex dtype can require gradients")
        self.requires_grad_(requires_grad)

    def __deepcopy__(self, memo: dict[int, Any]) -> Parameter:
        copied = type(self)(self.detach().clone(), self.requires_grad)  # without its gradient, as in PyTorch
        memo[id(self)] = copied
        return copied

    def __repr__(self) -> str:
        return "Parameter containing:\n" + text(self)


class Buffer(Tensor):
    """A tensor that a module registers among its buffers when it is assigned to an attribute.

    Args:
        data: the values; the memory is shared. An empty tensor unless given.
        persistent: whether it is part of `state_dict`.
    """

    def __init__(self, data: Tensor | None = None, *, persistent: bool = True) -> None:
        self._data = np.empty((0,), dtype=get_default_dtype().numpy) if data is None else data._data
        self.persistent = persistent
