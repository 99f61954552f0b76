"""Lists, tuples, dicts and dataclasses of tensors, as arguments and as results of callables and modules."""

import copy
import dataclasses
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, final

from gradcli.backends.arrays.trees import Trees, leaf_names
from gradcli.backends.tensor.framework import Framework
from gradcli.cases import Argument

Adopt = Callable[[str, object], Argument]


@final
class Containers(Trees):
    """Python's own containers (list, tuple, dict, dataclass); any other object is a leaf."""

    def __init__(self, framework: Framework, adopt: Adopt, kept: Iterable[object] = ()) -> None:
        self._framework = framework
        self._adopt = adopt
        self._kept = {id(tensor) for tensor in kept}

    def leaves(self, value: object) -> list[tuple[str, Any]]:
        """The leaves with paths as one writes them: `[0]`, `['weight']`, `.field`."""
        return container_leaves(value)

    def rebuilt(self, value: object, leaves: Sequence[Any]) -> Any:
        """The same container around other leaves."""
        return rebuilt_container(value, leaves)

    def adopted(self, name: str, leaf: object) -> Argument:
        """A tensor, or an array, as an argument."""
        return self._adopt(name, leaf)

    def is_input(self, leaf: Argument) -> bool:
        """Every tensor: one without a gradient is to be copied and raised to 64 bits as well.

        One that is an argument of its own too stays in its container: it is a single input.
        """
        return leaf.is_tensor and id(leaf.own) not in self._kept


@final
class ContainerCall:
    """Calls a function whose containers are given by their leaves, and lists the tensors that it returns.

    Leaves come as keywords under their names, such as `xs[0]`, beside the containers that they belong to.
    """

    def __init__(self, function: Callable[..., Any], arguments: Sequence[Argument], trees: Containers) -> None:
        self._function = function
        self._trees = trees
        tensors = {argument.name for argument in arguments if argument.is_tensor}
        self._places: dict[int | str, list[str]] = {}
        position = 0
        for argument in arguments:
            names = leaf_names(argument, trees)
            if tensors.intersection(names):
                self._places[argument.name if argument.keyword else position] = names
            position += not argument.keyword

    def __call__(self, *arguments: Any, **keywords: Any) -> Any:
        """Call with every container put together; a result that is one is returned as the tuple of its leaves."""
        if self._places:
            values: dict[int | str, Any] = dict(enumerate(arguments))
            values.update(keywords)
            whole = {place: self._whole(values, place) for place in self._places}
            inside = {name for names in self._places.values() for name in names}
            arguments = tuple(whole.get(place, value) for place, value in enumerate(arguments))
            keywords = {name: whole.get(name, value) for name, value in keywords.items() if name not in inside}
        return _flat(self._function(*arguments, **keywords))

    def _whole(self, values: Mapping[int | str, Any], place: int | str) -> Any:
        found = self._trees.leaves(values[place])
        names = self._places[place]
        return self._trees.rebuilt(
            values[place], [values.get(name, leaf) for name, (_, leaf) in zip(names, found, strict=True)]
        )


def container_leaves(value: object) -> list[tuple[str, Any]]:
    """The leaves of lists, tuples, dicts and dataclasses with their paths; a leaf's own path is empty."""
    return list(_leaves(value, ""))


def rebuilt_container(value: object, leaves: Sequence[Any]) -> Any:
    """The same container around other leaves, in the order of `container_leaves`."""
    return _rebuilt(value, iter(leaves))


def _flat(result: Any) -> Any:
    """The leaves of a result that holds containers; any other as it is."""
    if isinstance(result, tuple | list):
        nested = any(map(_is_container, result))
    else:
        nested = _is_container(result)
    return tuple(leaf for _, leaf in container_leaves(result)) if nested else result


def _is_container(value: object) -> bool:
    return isinstance(value, tuple | list | dict) or (dataclasses.is_dataclass(value) and not isinstance(value, type))


def _leaves(value: object, path: str) -> Iterator[tuple[str, Any]]:
    if not _is_container(value):
        yield path, value
        return
    for step, part in _parts(value):
        yield from _leaves(part, path + step)


def _parts(value: Any) -> Iterable[tuple[str, Any]]:
    if isinstance(value, dict):
        return [(f"[{key!r}]", part) for key, part in value.items()]
    if isinstance(value, tuple | list):
        return [(f"[{number}]", part) for number, part in enumerate(value)]
    return [(f".{field.name}", getattr(value, field.name)) for field in dataclasses.fields(value)]


def _rebuilt(value: Any, leaves: Iterator[Any]) -> Any:
    if not _is_container(value):
        return next(leaves)
    parts = [_rebuilt(part, leaves) for _, part in _parts(value)]
    if isinstance(value, tuple):
        kind: Any = type(value)
        return kind._make(parts) if "_make" in dir(kind) else kind(parts)  # a named tuple takes fields, not a sequence
    made = copy.copy(value)
    if isinstance(value, list):
        made[:] = parts
    elif isinstance(value, dict):
        made.update(zip(value, parts, strict=True))
    else:
        for field, part in zip(dataclasses.fields(value), parts, strict=True):
            object.__setattr__(made, field.name, part)
    return made
