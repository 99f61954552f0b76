"""What keeps tensors alive: the variables, attributes, containers and closures that lead to them."""

import gc
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from types import CodeType, FrameType, ModuleType
from typing import Any, final

from gradcli.backends.attribution import shown_path
from gradcli.tracing.memory.peak import Key
from gradcli.tracing.reading import Lens
from gradcli.tracing.sites import OWN_FOLDER, of_user

_STEPS = 5
"""Attribute, list, dict, list, tensor: what lies behind more containers is not looked for."""


@final
@dataclass(slots=True)
class _Found:
    """A live object on the way from the program's names to tensors, with the storages that it leads to.

    `parts` are those of a dict by key: it may be the attributes of an object, whose names the keys then are.
    """

    held: Any
    keys: set[Key] = field(default_factory=set)
    parts: dict[str, set[Key]] = field(default_factory=dict)


@final
@dataclass(slots=True)
class Holders:
    """Finds the owners of storages among the live objects, under the program's names for them.

    `frames` are the program's running frames; the locals of a frame that has ended are not counted.
    """

    lens: Lens
    frames: Iterable[FrameType]
    _locals: dict[int, tuple[str, str]] = field(default_factory=dict)

    def of(self, wanted: Iterable[Key]) -> dict[str, set[Key]]:
        """The holders by name, each with the storages that it leads to.

        The objects that refer to a whole level are found together: each level takes one pass over the heap.
        """
        self._name_locals()
        level = self._tensors(set(wanted))
        found: dict[str, set[Key]] = {}
        for _ in range(_STEPS):
            for place, entry in level.items():
                if place in self._locals:
                    name, where = self._locals[place]
                    found.setdefault(f"`{name}`{where}", set()).update(entry.keys)
            above: dict[int, _Found] = {}
            for owner in gc.get_referrers(*[entry.held for entry in level.values()]) if level else ():
                if not isinstance(owner, FrameType | CodeType):
                    self._look_at(owner, level, above, found)
            level = above
        return found

    def _tensors(self, wanted: set[Key]) -> dict[int, _Found]:
        kind = self.lens.tensor_type
        live = [each for each in gc.get_objects() if issubclass(type(each), kind)]
        keys = {id(tensor): self.lens.storage(tensor)[0] for tensor in live}
        return {id(t): _Found(t, {keys[id(t)]}) for t in live if keys[id(t)] in wanted}

    def _name_locals(self) -> None:
        for frame in self.frames:
            code = frame.f_code
            if of_user(code.co_filename) and code.co_name != "<module>":
                where = f" in {code.co_name} ({shown_path(code.co_filename)}:{frame.f_lineno})"
                for name, value in frame.f_locals.items():
                    self._locals.setdefault(id(value), (name, where))

    def _look_at(
        self, owner: Any, level: dict[int, _Found], above: dict[int, _Found], found: dict[str, set[Key]]
    ) -> None:
        """Note the names that an owner has for the tensors, or search the objects that refer to it next."""
        for entry in [level[id(each)] for each in gc.get_referents(owner) if id(each) in level]:
            named = list(self._names_in(owner, entry))
            for name, keys in named:
                found.setdefault(name, set()).update(keys)
            if not named and _leads_on(owner):
                further = above.setdefault(id(owner), _Found(owner))
                further.keys.update(entry.keys)
                if isinstance(owner, dict):
                    parts = {str(key): entry.keys for key, value in owner.items() if value is entry.held}
                    further.parts.update({key: further.parts.get(key, set()) | keys for key, keys in parts.items()})

    def _names_in(self, owner: Any, entry: _Found) -> Iterator[tuple[str, set[Key]]]:
        """The program's names for what it holds in `owner`: a module, a class, or an object."""
        if isinstance(owner, dict):
            file = owner.get("__file__")
            name = _key_of(owner, entry.held) if isinstance(file, str) and of_user(file) else None
            if name is not None:
                yield f"`{name}`, a global of {shown_path(str(file))}", entry.keys
        elif isinstance(owner, type):
            parts = {name: keys for name, keys in entry.parts.items() if vars(owner).get(name) is entry.held[name]}
            yield from ((f"`{_short(owner)}.{name}`", keys) for name, keys in parts.items())
        elif isinstance(owner, self.lens.module_type) or _is_users_class(type(owner)):
            own = getattr(owner, "__dict__", {})
            name = _key_of(own, entry.held)
            parts = entry.parts if own is entry.held else {} if name is None else {name: entry.keys}
            variable, where = self._locals.get(id(owner), (None, ""))
            for part, keys in parts.items():
                text = f"`{part}` of a {_short(type(owner))}" if variable is None else f"`{variable}.{part}`{where}"
                yield text, keys


def _key_of(entries: Mapping[Any, Any], held: Any) -> str | None:
    return next((str(key) for key, value in entries.items() if value is held), None)


def _is_users_class(kind: type) -> bool:
    file = getattr(sys.modules.get(kind.__module__), "__file__", None)
    return isinstance(file, str) and of_user(file)


def _short(kind: type) -> str:
    return kind.__qualname__.rsplit("<locals>.", 1)[-1]


def _leads_on(owner: Any) -> bool:
    """Whether the objects that refer to an owner are searched as well: not for the framework's graph and the trace."""
    kind = type(owner)
    if isinstance(owner, ModuleType | type) or hasattr(kind, "next_functions"):
        return False
    file = getattr(sys.modules.get(kind.__module__), "__file__", None)
    return not (isinstance(file, str) and file.startswith(OWN_FOLDER))
