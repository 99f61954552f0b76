"""`Variable`, the wrapper in older programs: another name for a tensor on the same memory."""

from __future__ import annotations

from typing import Any

from gradcli.engine.tensor import Tensor


class _VariableMeta(type):
    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, Tensor)


class Variable(metaclass=_VariableMeta):
    """`Variable(tensor)` is a new tensor on the same memory; every tensor is an instance."""

    def __new__(cls, data: Tensor, requires_grad: bool = False, volatile: bool = False) -> Any:  # noqa: ARG004  (gone)
        """Return a tensor on the memory of `data`, with its own flag."""
        result = data.detach()
        return result.requires_grad_() if requires_grad else result
