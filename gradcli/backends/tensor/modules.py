"""A module as an ordinary function: its parameters are arguments, and its buffers are copied for every call."""

import inspect
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from gradcli.backends.tensor.framework import Framework, same_kind

Substituted = Callable[[Any, dict[str, Any], tuple[Any, ...], dict[str, Any]], Any]


def is_module(framework: Framework, target: object) -> bool:
    """Whether `target` is a module of the framework, or a class of modules; imports nothing."""
    home = framework.module_home
    if home not in sys.modules:
        return False
    base = sys.modules[home].Module
    return issubclass(target, base) if inspect.isclass(target) else isinstance(target, base)


@final
class ModuleCall:
    """Calls a module with its parameters given by name; those that are not given keep their own values.

    What the module itself holds is never written to: parameters and buffers are exchanged for copies during the call,
    so that running statistics and counters are the same before every call; and again while a gradient is passed back
    through it, because backward may read the module's parameters or call it anew.
    """

    def __init__(self, framework: Framework, module: Any) -> None:
        self.module = module
        self._framework = framework
        arguments = own_parameters(module)
        self._names = {name: owner for owner, name in argument_names(module, tuple(arguments)).items()}

    def __call__(self, *arguments: Any, **keywords: Any) -> Any:
        """Run the module; keywords that name a parameter take its place."""
        given = {self._names[name]: value for name, value in keywords.items() if name in self._names}
        rest = {name: value for name, value in keywords.items() if name not in self._names}
        wanted = self._precision([*given.values(), *arguments, *rest.values()])
        tensors = {name: given.get(name, self._copy(tensor, wanted)) for name, tensor in self._own()}
        self._framework.exchange = partial(exchanged, self.module, tensors)
        return self._framework.call_module(self.module, tensors, arguments, rest)

    def _own(self) -> list[tuple[str, Any]]:
        return [*self.module.named_parameters(), *self.module.named_buffers()]

    def _precision(self, values: list[Any]) -> str:
        """The dtype of the first floating tensor, float64 where there is none."""
        for value in values:
            if self._framework.is_tensor(value) and self._framework.is_differentiable(value):
                return self._framework.dtype_name(value)
        return "float64"

    def _copy(self, tensor: Any, wanted: str) -> Any:
        """A copy of what the module holds, floating numbers in the precision of the inputs."""
        copied = tensor.detach().clone()
        if not self._framework.is_differentiable(tensor):
            return self._framework.to_user_tensor(copied, None, None)
        dtype = same_kind(wanted, is_complex=bool(tensor.is_complex()))
        return self._framework.to_user_tensor(copied, dtype, None)


@contextmanager
def exchanged(module: Any, tensors: Mapping[str, Any]) -> Iterator[None]:
    """A context in which these tensors replace the parameters and buffers of those names, tied ones together."""
    kept: list[tuple[dict[str, Any], str, Any]] = []
    try:
        for owner in module.modules():
            for held in (owner._parameters, owner._buffers):
                kept += [(held, name, own) for name, own in held.items() if own is not None]
        named = [*module.named_parameters(), *module.named_buffers()]
        by_identity = {id(own): tensors[name] for name, own in named if name in tensors}
        for held, name, own in kept:
            held[name] = by_identity.get(id(own), own)
        yield
    finally:
        for held, name, own in kept:
            held[name] = own


def own_parameters(module: Any) -> dict[str, Any]:
    """The parameters that are inputs: floating or complex, and requiring a gradient; by their dotted names."""
    return {name: p for name, p in module.named_parameters() if p.requires_grad}


def held_arrays(framework: Framework, module: Any) -> dict[str, NDArray[Any]]:
    """The values of the parameters that are inputs, by the names that they have as arguments."""
    own = own_parameters(module)
    names = argument_names(module, tuple(own))
    return {names[name]: np.asarray(framework.to_array(tensor)) for name, tensor in own.items()}


def argument_names(module: Any, parameters: tuple[str, ...]) -> Mapping[str, str]:
    """What each parameter is called among the arguments: its own name, `self.name` where forward has that already."""
    taken = set(inspect.signature(type(module).forward).parameters)
    return {name: f"self.{name}" if name in taken else name for name in parameters}


def is_lazy(parameter: Any) -> bool:
    """Whether a parameter gets its size in the first call only, as those of PyTorch's lazy modules do."""
    return any(kind.__name__ == "UninitializedTensorMixin" for kind in type(parameter).__mro__)
