"""PyTorch as a backend: the one file that names it."""

import sys
from collections.abc import Callable, Hashable, Sequence
from contextlib import AbstractContextManager
from functools import cached_property
from types import ModuleType
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from gradcli.backends.origin import Origin
from gradcli.backends.tensor.framework import Framework
from gradcli.backends.tensor.function_backend import FunctionBackend, static_method
from gradcli.backends.tensor.modules import is_module
from gradcli.backends.torch.backward_pass import pass_of
from gradcli.backends.torch.interpreter import kernel_memory
from gradcli.backends.torch.operators import describe_operator, operator_of, operator_origin, registered_rule
from gradcli.backends.torch.sparse import adopted_sparse, is_sparse, sparse_tensor
from gradcli.cases import Argument, Sparsity
from gradcli.errors import UsageError, UserCodeError
from gradcli.targets import Called, TargetInfo


@final
class TorchFramework(Framework):
    """PyTorch's conversions."""

    name = "torch"
    module_home = "torch.nn"
    has_autocast = converts_outputs = True

    @cached_property
    def namespace(self) -> ModuleType:
        """torch."""
        import torch

        return torch  # type: ignore[no-any-return]

    @cached_property
    def grad(self) -> Callable[..., Any]:
        """torch.autograd.grad, without what it imports."""
        return pass_of(self.namespace)

    def is_tensor(self, value: object) -> bool:
        """Whether `value` is a torch.Tensor."""
        return isinstance(value, self.namespace.Tensor)

    def to_array(self, tensor: Any) -> NDArray[Any]:
        """A copy on the CPU; bfloat16 and float8 become float32, complex32 becomes complex64, sparse becomes dense.

        PyTorch forbids for good that memory is resized once NumPy has seen it, so that NumPy sees a copy only.
        """
        return self._values_of(tensor.detach().clone())

    def as_array(self, tensor: Any) -> NDArray[Any]:
        """The memory of an ordinary CPU tensor; of any other what `to_array` says."""
        return self._values_of(tensor.detach())

    def holds(self, tensor: Any, array: NDArray[Any]) -> bool:
        """The same, without a view of the tensor's memory in NumPy."""
        plain = tensor.detach()
        if plain.layout is self.namespace.strided and self.is_plain and self.dtype_name(plain) == array.dtype.name:
            return bool(self.namespace.equal(plain, self.namespace.from_numpy(array))) or super().holds(tensor, array)
        return super().holds(tensor, array)

    def memory_of(self, tensor: Any) -> Hashable:
        """Of an ordinary tensor its address, shape and strides."""
        if tensor.layout is not self.namespace.strided or not tensor.numel():
            return id(tensor)
        return tensor.data_ptr(), tuple(tensor.shape), tensor.stride(), tensor.dtype, tensor.is_conj(), tensor.is_neg()

    def _values_of(self, plain: Any) -> NDArray[Any]:
        try:
            found: NDArray[Any] = plain.numpy()
        except (RuntimeError, TypeError):
            if plain.is_meta:
                said = "forward or backward returned a meta tensor, which has no values: expected numbers"
                raise UserCodeError(said, phase="forward") from None
            found = self._resolved(plain).cpu().numpy()
        return found

    def _resolved(self, plain: Any) -> Any:
        """What NumPy has no form for, in one that it has: lazy conjugates, negatives and zeros, sparse, bfloat16."""
        import torch

        plain = plain.resolve_conj().resolve_neg()
        if plain.layout != torch.strided:
            plain = plain.to_dense()
        if plain._is_zerotensor():
            plain = torch.zeros(plain.shape, dtype=plain.dtype)
        if plain.is_floating_point() and plain.dtype not in (torch.float16, torch.float32, torch.float64):
            plain = plain.float()
        if plain.dtype is torch.complex32:
            plain = plain.to(torch.complex64)
        return plain

    def kernels_run(self) -> int:
        """Launches of Triton's interpreter since the case began."""
        memory = kernel_memory()
        return 0 if memory is None else memory.launches

    def as_tensor(self, array: NDArray[Any]) -> Any:
        """A leaf in the array's memory, or in a copy where it is not contiguous, not writeable, or out of place.

        PyTorch crashes on complex numbers at an address that is no multiple of their size, which a view into a vector
        of reals may have.
        """
        if array.dtype.kind == "f" and array.flags.carray:
            return self.namespace.from_numpy(array)
        whole = np.asarray(array, order="C")
        placed = whole.dtype.kind != "c" or whole.ctypes.data % whole.itemsize == 0
        return self.namespace.from_numpy(whole if whole.flags.writeable and placed else whole.copy())

    def dtype_name(self, tensor: Any) -> str:
        """The dtype without `torch.`."""
        return str(tensor.dtype).removeprefix("torch.")

    def from_array(self, array: NDArray[Any], dtype: str | None = None) -> Any:
        """A leaf with a copy of the values, in memory that is aligned as PyTorch aligns it."""
        leaf = self.as_tensor(np.asarray(array)).clone()
        return leaf if dtype is None else leaf.to(getattr(self.namespace, dtype))

    def like(self, output: Any, array: NDArray[Any]) -> Any:
        """The same; nearly always it is of that dtype already."""
        leaf = self.as_tensor(array).clone()
        return leaf if leaf.dtype is output.dtype else leaf.to(output.dtype)

    def __init__(self, device: str = "cpu") -> None:
        self.device = device
        self._kind = device.partition(":")[0]
        self.is_plain = device == "cpu"

    def as_arrays(self, tensors: Sequence[Any]) -> list[NDArray[Any]]:
        """The same of each; nearly always all of them are ordinary."""
        try:
            return [tensor.detach().numpy() for tensor in tensors]
        except (RuntimeError, TypeError):
            return [self.as_array(tensor) for tensor in tensors]

    def leaves(self, arrays: Sequence[NDArray[Any]], *, shared: int | None = None, tracked: bool = True) -> list[Any]:
        """Leaves in the arrays' memory, as `as_tensor` makes them, or with copies of the values."""
        from_numpy = self.namespace.from_numpy
        plain = [np.asarray(array) for array in arrays]
        found = [from_numpy(a) if a.dtype.kind == "f" and a.flags.carray else self.as_tensor(a) for a in plain]
        if shared is not None:
            found[shared:] = [leaf.clone() for leaf in found[shared:]]
        return [tensor.requires_grad_() for tensor in found] if tracked else found

    def tensors(self, arrays: Sequence[NDArray[Any]]) -> list[Any]:
        """Leaves with copies of the values."""
        return [leaf.clone() for leaf in self.leaves(arrays, tracked=False)]

    def autocast_off(self) -> AbstractContextManager[None] | None:
        """autocast switched off, which would change the precision of what is compared."""
        if not self.namespace.is_autocast_enabled(self._kind):
            return None
        off: AbstractContextManager[None] = self.namespace.autocast(self._kind, enabled=False)
        return off

    @cached_property
    def mode_count(self) -> Callable[[], int]:  # type: ignore[override]  # a value, made when PyTorch is imported
        """How many modes for `__torch_dispatch__`, such as FakeTensorMode, are entered."""
        count: Callable[[], int] = self.namespace._C._len_torch_dispatch_stack
        return count

    def exit_modes(self, entered: int) -> tuple[str, ...]:
        """As `with` does at its end."""
        names = []
        while self.mode_count() > entered:
            names.append(type(self.namespace._C._pop_torch_dispatch_stack(None)).__name__)
        return tuple(names)

    def to_user_tensor(self, tensor: Any, dtype: str | None, sparsity: Sparsity | None) -> Any:
        """A cast, a sparse tensor around the entries, and a copy on the device: each has its own backward.

        MPS has no 64 bits: what has them is rounded to 32 there.
        """
        if dtype is None and self.device.startswith("mps"):
            dtype = {"float64": "float32", "complex128": "complex64"}.get(self.dtype_name(tensor))
        given = tensor if dtype is None else tensor.to(getattr(self.namespace, dtype))
        if sparsity is not None:
            given = sparse_tensor(given, sparsity)
        return given if self.is_plain else given.to(self.device)

    def to_host(self, outputs: tuple[Any, ...]) -> tuple[Any, ...]:
        """Dense, on the CPU."""
        strided, kind, plain = self.namespace.strided, self.namespace.Tensor, self.is_plain
        dense = [o.to_dense() if isinstance(o, kind) and o.layout is not strided else o for o in outputs]
        return tuple(dense if plain else [o.cpu() if isinstance(o, kind) else o for o in dense])

    def cotangent_of(self, output: Any, array: NDArray[Any]) -> Any | None:
        """None for a sparse output, whose cotangent has the layout that PyTorch chooses."""
        if output.layout is not self.namespace.strided:
            return None
        cotangent = self.like(output, array)
        return cotangent if self.is_plain else cotangent.to(output.device)

    def mapped(self, function: Callable[..., Any], places: tuple[int | None, ...]) -> Callable[..., Any]:
        """torch.func.vmap."""
        over: Callable[..., Any] = self.namespace.func.vmap(function, in_dims=places)
        return over

    def seed_generators(self, seed: int) -> None:
        """Reset torch's generators of the CPU and the device."""
        self.namespace.default_generator.manual_seed(seed)
        if not self.is_plain:
            self._accelerator.manual_seed(seed)

    def generator_states(self) -> object:
        """The states of torch's generators of the CPU and the device."""
        own = None if self.is_plain else self._accelerator.get_rng_state()
        return self.namespace.get_rng_state(), own

    def are_generators_at(self, states: object) -> bool:
        """Whether they are as in a snapshot, byte by byte."""
        kept: Any = states
        now: Any = self.generator_states()
        equal = self.namespace.equal
        return all(one is None or equal(one, other) for one, other in zip(now, kept, strict=True))

    def restore_generators(self, states: object) -> None:
        """Put torch's generators back."""
        kept: Any = states
        self.namespace.set_rng_state(kept[0])
        if not (self.is_plain or self.has_lost_device()):
            self._accelerator.set_rng_state(kept[1])

    def synchronize(self) -> None:
        """Of CUDA, where it is used. A copy to the CPU waits as well."""
        if self.namespace.cuda.is_initialized():
            self.namespace.cuda.synchronize()

    def has_lost_device(self) -> bool:
        """Whether CUDA raises at a synchronisation: its errors in kernels, but for a lack of memory, are for good."""
        try:
            self.synchronize()
        except RuntimeError:
            return True
        return False

    @property
    def _accelerator(self) -> Any:
        """The module of the device's kind, torch.cuda or torch.mps."""
        return getattr(self.namespace, self._kind)

    def called(self, owner: type) -> Called:
        """The same, behind the classes that PyTorch makes for operators too."""
        own = super().called(owner)
        rule = registered_rule(owner)
        return own if rule is None else Called(name=own.name, forward=None, setup_context=None, backward=rule)

    def call_module(
        self, module: Any, tensors: dict[str, Any], arguments: tuple[Any, ...], keywords: dict[str, Any]
    ) -> Any:
        """torch.func.functional_call, tied weights together."""
        return self.namespace.func.functional_call(module, tensors, arguments, keywords)


