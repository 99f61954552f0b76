"""Modules while a trace runs: their hooks get stand-ins before every call, and direct calls of forward are noticed."""

import functools
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from types import FrameType
from typing import Any, final

from gradcli.traces import HookRegistration, SourceSite
from gradcli.tracing.attributes import Patches
from gradcli.tracing.hooks import HookLog, HookStandIn
from gradcli.tracing.names import NameTable
from gradcli.tracing.reading import Lens, maker_of
from gradcli.tracing.sites import (
    is_users_function,
    name_of_function,
    of_user,
    site_of_frame,
    site_of_function,
    users_frame,
)

_DICTS = {
    "_forward_pre_hooks": "module-forward-pre",
    "_forward_hooks": "module-forward",
    "_backward_pre_hooks": "module-backward-pre",
    "_backward_hooks": "module-full",
}


@final
@dataclass(slots=True)
class ModuleWatch:
    """Replaces the call of every module for the duration of a trace."""

    lens: Lens
    log: HookLog
    names: NameTable
    patches: Patches
    known: dict[int, Any] = field(default_factory=dict)
    called: set[int] = field(default_factory=set)
    direct: dict[int, SourceSite | None] = field(default_factory=dict)
    replaced: dict[int, tuple[Any, SourceSite | None]] = field(default_factory=dict)
    _running: list[Any] = field(default_factory=list)
    _paths: list[str] = field(default_factory=list)
    _parts: dict[int, dict[int, str]] = field(default_factory=dict)

    def install(self) -> None:
        """Start watching calls of modules."""
        kind = self.lens.module_type
        call: Callable[..., Any] = kind.__call__

        def watched_call(module: Any, *args: Any, **keywords: Any) -> Any:
            return self._called(call, module, args, keywords)

        make: Callable[..., None] = vars(kind)["__init__"]

        @functools.wraps(make)
        def watched_init(module: Any, *args: Any, **keywords: Any) -> None:
            make(module, *args, **keywords)
            self.known[id(module)] = module

        place: Callable[..., None] = kind.__setattr__

        @functools.wraps(place)
        def watched_set(module: Any, name: str, value: Any) -> None:
            parameters = vars(module).get("_parameters")
            before = parameters.get(name) if isinstance(parameters, dict) else None
            place(module, name, value)
            if before is not None and before is not value:
                self.replaced[id(before)] = before, site_of_frame(users_frame(sys._getframe(1)))

        self.patches.attribute(kind, "__setattr__", watched_set)
        self.patches.attribute(kind, "__call__", functools.wraps(call)(watched_call))
        self.patches.attribute(kind, "__init__", watched_init)

    def add(self, module: Any) -> None:
        """Watch a module and its parts."""
        self.known.update({id(part): part for part in module.modules()})

    def _called(self, call: Callable[..., Any], module: Any, args: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
        if not self._running:
            self.names.add_module("", module)
            self.add(module)
        self.known.setdefault(id(module), module)
        self.called.add(id(module))
        stand_ins = self._stand_in(module)
        self._paths.append(self._path(module))
        self._running.append(module)
        try:
            result = call(module, *args, **keywords)
        finally:
            self._running.pop()
            self._paths.pop()
        self._note_last_node(stand_ins, args, result)
        return result

    def clear(self) -> None:
        """Release every module."""
        self.known.clear()
        self.replaced.clear()
        self.direct.clear()

    def replaced_at(self, parameter: Any) -> SourceSite | None:
        """Where the program replaced this parameter of a module by a different one."""
        return self.replaced.get(id(parameter), (None, None))[1]

    def running_path(self) -> str | None:
        """The module that is being called, as a path from the outermost one: Net.encoder.0."""
        return self._paths[-1] if self._paths else None

    def _path(self, module: Any) -> str:
        if not self._running:
            return type(module).__name__
        name = self._name_within(self._running[-1], module) or type(module).__name__
        return f"{self._paths[-1]}.{name}"

    def _name_within(self, outer: Any, module: Any) -> str | None:
        """The path of a module below another that calls it; looked up again if the module was added later."""
        known = self._parts.get(id(outer), {})
        if id(module) not in known:
            known = self._parts[id(outer)] = {id(part): path for path, part in outer.named_modules()}
        return known.get(id(module))

    def _stand_in(self, module: Any) -> list[HookStandIn]:
        """Put stand-ins in place of this module's hooks; those of the legacy kind are returned."""
        legacy = []
        for entries, kind in _hooks_of(module):
            for key, hook in list(entries.items()):
                made = self.log.stand_in(hook, kind, module)
                if made is not None:
                    self.patches.entry(entries, key, made)
            if kind == "module-legacy":
                legacy = [hook for hook in entries.values() if isinstance(hook, HookStandIn)]
        return legacy

    def _note_last_node(self, legacy: list[HookStandIn], args: Any, result: Any) -> None:
        """If the module recorded several operations, name the last one: a legacy hook sees only that."""
        if not legacy:
            return
        node = next((n for t in self.lens.tensors_in(result) if (n := maker_of(t)) is not None), None)
        if node is None:
            return
        inside = {maker_of(t) for t in self.lens.tensors_in(args)} | {None}
        more = any(target not in inside and target.next_functions for target, _ in node.next_functions)
        for hook in legacy:
            hook.last_node = type(node).__name__ if more else None

    def forward_returned(self, frame: FrameType) -> None:
        """Notice that the user called `forward` directly, which skips hooks: no module of this call is running."""
        caller = frame.f_back
        if caller is None or not frame.f_code.co_argcount or not of_user(caller.f_code.co_filename):
            return
        module = frame.f_locals.get(frame.f_code.co_varnames[0])
        if not isinstance(module, self.lens.module_type) or (self._running and self._running[-1] is module):
            return
        self.known.setdefault(id(module), module)
        self.direct.setdefault(id(module), site_of_frame(caller))
        if not self._running:
            self.names.add_module("", module)

    def registrations(self) -> list[HookRegistration]:
        """The hooks registered on modules, including those registered after the last forward."""
        found = []
        for key, module in self.known.items():
            for entries, kind in _hooks_of(module):
                for hook in list(entries.values()):
                    if isinstance(hook, HookStandIn) or is_users_function(hook):
                        found.append(self._registration(key, module, kind, hook))
        gone = [made for made in self.log.stand_ins if made.removed and made.kind.startswith("module")]
        return found + [self._registration(id(made.owner), made.owner, made.kind, made) for made in gone]

    def removing(self, handle: Any, site: SourceSite | None) -> None:
        """Note that a handle's hook is being removed, also if it has no stand-in yet."""
        if self.log.removing(handle, site):
            return
        entries: Any = handle.hooks_dict_ref() if hasattr(handle, "hooks_dict_ref") else None
        for module in list(self.known.values()) if entries is not None else ():
            for own, kind in _hooks_of(module):
                hook = own.get(handle.id) if own is entries else None
                made = self.log.stand_in(hook, kind, module)
                if made is not None:
                    made.removed, made.removed_at = True, site

    def _registration(self, key: int, module: Any, kind: str, hook: Any) -> HookRegistration:
        stood_in = isinstance(hook, HookStandIn)
        return HookRegistration(
            kind=kind,
            owner=hook.owner_class if module is None else self.names.module_name(module),
            function=hook.function if stood_in else name_of_function(hook),
            site=hook.site if stood_in else site_of_function(hook),
            calls=hook.calls if stood_in else 0,
            after_forward=not stood_in and key in self.called,
            owner_called=key in self.called,
            forward_called_directly_at=self.direct.get(key),
            removed=stood_in and hook.removed,
            removed_at=hook.removed_at if stood_in else None,
        )


def _hooks_of(module: Any) -> list[tuple[Any, str]]:
    """The module's dicts of hooks, each with the kind of its hooks."""
    kinds = dict(_DICTS)
    if module._is_full_backward_hook is False:
        kinds["_backward_hooks"] = "module-legacy"
    return [(getattr(module, attribute), kind) for attribute, kind in kinds.items()]
