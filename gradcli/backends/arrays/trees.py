"""Containers of arrays as arguments: each floating leaf becomes an input of its own, such as `params['w'][0]`."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from gradcli.cases import Argument


class Trees(ABC):
    """How a framework takes containers apart and puts them together."""

    @abstractmethod
    def leaves(self, value: object) -> list[tuple[str, Any]]:
        """The leaves of a container with their paths, such as ("['w'][0]", leaf), in a fixed order."""

    @abstractmethod
    def rebuilt(self, value: object, leaves: Sequence[Any]) -> Any:
        """The same container around other leaves."""

    @abstractmethod
    def adopted(self, name: str, leaf: object) -> Argument:
        """A leaf as an argument: a floating array or number is a tensor."""

    def is_input(self, leaf: Argument) -> bool:
        """Whether a leaf becomes an input of its own: those that gradients are taken with respect to do."""
        return leaf.requires_grad


def expanded(
    arguments: Sequence[Argument], trees: Trees, *, fixed: Sequence[int] = (), by_keyword: bool = False
) -> tuple[Argument, ...]:
    """The arguments with every container followed by its floating leaves, where they are not there already.

    The container stays, with zeros in the leaves' places, to say how it is put together.

    Args:
        arguments: as the caller or a saved failure gives them.
        trees: the framework's containers.
        fixed: positions of arguments that are no data, to be left as they are.
        by_keyword: make the leaves keyword arguments, which go by their names.
    """
    known = {argument.name for argument in arguments}
    made: list[Argument] = []
    for position, argument in enumerate(arguments):
        if argument.is_tensor or position in fixed:
            made.append(argument)
            continue
        found = trees.leaves(argument.value)
        taken = {path: trees.adopted(argument.name + path, leaf) for path, leaf in found if path}
        inputs = {path: leaf for path, leaf in taken.items() if trees.is_input(leaf)}
        if not inputs or any(leaf.name in known for leaf in inputs.values()):
            made.append(argument)
            continue
        kept = trees.rebuilt(argument.value, [0 if path in inputs else leaf for path, leaf in found])
        made += [replace(argument, value=kept), *inputs.values()]
    if not by_keyword:
        return tuple(made)
    inside = {name for argument in made for name in leaf_names(argument, trees)}
    return tuple(replace(a, keyword=True) if a.is_tensor and a.name in inside else a for a in made)


def places_of(arguments: Sequence[Argument], positions: Sequence[int], trees: Trees) -> frozenset[int]:
    """Where the arguments at these positions of the function stand among all arguments, leaves included."""
    inside = {name for argument in arguments for name in leaf_names(argument, trees)}
    own = [i for i, a in enumerate(arguments) if not (a.keyword or (a.is_tensor and a.name in inside))]
    return frozenset(own[position] for position in positions if position < len(own))


def leaf_names(argument: Argument, trees: Trees) -> list[str]:
    """The names of the leaves of an argument, empty for one that is no container."""
    return [] if argument.is_tensor else [argument.name + path for path, _ in trees.leaves(argument.value) if path]


def assembled(arguments: Sequence[Argument], values: dict[int, Any], trees: Trees) -> list[tuple[Argument, Any]]:
    """The arguments that the function itself takes, each with its value, containers put together again."""
    by_name = {argument.name: values[i] for i, argument in enumerate(arguments) if i in values}
    inside = {name for argument in arguments for name in leaf_names(argument, trees)}
    made: list[tuple[Argument, Any]] = []
    for position, argument in enumerate(arguments):
        if argument.name in inside and argument.is_tensor:
            continue
        if argument.is_tensor:
            made.append((argument, values[position]))
            continue
        found = trees.leaves(argument.value)
        if any(argument.name + path in by_name for path, _ in found if path):
            whole = [by_name.get(argument.name + path, leaf) for path, leaf in found]
            made.append((argument, trees.rebuilt(argument.value, whole)))
        else:
            made.append((argument, argument.value))
    return made


def spread(
    arguments: Sequence[Argument], returned: Sequence[tuple[Argument, object]], trees: Trees
) -> dict[str, object] | str:
    """Gradients returned for whole arguments as gradients of their leaves, by name.

    Args:
        arguments: all arguments, leaves included.
        returned: each argument of the function with what was returned for it, None included.
        trees: the framework's containers.

    Returns:
        The gradients by the names of inputs; or the name of an argument that was given another container than its own.
    """
    tensors = {argument.name for argument in arguments if argument.is_tensor}
    made: dict[str, object] = {}
    for argument, gradient in returned:
        if argument.is_tensor:
            made[argument.name] = gradient
        elif gradient is not None and any(name in tensors for name in leaf_names(argument, trees)):
            found = {argument.name + path: leaf for path, leaf in trees.leaves(gradient)}
            names = leaf_names(argument, trees)
            if not set(found) <= set(names):
                return argument.name
            made |= found
    return made
