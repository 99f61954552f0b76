"""`Parameter` and `Buffer`: tensors that a module registers when they are assigned to its attributes."""

from __future__ import annotations

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
        self.requires_grad_(requires_grad)

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
