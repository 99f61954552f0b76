"""Which argument each returned gradient belongs to: by names where these are known, else by order and shape."""

import itertools
from collections.abc import Collection, Mapping, Sequence
from typing import Any, final

import numpy as np

from gradcli.backends.arrays.trees import Trees, leaf_names
from gradcli.backends.numpy.claims import floating_positions, is_number, needed_positions
from gradcli.backends.numpy.names import argument_meant, arguments_meant, keys_meant, may_lack_gradients
from gradcli.backends.tensor.containers import container_leaves, rebuilt_container
from gradcli.cases import Argument
from gradcli.frozen import dataclass

_DATA = frozenset(
    ("X", "x", "Y", "y", "t", "T", "A", "data", "inputs", "targets", "target", "labels", "features", "xs", "ys")
)
"""Arguments that a loss seldom has a gradient for, where it has one for a later argument."""
_MOST_COMBINATIONS = 1_000


class ArrayTrees(Trees):
    """Lists, tuples, dicts and dataclasses of arrays."""

    def leaves(self, value: object) -> list[tuple[str, Any]]:
        """The leaves with paths as one writes them."""
        return container_leaves(value)

    def rebuilt(self, value: object, leaves: Sequence[Any]) -> Any:
        """The same container around other leaves."""
        return rebuilt_container(value, leaves)

    def adopted(self, name: str, leaf: object) -> Argument:
        """Arrays are inputs; a number in a container is a constant."""
        if isinstance(leaf, np.ndarray) and leaf.dtype.kind in "biufc":
            return Argument(name=name, value=np.array(leaf), is_tensor=True, requires_grad=leaf.dtype.kind in "fc")
        return Argument(name=name, value=leaf, is_tensor=False)

    def is_input(self, leaf: Argument) -> bool:
        """Every array, so that each call gets a copy."""
        return leaf.is_tensor


TREES = ArrayTrees()


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """An argument of the function with the positions of its arrays: its own, or those of a container's leaves.

    `paths` are the leaves' paths in the container, empty for an array.
    """

    name: str
    positions: tuple[int, ...]
    paths: tuple[str, ...] = ()


def units_of(arguments: Sequence[Argument]) -> tuple[Unit, ...]:
    """The arguments that the function itself takes."""
    by_name = {argument.name: position for position, argument in enumerate(arguments)}
    inside = {name for argument in arguments for name in leaf_names(argument, TREES)}
    made = []
    for position, argument in enumerate(arguments):
        if argument.name in inside and argument.is_tensor:
            continue
        names = [name for name in leaf_names(argument, TREES) if name in by_name]
        if names:
            paths = tuple(name[len(argument.name) :] for name in names)
            made.append(Unit(name=argument.name, positions=tuple(by_name[n] for n in names), paths=paths))
        else:
            made.append(Unit(name=argument.name, positions=(position,)))
    return tuple(made)


def placed(
    returned: object,
    arguments: Sequence[Argument],
    needed: Sequence[int] | None = None,
    *,
    names: Sequence[str | None] = (),
    by_name: bool = False,
    data: Collection[str] = (),
) -> dict[int, object] | int:
    """What was returned for each argument, by position; the number of values where it fits no arguments.

    A dict has the names of arguments for its keys, or those of gradients, as `dw`. A tuple (or a list of arrays) has
    one value for each argument, one for each at the `needed` positions, or one for each floating array; or those that
    `names` stand for. Anything else is the derivative by the first array that is needed.

    Args:
        returned: by the derivative.
        arguments: of the function, leaves included.
        needed: positions of the arrays that a gradient may be returned for each.
        names: of the returned values in the derivative's source, if they are known.
        by_name: whether names come before the order also where there is a value for each argument.
        data: the arguments that are known to be data, for which fewer values may be returned.

    Raises:
        ValueError: a dict whose keys name none of the arguments.
    """
    units = units_of(arguments)
    if isinstance(returned, Mapping):
        return _by_keys(returned, units)
    whole = _container_for(returned, units)
    if whole is not None:
        return _spread([whole], [returned])
    floating, needed = floating_positions(arguments), needed_positions(arguments) if needed is None else needed
    several = isinstance(returned, tuple) or (isinstance(returned, list) and len(floating) > 1 and is_nested(returned))
    if not several or not isinstance(returned, tuple | list):
        stacked = _stacked(returned, units, arguments, needed, None if by_name else data)
        name = names[0] if len(names) == 1 else None
        return stacked or _single(returned, units, arguments, needed, name, choose=by_name)
    return _several(returned, units, arguments, needed, names, by_name=by_name, data=data)


