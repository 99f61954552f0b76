"""Arguments that are containers, given or inferred leaf by leaf: `params['W']` belongs to the argument `params`."""

import ast
import copy
import dataclasses
import re
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

from gradcli.backends.arrays.trees import leaf_names
from gradcli.backends.numpy.placements import TREES
from gradcli.backends.tensor.containers import container_leaves, rebuilt_container
from gradcli.cases import Argument, InputSpec
from gradcli.errors import UsageError
from gradcli.frozen import dataclass
from gradcli.inputs.hints.containers.arguments import Container, containers_of, fields_of, other_kinds
from gradcli.inputs.hints.documented_shapes import documented_shapes
from gradcli.sources import source_of
from gradcli.targets import Parameter, TargetInfo

_PATH = re.compile(r"\[(?:\d+|'[^']*')\]|\.\w+")
_LEAF = re.compile(rf"([^\W\d]\w*)((?:{_PATH.pattern})+)")
_BASE = re.compile(r"[^\W\d]\w*")
_MOST_PARAMETERS = 32
"""Arguments and leaves to which no further keys are added."""
_Named = TypeVar("_Named", Argument, InputSpec)


def container_named(name: str, info: TargetInfo) -> str | None:
    """The argument that a leaf of this name belongs to; None for an argument, or one of `*args`."""
    match = _LEAF.fullmatch(name)
    held = {held for held, _ in info.held}
    known = [p.name for p in info.parameters if not p.variadic]
    return match[1] if match is not None and match[1] in known and name not in held else None


def grouped(specs: Sequence[InputSpec], info: TargetInfo) -> dict[str, list[InputSpec]]:
    """The specs of leaves by the containers that they belong to."""
    found: dict[str, list[InputSpec]] = {}
    for spec in specs:
        if (container := container_named(spec.name, info)) is not None:
            found.setdefault(container, []).append(spec)
    return found


def folded(arguments: Sequence[Argument], info: TargetInfo) -> tuple[Argument, ...]:
    """The arguments with a container in front of leaves that have none; leaves that are constants go into it.

    Raises:
        UsageError: the leaves do not make up a container that forward can be called with.
    """
    if not any("[" in a.name or "." in a.name for a in arguments):
        return tuple(arguments)
    present = {a.name: a for a in arguments}
    leaves: dict[str, list[Argument]] = {}
    for argument in arguments:
        if (container := container_named(argument.name, info)) is not None:
            leaves.setdefault(container, []).append(argument)
    made: list[Argument] = []
    for argument in arguments:
        container = container_named(argument.name, info)
        if container is None:
            own = leaves.get(argument.name)
            made.append(argument if own is None else _filled(argument, own))
            continue
        if container not in present and leaves[container][0] is argument:
            whole = _container(container, [leaf.name[len(container) :] for leaf in leaves[container]], info)
            made.append(_filled(Argument(name=container, value=whole, is_tensor=False), leaves[container]))
        if argument.is_tensor:
            made.append(argument)
    return tuple(made)


def _filled(container: Argument, leaves: Sequence[Argument]) -> Argument:
    """The container with the leaves that are constants in it."""
    values = {leaf.name: leaf.value for leaf in leaves if not leaf.is_tensor}
    by_field = {name: f"{container.name}.{name}" for name in fields_of(type(container.value))}
    given = {name: values.pop(full) for name, full in by_field.items() if full in values}
    if given:
        changed = getattr(container.value, "_replace", None) or partial(dataclasses.replace, container.value)
        container = replace(container, value=changed(**given))
        leaves = [leaf for leaf in leaves if leaf.name not in by_field.values()]
    names = leaf_names(container, TREES)
    unknown = [leaf.name for leaf in leaves if leaf.name not in names]
    if unknown and not hasattr(container.value, "_fields"):  # whose parts JAX names by fields, and others by numbers
        raise UsageError(f"{container.name} has no part {', '.join(unknown)}: it has {', '.join(names) or 'none'}")
    found = container_leaves(container.value)
    whole = [values.get(container.name + path, leaf) for path, leaf in found]
    return replace(container, value=rebuilt_container(container.value, whole)) if values else container


