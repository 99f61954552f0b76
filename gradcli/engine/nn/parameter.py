"""Parameters: tensors that a module owns and that require a gradient."""

from __future__ import annotations

import numpy as np

from gradcli.engine.dtypes import get_default_dtype
from gradcli.engine.interface.printing import text
from gradcli.engine.tensor import Tensor


class Parameter(Tensor):
    """A leaf that a module registers when it is assigned to one of its attributes.

    Args:
        data: the values; their memory is shared.
        requires_grad: record what is computed from it.
    """

    def __init__(self, data: Tensor | None = None, requires_grad: bool = True) -> None:
        self._data = np.empty((0,), dtype=get_default_dtype().numpy) if data is None else data._data
        self.requires_grad_(requires_grad)

    def __repr__(self) -> str:
        return "Parameter containing:\n" + text(self)


class Buffer(Tensor):
    """A tensor that a module keeps among its buffers when it is assigned to one of its attributes.

    Args:
        data: the values; their memory is shared.
        persistent: whether it is part of the state that is saved.
    """

    def __init__(self, data: Tensor | None = None, *, persistent: bool = True) -> None:
        self._data = np.empty((0,), dtype=get_default_dtype().numpy) if data is None else data._data
        self.persistent = persistent
