"""Names for tensors: the caller's names, paths of parameters, locals of the traced function."""

import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import FrameType, ModuleType
from typing import Any, final

from gradcli.sources import names_in
from gradcli.tracing.reading import Lens, maker_of
from gradcli.tracing.sites import of_user

_RANK = {"input": 0, "parameter": 1, "local": 2, "attribute": 3, "result": 4}
_MANY = 64


@final
@dataclass(slots=True)
class Named:
    """A tensor under its first name, with its other names."""

    tensor: Any
    name: str
    role: str
    aliases: list[str] = field(default_factory=list)


@final
@dataclass(slots=True)
class NameTable:
    """Every tensor that has a name, by identity; the table keeps the tensors alive."""

    lens: Lens
    locals_seen: dict[str, tuple[int, Any]] = field(default_factory=dict)
    modules: dict[int, tuple[str, Any]] = field(default_factory=dict)
    unregistered: dict[int, str] = field(default_factory=dict)
    stray: list[str] = field(default_factory=list)
    _found: list[tuple[str, str, Any]] = field(default_factory=list)
    _paths: dict[int, tuple[Any, str]] = field(default_factory=dict)
    _classes: Counter[str] = field(default_factory=Counter)

    def add(self, name: str, tensor: Any, role: str) -> None:
        """Note that `tensor` is called `name`."""
        self._found.append((name, role, tensor))

    def add_module(self, name: str, module: Any) -> None:
        """Note a module; its parameters and tensor attributes are named by their path below it."""
        if id(module) not in self.modules or (name and not self.modules[id(module)][0]):
            self.modules[id(module)] = (name, module)

    def add_frame(self, frame: FrameType, depth: int) -> None:
        """Note what the locals of a frame, and the globals that its code mentions, are called.

        Where two frames use one name, that of the frame closer to the traced function (less `depth`) counts.
        """
        code = frame.f_code
        mentioned = {name: frame.f_globals[name] for name in names_in(code)[0] if name in frame.f_globals}
        for name, value in {**mentioned, **frame.f_locals}.items():
            if not name.startswith("_") and self.locals_seen.get(name, (depth,))[0] >= depth:
                self.locals_seen[name] = (depth, value)

    def clear(self) -> None:
        """Release every tensor and module."""
        self.locals_seen.clear()
        self.modules.clear()
        self.unregistered.clear()
        self._found.clear()
        self._paths.clear()

    def table(self) -> list[Named]:
        """All named tensors: inputs, parameters, locals, attributes, each tensor once."""
        entries = [*self._found, *self._of_locals(), *self._of_modules()]
        entries.sort(key=lambda entry: (_RANK[entry[1]], entry[0].startswith("self.")))
        table: dict[int, Named] = {}
        for name, role, tensor in entries:
            known = table.get(id(tensor))
            if known is None:
                table[id(tensor)] = Named(tensor=tensor, name=name, role=role)
            elif name != known.name and name not in known.aliases:
                known.aliases.append(name)
        return list(table.values())

    def data(self) -> list[Any]:
        """The named tensors that no recorded operation created."""
        return [entry.tensor for entry in self.table() if maker_of(entry.tensor) is None]

    def module_name(self, module: Any) -> str:
        """The name of a module in hook sentences: its class, or its path if several modules have the class's name."""
        kind = type(module).__name__
        if not self._paths:
            self._paths = dict(self._module_paths())
            self._classes = Counter(type(held).__name__ for held, _ in self._paths.values())
        held, path = self._paths.get(id(module), (None, kind))
        return path if held is module and self._classes[kind] > 1 else kind

    def _module_paths(self) -> Iterator[tuple[int, tuple[Any, str]]]:
        for name, (_, value) in self.locals_seen.items():
            if isinstance(value, self.lens.module_type):
                self.add_module(name, value)
        roots = self._root_modules()
        for name, root in roots:
            own = name or type(root).__name__
            for path, part in root.named_modules():
                is_clear = path and not path[0].isdigit()
                yield id(part), (part, path if is_clear and len(roots) == 1 else f"{own}.{path}" if path else own)

    def _of_locals(self) -> Iterator[tuple[str, str, Any]]:
        for name, (_, value) in self.locals_seen.items():
            if isinstance(value, self.lens.module_type):
                self.add_module(name, value)
            for label, tensor in self._labelled(name, value):
                yield label, "local", tensor
            for attribute, held in _attributes(value, self.lens):
                for label, tensor in self._labelled(f"{name}.{attribute}", held):
                    yield label, "attribute", tensor

    def _labelled(self, name: str, value: Any) -> Iterator[tuple[str, Any]]:
        if self.lens.is_tensor(value):
            yield name, value
        elif isinstance(value, tuple | list) and len(value) <= _MANY:
            yield from ((f"{name}[{i}]", v) for i, v in enumerate(value) if self.lens.is_tensor(v))
        elif isinstance(value, Mapping) and len(value) <= _MANY:
            yield from ((f"{name}[{k!r}]", v) for k, v in value.items() if self.lens.is_tensor(v))

    def _of_modules(self) -> Iterator[tuple[str, str, Any]]:
        roots = self._root_modules()
        several = len(roots) > 1
        for name, module in roots:
            prefix = f"{name or type(module).__name__}." if several else ""
            for path, parameter in module.named_parameters():
                yield prefix + path, "parameter", parameter
            for path, part in module.named_modules():
                yield from self._in_containers(prefix, path, part)
                for attribute, value in list(vars(part).items()):
                    label = f"{path}.{attribute}" if path else attribute
                    if self.lens.is_tensor(value):
                        self.unregistered[id(value)] = type(part).__name__
                    if not attribute.startswith("_"):
                        yield from ((prefix + n, "attribute", t) for n, t in self._labelled(label, value))

    def _in_containers(self, prefix: str, path: str, part: Any) -> Iterator[tuple[str, str, Any]]:
        """The unregistered parameters that a module holds in plain lists and dicts, directly or in modules."""
        for attribute, value in list(vars(part).items()):
            if attribute.startswith("_") or not isinstance(value, list | tuple | dict) or len(value) > _MANY:
                continue
            label = f"{prefix}{path}.{attribute}" if path else f"{prefix}{attribute}"
            items = value.items() if isinstance(value, dict) else enumerate(value)
            modules = [(key, held) for key, held in items if isinstance(held, self.lens.module_type)]
            kind, remedy = type(value).__name__, "Dict" if isinstance(value, dict) else "List"
            if modules:
                self.stray.append(f"{label} is a plain {kind} of modules, not an nn.Module{remedy}")
            elif any(isinstance(held, self.lens.parameter_type) for held in _values(value)):
                self.stray.append(f"{label} is a plain {kind} of parameters, not an nn.Parameter{remedy}")
            for key, held in modules:
                for name, parameter in held.named_parameters():
                    yield f"{label}[{key!r}].{name}", "parameter", parameter

    def _root_modules(self) -> list[tuple[str, Any]]:
        """Modules that are not part of another; one whose __init__ raised has no parts to list."""
        built = {key: pair for key, pair in self.modules.items() if "_modules" in vars(pair[1])}
        parts = {id(part) for _, module in built.values() for part in module.modules() if part is not module}
        return [(name, module) for key, (name, module) in built.items() if key not in parts]


def _values(container: Any) -> list[Any]:
    return list(container.values()) if isinstance(container, dict) else list(container)


def _attributes(value: Any, lens: Lens) -> list[tuple[str, Any]]:
    """The attributes of an object of a user's class; modules are handled separately."""
    kind = type(value)
    if isinstance(value, lens.module_type | lens.tensor_type | ModuleType | type) or not hasattr(value, "__dict__"):
        return []
    home = getattr(sys.modules.get(kind.__module__), "__file__", None)
    if home is None or not of_user(home):
        return []
    return [(name, held) for name, held in list(vars(value).items()) if not name.startswith("_")]
