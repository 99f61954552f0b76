"""Lists and dicts of parameters; tensors become parameters, and other values are kept as plain attributes."""

from __future__ import annotations

import operator
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Self

from gradcli.engine.nn.base.module import Module
from gradcli.engine.nn.layers.containers import pairs_of
from gradcli.engine.nn.parameter import Parameter
from gradcli.engine.tensor import Tensor


def _kept(value: Any) -> Any:
    return Parameter(value) if isinstance(value, Tensor) and not isinstance(value, Parameter) else value


def _listing(values: Iterable[tuple[Any, Any]], by_class: bool) -> str:
    lines = []
    for name, value in values:
        text = f"Object of type: {type(value).__name__}"
        if isinstance(value, Tensor):
            kind = value.type() if by_class else repr(value.dtype)
            what = "Parameter" if isinstance(value, Parameter) else "Tensor"
            text = f"{what} containing: [{kind} of size {'x'.join(map(str, value._data.shape))}]"
        lines.append(f"  ({name}): {text}")
    return "\n".join(lines)


class ParameterList(Module):
    """A list of parameters; tensors become parameters."""

    def __init__(self, values: Iterable[Any] | None = None) -> None:
        super().__init__()
        self._size = 0
        if values is not None:
            self += values

    def extra_repr(self) -> str:
        """Return one line for each parameter."""
        return _listing(enumerate(self), by_class=False)

    def append(self, value: Any) -> Self:
        """Add a parameter at the end, and return the container."""
        self._size += 1
        self[self._size - 1] = value
        return self

    def extend(self, values: Iterable[Any]) -> Self:
        """Add parameters at the end, and return the container; raises TypeError if they are not iterable."""
        if not isinstance(values, Iterable) or isinstance(values, Tensor):
            kind = type(values).__name__
            raise TypeError(f"ParameterList.extend should be called with an iterable, but got {kind}")
        for value in values:
            self.append(value)
        return self

    def __iadd__(self, values: Iterable[Any]) -> Self:
        return self.extend(values)

    def _name(self, index: int) -> str:
        place = operator.index(index)
        if not -len(self) <= place < len(self):
            raise IndexError(f"index {place} is out of range")
        return str(place % len(self))

    def __setitem__(self, index: int, value: Any) -> None:
        setattr(self, self._name(index), _kept(value))

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[Any]:
        return (self[place] for place in range(self._size))

    def __getitem__(self, index: int | slice) -> Any:
        if isinstance(index, slice):
            return type(self)([self[place] for place in range(self._size)[index]])
        return getattr(self, self._name(index))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:  # noqa: ARG002  (a module takes any)
        """Raise RuntimeError: a list is not called."""
        raise RuntimeError("ParameterList should not be called.")


class ParameterDict(Module):
    """A dict of parameters; tensors become parameters."""

    def __init__(self, values: Any = None) -> None:
        super().__init__()
        self._keys: dict[str, None] = {}
        if values is not None:
            self.update(values)

    def extra_repr(self) -> str:
        """Return one line for each parameter."""
        return _listing(self.items(), by_class=True)

    @staticmethod
    def _checked(key: Any) -> str:
        if not isinstance(key, str):
            raise TypeError(
                "Index given to ParameterDict cannot be used as a key as it is not a string (type is "
                f"'{type(key).__name__}'). Open an issue on github if you need non-string keys."
            )
        return key

    def __getitem__(self, key: str) -> Any:
        return getattr(self, self._checked(key))

    def __setitem__(self, key: str, value: Any) -> None:
        self._keys[self._checked(key)] = None
        setattr(self, key, _kept(value))

    def __delitem__(self, key: str) -> None:
        del self._keys[key]
        delattr(self, self._checked(key))

    def __len__(self) -> int:
        return len(self._keys)

    def __iter__(self) -> Iterator[str]:
        return iter(self._keys)

    def __reversed__(self) -> Iterator[str]:
        return reversed(self._keys)

    def __contains__(self, key: object) -> bool:
        return key in self._keys

    def __call__(self, input: Any) -> Any:  # noqa: ARG002  (a module takes any)
        """Raise RuntimeError: a dict is not called."""
        raise RuntimeError("ParameterDict should not be called.")

    def keys(self) -> Iterable[str]:
        """Return the names."""
        return self._keys.keys()

    def values(self) -> Iterable[Any]:
        """Return the parameters."""
        return (self[key] for key in self._keys)

    def items(self) -> Iterable[tuple[str, Any]]:
        """Return names and parameters."""
        return ((key, self[key]) for key in self._keys)

    def get(self, key: str, default: Any = None) -> Any:
        """Return a parameter by name, or the default if there is none."""
        return self[key] if key in self._keys else default

    def setdefault(self, key: str, default: Any = None) -> Any:
        """Return a parameter by name; add the default first if there is none."""
        if key not in self:
            self[key] = default
        return self[key]

    def pop(self, key: str) -> Any:
        """Remove a parameter by name, and return it."""
        value = self[key]
        del self[key]
        return value

    def popitem(self) -> tuple[str, Any]:
        """Remove the parameter that was added last, and return its name and it."""
        key = next(reversed(self._keys))
        return key, self.pop(key)

    def clear(self) -> None:
        """Remove all parameters."""
        for key in list(self._keys):
            del self[key]

    def copy(self) -> ParameterDict:
        """Return another dict of the same parameters."""
        return ParameterDict(OrderedDict(self.items()))

    def fromkeys(self, keys: Iterable[str], default: Any = None) -> ParameterDict:
        """Return a dict of these names, each with the default."""
        return ParameterDict([(key, default) for key in keys])

    def update(self, parameters: Any) -> None:
        """Add parameters by name, those of a plain dict in the order of their names; one of the same name is replaced.

        Raises:
            TypeError: neither a mapping nor an iterable of pairs is given.
            ValueError: an entry is not a pair.
        """
        pairs = pairs_of(parameters, "Parameter", "Parameters")
        plain = isinstance(parameters, Mapping) and not isinstance(parameters, OrderedDict)
        for key, value in sorted(pairs, key=lambda pair: pair[0]) if plain else pairs:
            self[key] = value

    def __or__(self, other: Any) -> ParameterDict:
        result = self.copy()
        result.update(other)
        return result

    def __ror__(self, other: Any) -> Any:
        result = other.copy()
        result.update(self)
        return result

    def __ior__(self, other: Any) -> Self:
        self.update(other)
        return self
