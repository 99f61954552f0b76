"""Settings that one argument holds: the entries of a dict, dataclass or tuple, and the members of an enumeration."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from enum import Enum
from typing import Any

from gradcli.backends.tensor.containers import container_leaves, rebuilt_container
from gradcli.cases import Argument
from gradcli.checks.other_points.numbers import changes_in_order, values_to_try
from gradcli.checks.other_points.tuples import MOST_NUMBERS
from gradcli.frozen import dataclass

_MOST = 8
"""Settings of one argument, and members of an enumeration, that are tried."""
_ONE_CODE = frozenset(("inplace",))
"""Names of flags that change who owns the memory, and not what is computed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """A flag, number or member of an enumeration: the one at `place` of those that `holder` has, called by their keys.

    The holder may be the setting itself.
    """

    holder: Argument
    entries: tuple[Argument, ...]
    place: int

    @property
    def entry(self) -> Argument:
        """The setting as an argument."""
        return self.entries[self.place]

    @property
    def tries_all(self) -> bool:
        """Whether each other value is tried, and not only the first that forward accepts: each has code of its own."""
        return isinstance(self.entry.value, Enum)

    def others(self, arguments: Sequence[Argument]) -> Iterator[tuple[Any, Argument]]:
        """Its other values, each with the holder that has it; numbers stay in order."""
        for changes in self._changes(arguments):
            leaves = [changes.get(place, each.value) for place, each in enumerate(self.entries)]
            yield changes[self.place], replace(self.holder, value=rebuilt_container(self.holder.value, leaves))

    def _changes(self, arguments: Sequence[Argument]) -> Sequence[Mapping[int, Any]]:
        value = self.entry.value
        if isinstance(value, Enum):
            return [{self.place: each} for each in type(value) if each is not value][:_MOST]
        if isinstance(value, bool):
            return [] if self.entry.name.lower() in _ONE_CODE else [{self.place: not value}]
        values = values_to_try(self.entry, [*arguments, *self.entries])
        return changes_in_order(self.place, values, self.entries)


def settings_of(argument: Argument) -> list[Setting]:
    """The settings that an argument holds, or the one that it is as a member of an enumeration; none if it was given.

    A plain tuple or list holds settings if these are of several types, or flags; else it is data, or sizes.
    """
    if argument.is_tensor or argument.fixed:
        return []
    leaves = container_leaves(argument.value)
    fields = getattr(argument.value, "_fields", None)
    if isinstance(argument.value, tuple | list) and fields is None and not _are_settings([leaf for _, leaf in leaves]):
        return []
    kinds = (Enum,) if not any(path for path, _ in leaves) else (Enum, bool, int, float)
    entries = tuple(
        Argument(name=_name(path, fields) or argument.name, value=leaf, is_tensor=False) for path, leaf in leaves
    )
    places = [place for place, each in enumerate(entries) if isinstance(each.value, kinds)]
    return [Setting(holder=argument, entries=entries, place=place) for place in places[:_MOST]]


def _are_settings(leaves: Sequence[object]) -> bool:
    types = {type(leaf) for leaf in leaves}
    return len(leaves) <= MOST_NUMBERS and (len(types) > 1 or all(issubclass(each, bool | Enum) for each in types))


def _name(path: str, fields: Sequence[str] | None) -> str:
    """The key or field at the end of a path such as `['alpha']`; empty for a plain place."""
    place = re.fullmatch(r"\[(\d+)\]", path)
    if place is not None and fields is not None:
        return fields[int(place[1])]
    named = re.search(r"([A-Za-z_]\w*)(?:'\])?$", path)
    return "" if named is None else named[1]
