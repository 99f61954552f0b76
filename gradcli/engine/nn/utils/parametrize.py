"""Parametrizations: a parameter that is computed from another tensor each time it is read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from gradcli.engine.grad_mode import no_grad
from gradcli.engine.nn.base.module import Module
from gradcli.engine.nn.layers.containers import ModuleDict, ModuleList
from gradcli.engine.nn.parameter import Parameter
from gradcli.engine.tensor import Tensor

_CACHE: dict[int, Tensor] = {}
_CACHING = [0]


@contextmanager
def cached() -> Iterator[None]:
    """Compute each parametrized tensor at most once within the context."""
    _CACHING[0] += 1
    try:
        yield
    finally:
        _CACHING[0] -= 1
        if not _CACHING[0]:
            _CACHE.clear()


class ParametrizationList(ModuleList):
    """The parametrizations of one tensor, in the order in which they are applied to `original`.

    Args:
        original: the unparametrized tensor: a parameter, or a buffer.
        parts: tensors that the first parametrization makes it of, if there are several: `original0`, `original1`...
    """

    def __init__(self, original: Tensor, parts: Sequence[Tensor] | None = None) -> None:
        super().__init__()
        self.is_tensor = parts is None
        self.ntensors = 1 if parts is None else len(parts)
        for name, tensor in zip(self._names(), (original,) if parts is None else parts, strict=True):
            if isinstance(original, Parameter):
                own = tensor if isinstance(tensor, Parameter) else Parameter(tensor, original.requires_grad)
                setattr(self, name, own)
            else:
                self.register_buffer(name, tensor)

    def _names(self) -> list[str]:
        return ["original"] if self.is_tensor else [f"original{number}" for number in range(self.ntensors)]

    def _originals(self) -> list[Tensor]:
        return [getattr(self, name) for name in self._names()]

    def forward(self) -> Any:
        """Return the original with all parametrizations applied."""
        result: Any = self._originals()
        for module in self:
            result = module(*result) if isinstance(result, list) else module(result)
        return result

    def right_inverse(self, value: Tensor) -> None:
        """Set the original to the value with the `right_inverse` of each parametrization applied, the last one first.

        Raises:
            RuntimeError: a module has no `right_inverse`.
        """
        with no_grad():
            result: Any = value
            for module in reversed(list(self)):
                if "right_inverse" not in dir(module):
                    raise RuntimeError(
                        f"parametrization {type(module).__name__} does not implement right_inverse: the tensor cannot "
                        "be assigned to"
                    )
                result = module.right_inverse(result)
            for own, part in zip(self._originals(), [result] if self.is_tensor else result, strict=True):
                own.copy_(part)


def register_parametrization(module: Module, tensor_name: str, parametrization: Module, *, unsafe: bool = False) -> Any:
    """Replace a parameter or buffer by `parametrization(original)`, computed each time it is read.

    The tensor itself becomes `module.parametrizations.<tensor_name>.original`. Further parametrizations of the same
    tensor are applied to the result of those before. As in PyTorch, registration applies the `right_inverse` of the
    first one only, if it has one, to the tensor, so its value stays.

    Args:
        module: the module.
        tensor_name: the name of the parameter or buffer.
        parametrization: a module from tensor to tensor. Its method `right_inverse`, if any, also lets the tensor be
            assigned to.
        unsafe: allow another shape or element type.

    Raises:
        ValueError: there is no such tensor, or its shape or element type would change.
    """
    if is_parametrized(module, tensor_name):
        before = _chains(module)[tensor_name]()
    else:
        original = _own(module, tensor_name)
        if original is None:
            raise ValueError(
                f"Module '{module}' does not have a parameter, a buffer, or a parametrized element with name "
                f"'{tensor_name}'"
            )
        before = original.detach()
        _start(module, tensor_name, original, parametrization)
    chain = _chains(module)[tensor_name]
    chain.append(parametrization)
    after = chain()
    if not unsafe and (after.shape != before.shape or after.dtype != before.dtype):
        chain.pop(len(chain) - 1)
        raise ValueError(
            f"Registering a parametrization may not change the shape or the dtype of the tensor: {before.shape} of "
            f"{before.dtype} would become {after.shape} of {after.dtype}. Pass unsafe=True if that is meant"
        )
    return module


def _own(module: Module, name: str) -> Tensor | None:
    found: Tensor | None = module._parameters.get(name)
    return module._buffers.get(name) if found is None else found


def _chains(module: Module) -> Any:
    return module._modules["parametrizations"]


def _start(module: Module, name: str, original: Tensor, parametrization: Module) -> None:
    """Move the tensor into a ParametrizationList, behind a property of a class that is made for this module."""
    if "parametrizations" not in module._modules:
        kind = type(module)
        module.__class__ = type(f"Parametrized{kind.__name__}", (kind,), {"_plain_class": kind})
        module.add_module("parametrizations", ModuleDict())
    parts = None
    if "right_inverse" in dir(parametrization):
        with no_grad():
            made = parametrization.right_inverse(original.detach())
        if isinstance(made, Tensor):
            original.data = made.data
        else:
            parts = list(made)
    chain = ParametrizationList(original, parts)
    delattr(module, name)
    _chains(module)[name] = chain

    def read(self: Module) -> Any:
        own = self._modules["parametrizations"][name]
        if not _CACHING[0]:
            return own()
        if id(own) not in _CACHE:
            _CACHE[id(own)] = own()
        return _CACHE[id(own)]

    def write(self: Module, value: Tensor) -> None:
        self._modules["parametrizations"][name].right_inverse(value)

    setattr(type(module), name, property(read, write))


def is_parametrized(module: Module, tensor_name: str | None = None) -> bool:
    """Tell whether a tensor of a module is parametrized, or whether any is."""
    chains = module._modules.get("parametrizations")
    if chains is None:
        return False
    return len(chains) > 0 if tensor_name is None else tensor_name in chains


def remove_parametrizations(module: Module, tensor_name: str, leave_parametrized: bool = True) -> Any:
    """Make a parametrized tensor a plain parameter or buffer again.

    Args:
        module: the module.
        tensor_name: the name of the tensor.
        leave_parametrized: keep its present value, not that of the original.

    Raises:
        ValueError: the tensor is not parametrized.
    """
    if not is_parametrized(module, tensor_name):
        raise ValueError(f"Module {module} does not have a parametrization on {tensor_name}")
    chains = _chains(module)
    original = chains[tensor_name]._originals()[0]
    with no_grad():
        value = chains[tensor_name]()
    if not chains[tensor_name].is_tensor:
        if not leave_parametrized:
            raise ValueError(
                "Cannot leave unparametrized (`leave_parametrized=False`) a tensor that is parametrized in terms of a "
                "sequence of tensors."
            )
        is_parameter = isinstance(original, Parameter)
        original = Parameter(value, original.requires_grad) if is_parameter else value
    elif leave_parametrized:
        original.data = value.data
    del chains[tensor_name]
    delattr(type(module), tensor_name)
    if isinstance(original, Parameter):
        module.register_parameter(tensor_name, original)
    else:
        module.register_buffer(tensor_name, original)
    if not len(chains):
        del module._modules["parametrizations"]
        module.__class__ = type(module)._plain_class  # type: ignore[attr-defined]  # _start has made the class
    return module
