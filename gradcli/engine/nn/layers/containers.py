"""Containers: sequences, lists and dicts of modules, lists and dicts of parameters."""

from __future__ import annotations

import itertools
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Self

from gradcli.engine.nn.base.module import Module
from gradcli.engine.nn.parameter import Parameter
from gradcli.engine.tensor import Tensor


class _Indexed(Module):
    """A list of modules, registered under the names 0, 1, 2..."""

    def _listed(self) -> list[Any]:
        return list(self._modules.values())

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._listed())

    def __getitem__(self, index: int | slice) -> Any:
        if isinstance(index, int) and not -len(self) <= index < len(self):
            raise IndexError(f"index {index} is out of range")
        found = self._listed()[index]
        if not isinstance(found, list):
            return found
        result = type(self)()
        for place, module in enumerate(found):
            result.add_module(str(place), module)
        return result

    def __setitem__(self, index: int, module: Module) -> None:
        self._modules[list(self._modules)[index]] = module

    def __delitem__(self, index: int | slice) -> None:
        kept = self._listed()
        del kept[index]
        self._renumber(kept)

    def _renumber(self, modules: Iterable[Any]) -> None:
        self._modules.clear()
        self._modules.update({str(place): module for place, module in enumerate(modules)})

    def insert(self, index: int, module: Module) -> Self:
        """Insert a module before an index; those after it are renumbered."""
        modules = self._listed()
        modules.insert(index, module)
        self._renumber(modules)
        return self

    def pop(self, key: int) -> Any:
        """Remove a module by index, and return it; those after it are renumbered."""
        module = self[key]
        del self[key]
        return module

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
    """Modules that are applied one after the other: given as arguments, or as one OrderedDict with names."""

    def __init__(self, *args: Any) -> None:
        super().__init__()
        if len(args) == 1 and isinstance(args[0], OrderedDict):
            for name, module in args[0].items():
                self.add_module(name, module)
        else:
            self.extend(args)

    def __add__(self, other: Any) -> Sequential:
        if not isinstance(other, Sequential):
            raise ValueError(f"add operator supports only objects of Sequential class, but {type(other)} is given.")
        return Sequential(*self, *other)

    def __getitem__(self, index: int | slice) -> Any:
        if isinstance(index, slice):  # the part keeps the names, so its state_dict fits that of the whole
            return type(self)(OrderedDict(list(self._modules.items())[index]))
        return super().__getitem__(index)

    def forward(self, input: Any) -> Any:
        """Return the output of the last module; each takes the output of the one before."""
        for module in self:
            input = module(input)
        return input


class ModuleList(_Indexed):
    """A list of modules, which are not applied; neighbours that print alike are printed as one line."""

    def __repr__(self) -> str:
        runs = [(text, list(run)) for text, run in itertools.groupby(enumerate(map(repr, self)), lambda pair: pair[1])]
        lines = []
        for text, run in runs:
            first, last = run[0][0], run[-1][0]
            head = f"({first}): " if first == last else f"({first}-{last}): {len(run)} x "
            lines.append("  " + head + text.replace("\n", "\n  "))
        return "\n".join([f"{type(self).__name__}(", *lines, ")"]) if lines else f"{type(self).__name__}()"

    def __init__(self, modules: Iterable[Module] | None = None) -> None:
        super().__init__()
        self.extend(modules or ())


class ModuleDict(Module):
    """A dict of modules."""

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

    def __delitem__(self, key: str) -> None:
        del self._modules[key]

    def pop(self, key: str) -> Any:
        """Remove a module by name, and return it."""
        return self._modules.pop(key)

    def clear(self) -> None:
        """Remove all modules."""
        self._modules.clear()

    def update(self, modules: Mapping[str, Module] | Iterable[tuple[str, Module]]) -> None:
        """Add modules by name; a module of the same name is replaced."""
        for name, module in dict(modules).items():
            self[name] = module

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


def _listing(parameters: Mapping[str, Parameter | None], by_class: bool = False) -> str:
    lines = []
    for name, value in parameters.items():
        if value is not None:
            size = "x".join(map(str, value._data.shape))
            kind = value.type() if by_class else repr(value.dtype)
            lines.append(f"  ({name}): Parameter containing: [{kind} of size {size}]")
    return "\n".join(lines)


class ParameterList(Module):
    """A list of parameters; tensors become parameters."""

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

    def extend(self, values: Iterable[Tensor]) -> Self:
        """Add parameters at the end, and return the container."""
        for value in values:
            self.append(value)
        return self

    def __setitem__(self, index: int, value: Tensor) -> None:
        self._parameters[list(self._parameters)[index]] = _parameter(value)

    def __len__(self) -> int:
        return len(self._parameters)

    def __iter__(self) -> Iterator[Any]:
        return iter(list(self._parameters.values()))

    def __getitem__(self, index: int) -> Any:
        return list(self._parameters.values())[index]


class ParameterDict(Module):
    """A dict of parameters; tensors become parameters."""

    def __init__(self, values: Mapping[str, Tensor] | None = None) -> None:
        super().__init__()
        for name, value in (values or {}).items():
            self[name] = value

    def extra_repr(self) -> str:
        """Return one line for each parameter."""
        return _listing(self._parameters, by_class=True)

    def __getitem__(self, key: str) -> Any:
        return self._parameters[key]

    def __setitem__(self, key: str, value: Tensor) -> None:
        self.register_parameter(key, _parameter(value))

    def __len__(self) -> int:
        return len(self._parameters)

    def __iter__(self) -> Iterator[str]:
        return iter(self._parameters)

    def __contains__(self, key: str) -> bool:
        return key in self._parameters

    def __delitem__(self, key: str) -> None:
        del self._parameters[key]

    def keys(self) -> Iterable[str]:
        """Return the names."""
        return self._parameters.keys()

    def values(self) -> Iterable[Any]:
        """Return the parameters."""
        return self._parameters.values()

    def items(self) -> Iterable[tuple[str, Any]]:
        """Return names and parameters."""
        return self._parameters.items()
