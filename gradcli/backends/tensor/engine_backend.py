"""The embedded engine as a backend."""

import sys
from collections.abc import Sequence
from functools import cached_property
from types import ModuleType
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from gradcli.backends.tensor.framework import Framework
from gradcli.backends.tensor.function_backend import FunctionBackend
from gradcli.backends.tensor.modules import exchanged, is_module


@final
class EngineFramework(Framework):
    """gradcli.engine's conversions."""

    name = "engine"
    module_home = "gradcli.engine.nn"

    @cached_property
    def namespace(self) -> ModuleType:
        """gradcli.engine."""
        import gradcli.engine

        return gradcli.engine

    def is_tensor(self, value: object) -> bool:
        """Whether `value` is an engine Tensor."""
        import gradcli.engine

        return isinstance(value, gradcli.engine.Tensor)

    def to_array(self, tensor: Any) -> NDArray[Any]:
        """A copy of the tensor's values."""
        return np.array(tensor.detach().numpy())

    def as_array(self, tensor: Any) -> NDArray[Any]:
        """The tensor's own memory."""
        values: NDArray[Any] = tensor.detach().numpy()
        return values

    def as_tensor(self, array: NDArray[Any]) -> Any:
        """A leaf in the array's memory."""
        return self.namespace.from_numpy(np.asarray(array, order="C"))

    def as_arrays(self, tensors: Sequence[Any]) -> list[NDArray[Any]]:
        """The same of each."""
        return [tensor.detach().numpy() for tensor in tensors]

    def to_arrays(self, tensors: Sequence[Any]) -> tuple[NDArray[Any] | None, ...]:
        """A copy of each, None for None."""
        return tuple([None if tensor is None else np.array(tensor.detach().numpy()) for tensor in tensors])

    def leaves(self, arrays: Sequence[NDArray[Any]], *, shared: int | None = None, tracked: bool = True) -> list[Any]:
        """Leaves in the arrays' memory, or with copies of the values."""
        from_numpy, tensor = self.namespace.from_numpy, self.namespace.tensor
        found = [from_numpy(np.asarray(array, order="C")) for array in arrays[:shared]]
        if shared is not None:
            found += [tensor(np.array(array)) for array in arrays[shared:]]
        return [tensor.requires_grad_() for tensor in found] if tracked else found

    def tensors(self, arrays: Sequence[NDArray[Any]]) -> list[Any]:
        """Leaves with copies of the values."""
        tensor = self.namespace.tensor
        return [tensor(np.array(array)) for array in arrays]

    def like(self, output: Any, array: NDArray[Any]) -> Any:
        """A copy of the values in the dtype of the output."""
        return self.namespace.tensor(np.array(array), dtype=output.dtype)

    def dtype_name(self, tensor: Any) -> str:
        """The dtype without its namespace."""
        return str(tensor.dtype).rsplit(".", 1)[-1]

    def from_array(self, array: NDArray[Any], dtype: str | None = None) -> Any:
        """A leaf with a copy of the values."""
        kind = None if dtype is None else getattr(self.namespace, dtype)
        return self.namespace.tensor(np.array(array), dtype=kind)

    def seed_generators(self, seed: int) -> None:
        """Reset the engine's generator."""
        self.namespace.manual_seed(seed)

    def generator_states(self) -> object:
        """The engine's generator state."""
        return self.namespace.get_rng_state()

    def restore_generators(self, states: object) -> None:
        """Put the engine's generator back."""
        self.namespace.set_rng_state(states)

    def call_module(
        self, module: Any, tensors: dict[str, Any], arguments: tuple[Any, ...], keywords: dict[str, Any]
    ) -> Any:
        """Exchange the entries of the modules that own them, tied ones together, and put them back."""
        with exchanged(module, tensors):
            return module(*arguments, **keywords)


@final
class EngineBackend(FunctionBackend):
    """Functions on gradcli.engine."""

    name = "engine"
    lacks = ("bfloat16",)

    def __init__(self) -> None:
        self._framework = EngineFramework()

    @property
    def framework(self) -> Framework:
        """The engine."""
        return self._framework

    def function_base(self) -> type:
        """gradcli.engine.autograd.Function."""
        from gradcli.engine.autograd import Function

        return Function

    def claims(self, target: object) -> bool:
        """Whether the target is a Function or module of the engine."""
        if "gradcli.engine" not in sys.modules:
            return False
        return self.function_class(target) is not None or is_module(self._framework, target)