def _several(
    returned: Sequence[object],
    units: Sequence[Unit],
    arguments: Sequence[Argument],
    needed: Sequence[int],
    names: Sequence[str | None],
    *,
    by_name: bool,
    data: Collection[str],
) -> dict[int, object] | int:
    """Values of several arguments: of those that their names stand for, else in order."""
    floating = floating_positions(arguments)
    if len(floating) == 1 and len(returned) != 1 and not is_nested(returned):
        return {floating[0]: returned}
    own = _units_at(units, floating)
    meant = arguments_meant(names, [u.name for u in own]) if len(names) == len(returned) else None
    if meant is not None and (by_name or len(returned) != len(units)):
        return _spread([next(u for u in units if u.name == name) for name in meant], returned)
    for chosen in (units, _units_at(units, needed), _units_at(units, floating)):
        if len(chosen) == len(returned):
            return _spread(chosen, returned)
    numbers = [i for i in floating if arguments[i].value.shape == () and not _unit_at(units, i).paths]
    if len(numbers) == len(returned) and all(is_number(value) for value in returned):
        return dict(zip(numbers, returned, strict=True))
    return _of_their_shapes(returned, units, arguments, floating, None if by_name else data)


def is_nested(values: Sequence[object]) -> bool:
    """Whether there is an array or None among the values, rather than numbers alone."""
    return any(value is None or isinstance(value, np.ndarray | list | tuple | dict) for value in values)


def order_note(found: Mapping[int, object] | int, arguments: Sequence[Argument], returned: object) -> str | None:
    """How the values of a tuple or a single one were read, where that is not by the order of the arguments alone."""
    if isinstance(found, int) or isinstance(returned, Mapping) or not found:
        return None
    floating = floating_positions(arguments)
    names = ", ".join(arguments[i].name for i in found)
    if isinstance(returned, np.ndarray) and len(found) > 1:
        return f"the entries of the gradient were read as those of {names}, in this order"
    if list(found) == floating[: len(found)]:
        return None
    return f"the gradients were read as those of {names}, in this order"


def left_out_note(found: Mapping[int, object] | int, arguments: Sequence[Argument], returned: object) -> str | None:
    """Which arguments the derivative returned no gradient for, numbers included where it returns several values."""
    if isinstance(found, int):
        return None
    numbers = [i for i, a in enumerate(arguments) if isinstance(a.value, float) and isinstance(returned, tuple | list)]
    left = sorted({*needed_positions(arguments), *numbers}.difference(found))
    whose = "its gradient was" if len(left) == 1 else "their gradients were"
    names = " and ".join(arguments[i].name for i in left)
    return f"no gradient is returned for {names}, so {whose} not checked" if left else None


def _by_keys(returned: Mapping[Any, object], units: Sequence[Unit]) -> dict[int, object]:
    meant = keys_meant(returned, [unit.name for unit in units])
    by_name = {unit.name: unit for unit in units}
    made: dict[int, object] = {}
    for key, name in meant.items():
        made |= _spread([by_name[name]], [returned[key]])
    held = [pair for unit in units if unit.paths for pair in zip(unit.paths, unit.positions, strict=True)]
    leaves = {path[2:-2]: position for path, position in held if path.startswith("['")}
    inside = keys_meant({key: None for key in returned if key not in meant}, leaves)
    made |= {leaves[name]: returned[key] for key, name in inside.items() if leaves[name] not in made}
    if returned and not made:
        keys, known = ", ".join(map(repr, returned)), ", ".join(unit.name for unit in units)
        raise ValueError(
            f"the derivative returned a dict with the keys {keys}, which name none of the arguments {known}: name the "
            "gradients after the arguments, as w or dw"
        )
    return made


def _spread(units: Sequence[Unit], values: Sequence[object]) -> dict[int, object]:
    """The values by the positions of arrays, those of containers leaf by leaf."""
    made: dict[int, object] = {}
    for unit, value in zip(units, values, strict=True):
        if not unit.paths:
            made[unit.positions[0]] = value
            continue
        found = dict(container_leaves(value)) if value is not None else {}
        if isinstance(value, Mapping) and not set(found) & set(unit.paths):
            made |= _by_keys(value, [unit])
            continue
        made |= {at: found.get(path) for path, at in zip(unit.paths, unit.positions, strict=True)}
    return made