def _container(name: str, paths: Sequence[str], info: TargetInfo) -> Any:
    """The container with these leaves: as forward's source has it, if that has the same ones, else as they tell."""
    known = containers_of(info).get(name)
    if known is not None and {path for path, _ in known.leaves} >= set(paths):
        return known.value
    if any("." in path for path in paths):
        raise UsageError(f"{name}: no class is known with the attributes of {', '.join(name + p for p in paths)}")
    made = _put_together(name, [_PATH.findall(path) for path in paths])
    return list(made) if known is not None and type(known.value) is list and type(made) is tuple else made


def _put_together(name: str, paths: Sequence[Sequence[str]]) -> Any:
    if not all(paths):
        return 0
    keys = list(dict.fromkeys(path[0] for path in paths))
    parts = {key: _put_together(name + key, [path[1:] for path in paths if path[0] == key]) for key in keys}
    by_key = {ast.literal_eval(key[1:-1]): part for key, part in parts.items()}
    if all(isinstance(key, str) for key in by_key):
        return by_key
    if sorted(by_key, key=str) != [*range(len(by_key))]:
        raise UsageError(
            f"{name}: expected its elements from {name}[0] on, got {', '.join(name + key for key in keys)}"
        )
    listed = [by_key[place] for place in range(len(by_key))]
    return listed if any(isinstance(part, list | tuple | dict) for part in listed) else tuple(listed)


@dataclass(frozen=True, slots=True, kw_only=True)
class Unfolded:
    """A target as the search for inputs sees it: with the leaves of containers for arguments, by short names.

    `containers` are by the names of the arguments, as are their `values`; `given` those that no leaf tells, such as an
    empty dict. `are_numbers` says that leaves of which nothing is known are tried as single numbers.
    """

    info: TargetInfo
    order: tuple[str, ...] = ()
    containers: tuple[tuple[str, Container], ...] = ()
    values: tuple[tuple[str, Any], ...] = ()
    given: tuple[InputSpec, ...] = ()
    are_numbers: bool = False

    @property
    def _names(self) -> dict[str, str]:
        return {alias: name + path for name, held in self.containers for path, alias in held.leaves}

    def arguments(self, arguments: Sequence[Argument]) -> tuple[Argument, ...]:
        """Arguments under the names of leaves, the containers that no name tells in front."""
        names = self._names
        if not self.containers:
            return tuple(arguments)
        whole = [Argument(name=n, value=copy.deepcopy(v), is_tensor=False) for n, v in self.values]
        return self._ordered([*whole, *(replace(a, name=names.get(a.name, a.name)) for a in arguments)])

    def specs(self, specs: Sequence[InputSpec]) -> tuple[InputSpec, ...]:
        """Specs under the names of leaves, likewise."""
        if not self.containers:
            return tuple(specs)
        names = self._names
        renamed = [replace(spec, name=names.get(spec.name, spec.name)) for spec in specs]
        return self._ordered([*self.given, *renamed])

    def _ordered(self, items: Sequence[_Named]) -> tuple[_Named, ...]:
        """In the order of forward's parameters, a container before its leaves."""
        places = {name: place for place, name in enumerate(self.order)}

        def place(item: _Named) -> tuple[int, bool]:
            base = _BASE.match(item.name)
            return places.get(base[0] if base else item.name, len(places)), item.name not in places

        return tuple(sorted(items, key=place))

    def with_lacking(self, error: BaseException | None) -> "Unfolded | None":
        """The target with the key that forward did not find in one of the dicts; None for another error."""
        key = error.args[0] if isinstance(error, KeyError) and error.args else None
        traceback = error.__traceback__ if isinstance(key, str) and error is not None else None
        while traceback is not None and traceback.tb_next is not None:
            traceback = traceback.tb_next
        if traceback is None or not isinstance(key, str) or len(self.info.parameters) >= _MOST_PARAMETERS:
            return None
        read = [set(held) for held in traceback.tb_frame.f_locals.values() if isinstance(held, dict)]
        for number, (name, value) in enumerate(self.values):
            if isinstance(value, dict) and key not in value and set(value) in read:
                taken = {parameter.name for parameter in self.info.parameters}
                alias = key if key.isidentifier() and key not in taken else f"{name}_{len(taken)}"
                held = dict(self.containers)[name]
                more = replace(held, value={**value, key: 0}, leaves=(*held.leaves, (f"[{key!r}]", alias)))
                own = Parameter(name=alias, annotation="Array" if held.holds_tensors else None)
                known = {leaf for _, leaf in held.leaves}
                behind = [place for place, each in enumerate(self.info.parameters, 1) if each.name in known]
                end = max(behind, default=len(self.info.parameters))
                return replace(
                    self,
                    info=replace(self.info, parameters=(*self.info.parameters[:end], own, *self.info.parameters[end:])),
                    containers=tuple((n, more if n == name else each) for n, each in self.containers),
                    values=(*self.values[:number], (name, more.value), *self.values[number + 1 :]),
                )
        return None

    def text(self, text: str) -> str:
        """A note or an error with the arguments and flags of leaves under their names, as the flags are accepted."""
        names = self._names
        text = re.sub(
            r"(?<=\(arguments )[^;)]+",
            lambda m: ", ".join(names.get(each, each) for each in m[0].split(", ")),
            text,
        )
        for alias, name in names.items():
            pattern = rf"-(i|a) {re.escape(alias)}=(\S+)"
            text = re.sub(pattern, lambda m, n=name: f'-{m[1]} "{n}={m[2]}"', text)  # type: ignore[misc]
        return text


