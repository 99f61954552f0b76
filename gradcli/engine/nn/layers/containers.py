"""Containers: sequences, lists and dicts of modules."""

from __future__ import annotations

import itertools
import operator
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Self

from gradcli.engine.nn.base.module import Module


class _Indexed(Module):
    """A list of modules, registered under the names 0, 1, 2..."""

    def _name(self, index: int) -> str:
        """Return the name under which the module of an index is registered."""
        place = operator.index(index)
        if not -len(self) <= place < len(self):
            raise IndexError(f"index {place} is out of range")
        return list(self._modules)[place]

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._modules.values())

    def __getitem__(self, index: int | slice) -> Any:
        if isinstance(index, slice):
            return self._part(index)
        return self._modules[self._name(index)]

    def _part(self, places: slice) -> Any:
        raise NotImplementedError

    def __setitem__(self, index: int, module: Module) -> None:
        setattr(self, self._name(index), module)

    def __delitem__(self, index: int | slice) -> None:
        for name in list(self._modules)[index] if isinstance(index, slice) else [self._name(index)]:
            delattr(self, name)
        self._modules = {str(place): module for place, module in enumerate(self._modules.values())}

    def _shifted(self, index: int, module: Module) -> None:
        """Move the modules from an index on up by one, and put a module there."""
        for place in range(len(self), index, -1):
            self._modules[str(place)] = self._modules[str(place - 1)]
        self._modules[str(index)] = module

    def pop(self, key: int | slice) -> Any:
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
            for place, module in enumerate(args):
                self.add_module(str(place), module)

    def _part(self, places: slice) -> Any:  # it keeps the names, so that its state_dict fits that of the whole
        return type(self)(OrderedDict(list(self._modules.items())[places]))

    def _require_sequential(self, other: Any) -> None:
        if not isinstance(other, Sequential):
            raise ValueError(f"add operator supports only objects of Sequential class, but {type(other)} is given.")

    def _require_times(self, times: Any) -> None:
        if not isinstance(times, int):
            raise TypeError(f"unsupported operand type(s) for *: {type(self)} and {type(times)}")
        if times <= 0:
            raise ValueError(f"Non-positive multiplication factor {times} for {type(self)}")

    def __add__(self, other: Any) -> Sequential:
        self._require_sequential(other)
        return Sequential(*self, *other)

    def __iadd__(self, other: Any) -> Self:
        self._require_sequential(other)
        return self.extend(list(other))

    def __mul__(self, other: int) -> Sequential:
        self._require_times(other)
        return Sequential(*list(self) * other)

    def __rmul__(self, other: int) -> Sequential:
        return self * other

    def __imul__(self, other: int) -> Self:
        self._require_times(other)
        return self.extend(list(self) * (other - 1))

    def insert(self, index: int, module: Module) -> Self:
        """Insert a module before an index, and return the container; those after it are renumbered.

        Raises:
            AssertionError: `module` is not a module.
            IndexError: the index is beyond the ends.
        """
        if not isinstance(module, Module):
            raise AssertionError(f"module should be of type: {Module}")
        if not -len(self) <= index <= len(self):
            raise IndexError(f"Index out of range: {index}")
        self._shifted(index + len(self) if index < 0 else index, module)
        return self

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
        if modules is not None:
            self += modules

    def _name(self, index: int) -> str:  # the index itself, however the modules are ordered
        super()._name(index)
        return str(operator.index(index) % len(self))

    def _part(self, places: slice) -> Any:
        return type(self)(list(self)[places])

    def extend(self, modules: Iterable[Module]) -> Self:
        """Add modules at the end, and return the container; raises TypeError if they are not iterable."""
        if not isinstance(modules, Iterable):
            raise TypeError(f"ModuleList.extend should be called with an iterable, but got {type(modules).__name__}")
        return super().extend(modules)

    def insert(self, index: int, module: Module) -> None:
        """Insert a module before an index; those after it are renumbered."""
        self._shifted(index, module)

    def __iadd__(self, modules: Iterable[Module]) -> Self:
        return self.extend(modules)

    def __add__(self, other: Iterable[Module]) -> ModuleList:
        return ModuleList([*self, *other])


def pairs_of(given: Any, kind: str, prefix: str = "") -> list[tuple[str, Any]]:
    """Return the names and values that are given to the `update` of a dict of modules or parameters.

    Raises:
        TypeError: neither a mapping nor an iterable of pairs is given.
        ValueError: an entry is not a pair.
    """
    if not isinstance(given, Iterable):
        raise TypeError(
            f"{prefix or kind}Dict.update should be called with an iterable of key/value pairs, but got "
            f"{type(given).__name__}"
        )
    if isinstance(given, Mapping) or (isinstance(given, Module) and hasattr(given, "items")):
        return list(given.items())
    pairs: list[Any] = list(given)
    for place, pair in enumerate(pairs):
        if not isinstance(pair, Iterable):
            raise TypeError(f"{kind}Dict update sequence element #{place} should be Iterable; is{type(pair).__name__}")
        if len(pair) != 2:  # type: ignore[arg-type]  # a pair has a length
            length = len(pair)  # type: ignore[arg-type]
            raise ValueError(f"{kind}Dict update sequence element #{place} has length {length}; 2 is required")
    return [(name, value) for name, value in pairs]


class ModuleDict(Module):
    """A dict of modules."""

    def __init__(self, modules: Any = None) -> None:
        super().__init__()
        if modules is not None:
            self.update(modules)

    def __getitem__(self, key: str) -> Any:
        return self._modules[key]

    def __setitem__(self, key: str, module: Module) -> None:
        self.add_module(key, module)

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[str]:
        return iter(self._modules)

    def __contains__(self, key: object) -> bool:
        return key in self._modules

    def __delitem__(self, key: str) -> None:
        del self._modules[key]

    def pop(self, key: str) -> Any:
        """Remove a module by name, and return it."""
        return self._modules.pop(key)

    def clear(self) -> None:
        """Remove all modules."""
        self._modules.clear()

    def update(self, modules: Any) -> None:
        """Add modules by name; a module of the same name is replaced.

        Raises:
            TypeError: neither a mapping nor an iterable of pairs is given.
            ValueError: an entry is not a pair.
        """
        for name, module in pairs_of(modules, "Module"):
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