def _container_for(returned: object, units: Sequence[Unit]) -> Unit | None:
    """The container that was returned as a whole, with a gradient in each leaf's place."""
    if not isinstance(returned, tuple | list):
        return None
    paths = {path for path, _ in container_leaves(returned)}
    return next((unit for unit in units if unit.paths and set(unit.paths) == paths), None)


def _single(
    returned: object,
    units: Sequence[Unit],
    arguments: Sequence[Argument],
    needed: Sequence[int],
    name: str | None,
    *,
    choose: bool,
) -> dict[int, object]:
    """One value: of the argument that its name stands for, else of the first; of data only if its shape is the data's.

    `def loss(X, y, w): ... return loss, gradient` gives the gradient by w.
    """
    if not needed:
        return {}
    meant = argument_meant(name, [arguments[position].name for position in needed])
    if meant is not None:
        return {next(position for position in needed if arguments[position].name == meant): returned}
    shape = np.shape(returned) if isinstance(returned, np.ndarray | np.number | float) else None
    first = needed[0]
    if not choose or shape is None or arguments[first].value.shape == shape or len(units) == 1:
        return {first: returned}
    for position in needed:
        if arguments[position].value.shape == shape:
            return {position: returned}
        if arguments[position].name not in _DATA:
            break
    return {first: returned}


def _stacked(
    returned: object,
    units: Sequence[Unit],
    arguments: Sequence[Argument],
    needed: Sequence[int],
    data: Collection[str] | None,
) -> dict[int, object]:
    """The entries of one vector for as many numbers: `np.array([by_a, by_b])`, where nothing but data is left out."""
    shapes = {position: arguments[position].value.shape for position in needed}
    numbers = [position for position, shape in shapes.items() if not shape and not _unit_at(units, position).paths]
    vector = returned if isinstance(returned, np.ndarray | list) else ()
    if len(numbers) < 2 or np.shape(vector) != (len(numbers),) or np.shape(vector) in shapes.values():
        return {}
    left = {arguments[position].name for position in needed if position not in numbers}
    others = [argument.name for position, argument in enumerate(arguments) if position not in needed]
    return dict(zip(numbers, vector, strict=True)) if _may_be_left_out(left, data, others) else {}


def _may_be_left_out(left: Collection[str], data: Collection[str] | None, others: Collection[str]) -> bool:
    """Whether fewer values may be returned than there are arguments: with no `data` known, names alone tell data."""
    return _DATA.issuperset(left) if data is None else may_lack_gradients(left, data, others)


def _of_their_shapes(
    returned: Sequence[object],
    units: Sequence[Unit],
    arguments: Sequence[Argument],
    floating: Sequence[int],
    data: Collection[str] | None,
) -> dict[int, object] | int:
    """The values in order, left out only data: of the choices the one that most shapes fit; their number if none does.

    A value of a wrong shape stays with the argument in its place, and is not taken for the gradient of another one.
    Without `data` that are known, all is data that has a usual name of data.
    """
    others = [argument.name for position, argument in enumerate(arguments) if position not in floating]
    able = [position for position in floating if not _unit_at(units, position).paths]
    most = 0
    best: list[tuple[int, ...]] = []
    for chosen in itertools.islice(itertools.combinations(able, len(returned)), _MOST_COMBINATIONS):
        left = {arguments[position].name for position in able if position not in chosen}
        if not _may_be_left_out(left, data, others):
            continue
        pairs = zip(chosen, returned, strict=True)
        fits = sum(np.asarray(value).shape == arguments[i].value.shape for i, value in pairs)
        if fits >= most:
            best = [chosen] if fits > most else [*best, chosen]
            most = fits
    unique = len(best) == 1 and 2 * most >= len(returned)
    return dict(zip(best[0], returned, strict=True)) if unique else len(returned)


def _unit_at(units: Sequence[Unit], position: int) -> Unit:
    return next(unit for unit in units if position in unit.positions)


def _units_at(units: Sequence[Unit], positions: Sequence[int]) -> list[Unit]:
    return [unit for unit in units if any(position in unit.positions for position in positions)]
