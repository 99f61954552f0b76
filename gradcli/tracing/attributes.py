"""Attributes and dict entries replaced temporarily, and restored exactly."""

import sys
from collections.abc import Mapping, MutableMapping
from types import ModuleType, TracebackType
from typing import Any, final

from gradcli.tracing.sites import of_user

_ABSENT = object()


@final
class Patches:
    """A context that undoes every replacement made through it, last first, also after an exception."""

    def __init__(self) -> None:
        self._attributes: list[tuple[Any, str, Any]] = []
        self._entries: list[tuple[MutableMapping[Any, Any], Any, Any, Any]] = []
        self._imported: dict[int, tuple[Any, object]] = {}

    def __enter__(self) -> "Patches":
        return self

    def attribute(self, owner: Any, name: str, value: object) -> None:
        """Set `owner.name` to `value` until the context ends."""
        self._attributes.append((owner, name, vars(owner).get(name, _ABSENT)))
        setattr(owner, name, value)

    def everywhere(self, owner: Any, name: str, value: object) -> None:
        """Replace `owner.name`, and with `in_users_modules` what the user's modules imported under any name."""
        self.imported({getattr(owner, name): value})
        self.attribute(owner, name, value)

    def imported(self, replaced: Mapping[Any, object]) -> None:
        """What `in_users_modules` replaces: each key by its value."""
        self._imported |= {id(original): (original, value) for original, value in replaced.items()}

    def in_users_modules(self) -> None:
        """Replace what the user's modules imported by name; once for all, as there may be thousands of modules."""
        for module in users_modules():
            if self._imported.keys().isdisjoint(map(id, vars(module).values())):
                continue
            for name, held in list(vars(module).items()):
                if id(held) in self._imported:
                    self.attribute(module, name, self._imported[id(held)][1])

    def entry(self, entries: MutableMapping[Any, Any], key: Any, value: object) -> None:
        """Put `value` in place of an entry until the context ends, unless the user removes the entry before."""
        self._entries.append((entries, key, entries[key], value))
        entries[key] = value

    def undo_entries(self) -> None:
        """Restore the dict entries that still hold the value put in."""
        while self._entries:
            entries, key, original, value = self._entries.pop()
            if entries.get(key) is value:
                entries[key] = original

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.undo_entries()
        while self._attributes:
            owner, name, original = self._attributes.pop()
            if original is _ABSENT:
                delattr(owner, name)
            else:
                setattr(owner, name, original)


def users_modules() -> list[ModuleType]:
    """The imported modules of the user, with their files."""
    return [
        module
        for module in list(sys.modules.values())
        if type(module) is ModuleType and of_user(str(vars(module).get("__file__", "")))
    ]
