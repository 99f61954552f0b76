"""The few things in which frameworks with PyTorch's API differ, behind one abstract class."""

import inspect
import random
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import cached_property
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gradcli.backends.generators import PythonGenerator, SharedGenerator
from gradcli.backends.tensor.call_records import Exchange
from gradcli.cases import Sparsity
from gradcli.errors import UsageError
from gradcli.targets import Called

_SHARED, _PYTHONS = SharedGenerator(), PythonGenerator()


class Framework(ABC):
    """A framework with PyTorch's API: its namespace, and the conversions to and from NumPy.

    Everything else (no_grad, clone, detach, requires_grad_) is called on the namespace itself.
    """

    name: str
    is_plain: bool = True
    """Whether the user's code is given tensors as they are made here: on the host."""
    has_autocast: bool = False
    """Whether the framework may run operations in a lower precision than that of their operands."""
    mode_count: Callable[[], int] | None = None
    """How many modes that rewrite the framework's operations are entered; None for a framework without such modes."""
    converts_outputs: bool = False
    """Whether outputs of the user's code may be on a device, or sparse, so that `to_host` has something to do."""
    module_home: str | None = None
    """The Python module in which the framework's own Module class is found, None where it has none."""
    exchange: Exchange | None = None
    """Makes the module that was called last hold the tensors of that call again; None where none was called."""

    @property
    @abstractmethod
    def namespace(self) -> ModuleType:
        """The framework's top module."""

    @cached_property
    def grad(self) -> Callable[..., Any]:
        """autograd.grad, for sequences of tensors."""
        found: Callable[..., Any] = self.namespace.autograd.grad
        return found

    @abstractmethod
    def is_tensor(self, value: object) -> bool:
        """Whether `value` is a tensor of this framework."""

    @abstractmethod
    def to_array(self, tensor: Any) -> NDArray[Any]:
        """A copy of a tensor's values, detached; precisions NumPy lacks become float32."""

    def as_array(self, tensor: Any) -> NDArray[Any]:
        """The values, in the tensor's own memory if possible: to be read at once, and not kept."""
        return self.to_array(tensor)

    def as_arrays(self, tensors: Sequence[Any]) -> list[NDArray[Any]]:
        """`as_array` of each."""
        return [self.as_array(tensor) for tensor in tensors]

    def to_arrays(self, tensors: Sequence[Any]) -> tuple[NDArray[Any] | None, ...]:
        """`to_array` of each, None for None."""
        return tuple([None if tensor is None else self.to_array(tensor) for tensor in tensors])

    def holds(self, tensor: Any, array: NDArray[Any]) -> bool:
        """Whether a tensor has the values of an array that `to_array` made, bit for bit."""
        return same_values(array, self.to_array(tensor))

    def memory_of(self, tensor: Any) -> Hashable:
        """A key that is the same for tensors that show the same memory in the same way, while they are alive."""
        return id(tensor)

    def strided(self, tensor: Any) -> Any:
        """The same values, outside the graph, in every other column of a buffer with a constant between them."""
        plain = tensor.detach()
        buffer = plain.new_full((*plain.shape, 2), 0.625)
        buffer[..., 0].copy_(plain)
        return buffer[..., 0]

    def as_tensor(self, array: NDArray[Any]) -> Any:
        """A leaf with these values, in the array's own memory where that can be: to clone, not to hand to a user."""
        return self.from_array(array)

    def leaves(self, arrays: Sequence[NDArray[Any]], *, shared: int | None = None, tracked: bool = True) -> list[Any]:
        """Leaves with these values, requiring a gradient if `tracked`.

        In the arrays' own memory where that can be; but copies after the first `shared`, where that is given.
        """
        found = [self.as_tensor(np.asarray(array)) for array in arrays[:shared]]
        if shared is not None:
            found += [self.from_array(array) for array in arrays[shared:]]
        return [tensor.requires_grad_() for tensor in found] if tracked else found

    def tensors(self, arrays: Sequence[NDArray[Any]]) -> list[Any]:
        """`from_array` of each."""
        return [self.from_array(array) for array in arrays]

    @abstractmethod
    def dtype_name(self, tensor: Any) -> str:
        """The tensor's dtype, such as "float64"."""

    @abstractmethod
    def from_array(self, array: NDArray[Any], dtype: str | None = None) -> Any:
        """A new leaf with these values, not requiring a gradient; `dtype` names a framework dtype."""

    def saving_copies(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function, saving tensors so that each backward pass gets copies."""
        hooks = self.namespace.autograd.graph.saved_tensors_hooks

        def saving(*arguments: Any, **keywords: Any) -> Any:
            with hooks(lambda saved: saved.detach(), lambda kept: kept.clone()):
                return function(*arguments, **keywords)

        return saving

    def kernels_run(self) -> int:
        """How many interpreted kernels have run so far: they are slow, and the graph does not see what they write."""
        return 0

    def autocast_off(self) -> AbstractContextManager[None] | None:
        """A context in which operations keep the precision of their operands; None where they do already."""
        return None

    def exit_modes(self, entered: int) -> tuple[str, ...]:  # noqa: ARG002 - for those that have modes
        """Exit all modes but the first `entered`; the names of those exited, the innermost first."""
        return ()

    def stepwise(self) -> AbstractContextManager[None]:
        """A context in which loops of the framework itself run as Python, step by step."""
        return nullcontext()

    def to_user_tensor(self, tensor: Any, dtype: str | None, sparsity: Sparsity | None) -> Any:
        """The tensor that the user's code gets for `tensor`: cast, sparse or on the device; the graph connects the two.

        Raises:
            UsageError: the framework has no such tensors.
        """
        if sparsity is not None:
            raise UsageError(f"layout {sparsity.layout}: the {self.name} backend has no sparse tensors")
        return tensor if dtype is None else tensor.to(getattr(self.namespace, dtype))

    def in_memory_of(self, tensor: Any, laid: Any) -> Any:
        """`tensor` in the memory of `laid`, which has the same values, without the views in the graph.

        A framework loses the other inputs of a Function that writes into a view, and PyTorch does not differentiate
        views for a sparse gradient.
        """
        tensor.data = laid.detach()
        return tensor

    def to_host(self, outputs: tuple[Any, ...]) -> tuple[Any, ...]:
        """Outputs of the user's code, each tensor as an ordinary one in the host's memory, connected by the graph."""
        return outputs

    def like(self, output: Any, array: NDArray[Any]) -> Any:
        """A new leaf with these values in the dtype of an output."""
        return self.from_array(array, self.dtype_name(output))

    def cotangent_of(self, output: Any, array: NDArray[Any]) -> Any | None:
        """A cotangent as the user's backward gets it for an output as it was returned; None where it cannot be made."""
        return self.like(output, array)

    def mapped(self, function: Callable[..., Any], places: tuple[int | None, ...]) -> Callable[..., Any]:  # noqa: ARG002
        """The function mapped over the axes `places` of its arguments.

        Raises:
            UsageError: the framework has no such transformation.
        """
        raise UsageError(f"the {self.name} backend has no vmap")

    @abstractmethod
    def seed_generators(self, seed: int) -> None:
        """Reset the framework's own random generators."""

    @abstractmethod
    def generator_states(self) -> object:
        """A snapshot of the framework's own generators."""

    def are_generators_at(self, states: object) -> bool:
        """Whether the framework's own generators are as in a snapshot."""
        return self.generator_states() == states

    @abstractmethod
    def restore_generators(self, states: object) -> None:
        """Put the framework's own generators back as they were."""

    def synchronize(self) -> None:  # noqa: B027 - nothing to wait for without a device
        """Wait for the kernels of the device, so that what they raise is raised here."""

    def has_lost_device(self) -> bool:
        """Whether the device refuses all further work in this process, as CUDA does after a kernel has failed."""
        return False

    def called(self, owner: type) -> Called:
        """A Function class of the graph, with what the user wrote of it."""
        forward, setup, backward = (_function_in(owner, name) for name in ("forward", "setup_context", "backward"))
        return Called(name=owner.__name__, forward=forward, setup_context=setup, backward=backward)

    def call_module(
        self, module: Any, tensors: dict[str, Any], arguments: tuple[Any, ...], keywords: dict[str, Any]
    ) -> Any:
        """Run a module with these tensors in place of the parameters and buffers of those names, for this call only."""
        raise NotImplementedError(f"{self.name} has no modules; got {type(module).__name__}")

    def seed(self, seed: int) -> None:
        """Reset every generator that forward may use: Python's, NumPy's legacy one and the framework's."""
        random.seed(seed)
        np.random.seed(seed)
        self.seed_generators(seed)

    def random_state(self) -> tuple[Any, Any, object]:
        """A snapshot of every generator, for `restore_random_state`."""
        return _PYTHONS.state(), _SHARED.state(), self.generator_states()

    def is_in_state(self, state: tuple[Any, Any, object]) -> bool:
        """Whether no random number was drawn, and no generator was set, since the snapshot."""
        return self.are_generators_at(state[2]) and _SHARED.is_at(state[1]) and _PYTHONS.is_at(state[0])

    def restore_random_state(self, state: tuple[Any, Any, object]) -> None:
        """Put every generator back as it was."""
        random.setstate(state[0])
        np.random.set_state(state[1])
        self.restore_generators(state[2])

    def is_differentiable(self, tensor: Any) -> bool:
        """Whether the tensor's dtype can carry a gradient."""
        return bool(tensor.is_floating_point() or tensor.is_complex())


def _function_in(owner: type, name: str) -> Callable[..., Any] | None:
    """The function that a class has under a name, unwrapped from staticmethod or classmethod; None without source."""
    found = inspect.getattr_static(owner, name, None)
    function = found.__func__ if isinstance(found, staticmethod | classmethod) else found
    return function if inspect.isfunction(function) else None


def double_precision(dtype: str) -> str:
    """The 64-bit partner of a floating dtype ("float32" gives "float64"), any other unchanged."""
    if dtype in ("float16", "bfloat16", "float32"):
        return "float64"
    return "complex128" if dtype in ("complex32", "complex64") else dtype


def unit_roundoff(dtype: str) -> float:
    """Half the distance from 1 to the next number of a floating dtype; that of float64 for any other."""
    digits = {"bfloat16": 8, "float16": 11, "complex32": 11, "float32": 24, "complex64": 24}
    return 2.0 ** -digits.get(dtype, 53)


def same_values(first: NDArray[Any], second: NDArray[Any]) -> bool:
    """Whether two arrays are bit for bit the same values (NaN equals NaN)."""
    if first.shape != second.shape or first.dtype != second.dtype:
        return False
    # Comparing NaN takes three passes more, and there is hardly ever any.
    return np.array_equal(first, second) or (
        first.dtype.kind in "fc" and bool(np.array_equal(first, second, equal_nan=True))
    )


def all_same(one: Sequence[NDArray[Any] | None], other: Sequence[NDArray[Any] | None]) -> bool:
    """Whether two lists hold the same values bit for bit, and None in the same places."""
    return len(one) == len(other) and all(
        a is b or (a is not None and b is not None and same_values(a, b)) for a, b in zip(one, other, strict=True)
    )


def same_kind(dtype: str, *, is_complex: bool) -> str:
    """The real or complex dtype of the precision of `dtype`: float32 for complex64, and the reverse."""
    partners = {"complex64": "float32", "complex128": "float64"}
    if not is_complex:
        return partners.get(dtype, dtype)
    return "complex128" if dtype in ("float64", "complex128") else "complex64"