def unfolded(info: TargetInfo, given: Sequence[InputSpec]) -> list[Unfolded]:
    """The ways to see a target whose containers are not given: one without containers, several with sequences.

    Where leaves may be single numbers, they are in a further one. The last one has tensors in the places of sequences
    that may be tensors.
    """
    known = {spec.name for spec in given} | {
        container for spec in given if (container := container_named(spec.name, info)) is not None
    }
    found = {name: held for name, held in containers_of(info).items() if name not in known}
    if not found:
        return [Unfolded(info=info)]
    ways = [{name: held.value for name, held in found.items()}]
    for name, held in found.items():
        ways += [{**ways[0], name: other} for other in other_kinds(held.value)]
    seen = [_seen(info, found, way, is_first=way is ways[0]) for way in ways]
    numbers = [_with_numbers(seen[0], found, names) for names in _of_numbers(found)]
    seen += [way for way in numbers if way is not None]
    others = {name: held for name, held in found.items() if not held.may_be_a_tensor}
    if len(others) < len(found):
        seen.append(_seen(info, others, {name: others[name].value for name in others}, is_first=True))
    return seen


def _seen(info: TargetInfo, found: dict[str, Container], values: dict[str, Any], *, is_first: bool) -> Unfolded:
    parameters: list[Parameter] = []
    for parameter in info.parameters:
        held = found.get(parameter.name)
        if held is None:
            parameters.append(parameter)
        else:
            said = "Array" if held.holds_tensors else None
            parameters += [
                Parameter(name=alias, keyword_only=parameter.keyword_only, annotation=said) for _, alias in held.leaves
            ]
    whole = [
        InputSpec(name=name, kind="value", value=values[name])
        for name, held in found.items()
        if not held.leaves or (not is_first and values[name] != held.value)
    ]
    described = "\n".join([info.documentation, *(text for held in found.values() for text in held.descriptions)])
    return Unfolded(
        info=replace(info, parameters=tuple(parameters), documentation=described),
        order=tuple(parameter.name for parameter in info.parameters),
        containers=tuple(found.items()),
        values=tuple(values.items()),
        given=tuple(whole),
    )


def _of_numbers(found: dict[str, Container]) -> list[list[str]]:
    """The containers whose leaves may be single numbers: first those that their names do not say to hold tensors."""
    likely = [name for name, held in found.items() if not held.holds_tensors]
    return [names for names in (likely, list(found)) if names] if len(likely) < len(found) else [likely]


def _with_numbers(way: Unfolded, found: dict[str, Container], names: Sequence[str]) -> Unfolded | None:
    """The same target with single numbers for the leaves of some containers; None where all have documented shapes.

    A search tries one argument after the other without axes, and seldom three of them.
    """
    aliases = [alias for name in names for _, alias in found[name].leaves]
    shapes = documented_shapes(aliases, source_of(way.info.forward), way.info.documentation)
    free = [alias for alias in aliases if alias not in shapes]
    if not free:
        return None
    said = "\n".join([way.info.documentation, *(f"{alias}: scalar" for alias in free)])
    parameters = tuple(replace(p, annotation="Tensor") if p.name in free else p for p in way.info.parameters)
    return replace(way, info=replace(way.info, parameters=parameters, documentation=said), are_numbers=True)