@final
class TorchBackend(FunctionBackend):
    """torch.autograd.Function and callables on torch tensors."""

    name = "torch"

    def __init__(self, device: str = "cpu") -> None:
        self._framework = TorchFramework(device)

    def on(self, device: str | None) -> "TorchBackend":
        """The backend on a device that PyTorch has here."""
        if device is None or device == self._framework.device:
            return self
        kind, _, index = device.partition(":")
        known = {"cpu": 1, **accelerators(self._framework.namespace)}
        if kind not in known or (index and not (index.isdigit() and int(index) < known[kind])):
            there = ", ".join(known)
            raise UsageError(f"device {device}: PyTorch has no such device on this machine; available: {there}")
        return TorchBackend(device)

    @property
    def framework(self) -> Framework:
        """PyTorch."""
        return self._framework

    def function_base(self) -> type:
        """torch.autograd.Function."""
        import torch

        return torch.autograd.Function  # type: ignore[no-any-return]

    def claims(self, target: object) -> bool:
        """Whether the target is a torch Function or module; false without importing torch where nothing has."""
        if "torch" not in sys.modules:
            return False
        if self.function_class(target) is not None or is_module(self._framework, target):
            return True
        return operator_of(target) is not None

    def adopted(self, name: str, value: object) -> Argument:
        """A sparse tensor by its entries; anything else as for every framework of this shape."""
        return adopted_sparse(name, value) if is_sparse(value) else super().adopted(name, value)

    def is_complete(self, target: object) -> bool:
        """Whether a Function has forward and backward, and an operator of torch.library.custom_op a backward."""
        operator = operator_of(target)
        if operator is None:
            return super().is_complete(target)
        return operator.definition is not None and operator.definition._backward_fn is not None

    def describe(self, target: object) -> TargetInfo:
        """As for Functions, modules and callables; for an operator what was registered for it."""
        operator = operator_of(target)
        return super().describe(target) if operator is None else describe_operator(operator, self.name)

    def vmap_rule(self, function_class: type) -> Callable[..., Any] | None:
        """The method vmap, or forward where PyTorch is asked to make the rule of it."""
        own = super().vmap_rule(function_class)
        generated = getattr(function_class, "generate_vmap_rule", False)
        return own or (static_method(function_class, "forward") if generated else None)

    def origin(self, target: object) -> Origin | None:
        """A Function's or an operator's."""
        operator = operator_of(target)
        return super().origin(target) if operator is None else operator_origin(operator)


def accelerators(torch: ModuleType) -> dict[str, int]:
    """The kinds of accelerators that PyTorch can use here, and how many there are of each."""
    found = {}
    if torch.cuda.is_available():
        found["cuda"] = int(torch.cuda.device_count())
    if torch.backends.mps.is_available():
        found["mps"] = 1
    return found
