"""Modules and parameters in order or by name."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Self

from gradcli.engine.nn.module import Module
from gradcli.engine.nn.parameter import Parameter
from gradcli.engine.tensor import Tensor


class _Indexed(Module):
    """Modules under the names 0, 1, 2..."""

    def _listed(self) -> list[Any]:
        return list(self._modules.values())

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._listed())

    def __getitem__(self, index: int | slice) -> Any:
        found = self._listed()[index]
        if not isinstance(found, list):
            return found
        result = type(self)()
        for place, module in enumerate(found):
            result.add_module(str(place), module)
        return result

    def __setitem__(self, index: int, module: Module) -> None:
        self._modules[list(self._modules)[index]] = module

    def append(self, module: Module) -> Self:
        """Add a module at the end, and return the container."""
        self.add_module(str(len(self)), module)
        return self

    def extend(self, modules: Iterable[Module]) -> Self:
        """Add modules at the end, and return the container."""
        for module in modules:
            self.append(module)
        return self


class Sequential(_Indexed):
    """Modules that run one after the other, given in order or as an ordered dict of names."""

    def __init__(self, *args: Any) -> None:
        super().__init__()
        if len(args) == 1 and isinstance(args[0], OrderedDict):
            for name, module in args[0].items():
                self.add_module(name, module)
        else:
            self.extend(args)

    def forward(self, input: Any) -> Any:
        """Return what the last module makes of what the others made of the input."""
        for module in self:
            input = module(input)
        return input


class ModuleList(_Indexed):
    """Modules as a list."""

    def __init__(self, modules: Iterable[Module] | None = None) -> None:
        super().__init__()
        self.extend(modules or ())


class ModuleDict(Module):
    """Modules by name."""

    def __init__(self, modules: Mapping[str, Module] | None = None) -> None:
        super().__init__()
        for name, module in (modules or {}).items():
            self[name] = module

    def __getitem__(self, key: str) -> Any:
        return self._modules[key]

    def __setitem__(self, key: str, module: Module) -> None:
        self.add_module(key, module)

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[str]:
        return iter(self._modules)

    def __contains__(self, key: str) -> bool:
        return key in self._modules

    def keys(self) -> Iterable[str]:
        """Return the names."""
        return self._modules.keys()

    def items(self) -> Iterable[tuple[str, Any]]:
        """Return names and modules."""
        return self._modules.items()

    def values(self) -> Iterable[Any]:
        """Return the modules."""
        return self._modules.values()


def _parameter(value: Tensor) -> Parameter:
    return value if isinstance(value, Parameter) else Parameter(value)


def _listing(parameters: Mapping[str, Parameter | None]) -> str:
    lines = []
    for name, value in parameters.items():
        if value is not None:
            size = "x".join(map(str, value._data.shape))
            lines.append(f"  ({name}): Parameter containing: [{value.dtype!r} of size {size}]")
    return "\n".join(lines)


class ParameterList(Module):
    """Parameters as a list."""

    def __init__(self, values: Iterable[Tensor] = ()) -> None:
        super().__init__()
        for value in values:
            self.append(value)

    def extra_repr(self) -> str:
        """Return one line for each parameter."""
        return _listing(self._parameters)

    def append(self, value: Tensor) -> Self:
        """Add a parameter at the end, and return the container."""
        self.register_parameter(str(len(self)), _parameter(value))
        return self

    def __len__(self) -> int:
        return len(self._parameters)

    def __iter__(self) -> Iterator[Any]:
        return iter(list(self._parameters.values()))

    def __getitem__(self, index: int) -> Any:
        return list(self._parameters.values())[index]


class ParameterDict(Module):
    """Parameters by name."""

    def __init__(self, values: Mapping[str, Tensor] | None = None) -> None:
        super().__init__()
        for name, value in (values or {}).items():
            self[name] = value

    def extra_repr(self) -> str:
        """Return one line for each parameter."""
        return _listing(self._parameters)

    def __getitem__(self, key: str) -> Any:
        return self._parameters[key]

    def __setitem__(self, key: str, value: Tensor) -> None:
        self.register_parameter(key, _parameter(value))

    def __len__(self) -> int:
        return len(self._parameters)

    def __iter__(self) -> Iterator[str]:
        return iter(self._parameters)

    def items(self) -> Iterable[tuple[str, Any]]:
        """Return names and parameters."""
        return self._parameters.items()
