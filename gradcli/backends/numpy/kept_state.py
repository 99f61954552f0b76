"""What a method keeps on its object, or on objects and containers that belong to it, for another method to read."""

import ast
import dis
import inspect
from collections.abc import Callable, Collection, Iterator, Mapping
from types import FunctionType, MethodType, ModuleType
from typing import Any, final
from weakref import WeakKeyDictionary

import numpy as np

from gradcli.frozen import dataclass
from gradcli.sources import source_of, tree_of

_MOST_OBJECTS = 1_000
_TAKING = frozenset(("pop", "popleft", "popitem"))
_FILLING = frozenset(("append", "appendleft", "extend", "insert", "update", "setdefault", "add", "push"))
_READING = ("LOAD_ATTR", "LOAD_METHOD")
_known: "WeakKeyDictionary[FunctionType, _Uses]" = WeakKeyDictionary()


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class KeptState:
    """The attributes that a method and those it calls write, and its partner reads; `taken`: reading them ends them."""

    names: frozenset[str] = frozenset()
    taken: bool = False

    def __bool__(self) -> bool:
        return bool(self.names)


def kept_on_object(function: Callable[..., Any], gradient: Callable[..., Any]) -> KeptState:
    """What a method leaves for another method of the same object: in attributes, or in dicts and lists there.

    The methods that the two call on other objects within reach of theirs count, as those of the layers of a network.
    """
    own, other = (getattr(method, "__self__", None) for method in (function, gradient))
    if own is not other or isinstance(own, type):
        return KeptState()
    if not isinstance(function, MethodType) or not isinstance(gradient, MethodType):
        return KeptState()
    objects = list(_within_reach(own))
    before, after = (_called(m.__func__, objects) for m in (function, gradient))
    # A derivative that runs forward itself needs nothing of an earlier call, except what its partner itself writes.
    writers = [uses for one, uses in before.items() if one is function.__func__ or one not in after]
    written = frozenset[str]().union(*(uses.written for uses in writers))
    read = frozenset[str]().union(*(uses.read for uses in after.values()))
    kept = written & read
    taken = any(uses.taken & kept or (uses.stored & kept) for uses in after.values())
    return KeptState(names=kept, taken=taken)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class _Uses:
    """The names of attributes that a function stores, of those whose containers it fills or takes from, or reads."""

    stored: frozenset[str]
    filled: frozenset[str]
    taken: frozenset[str]
    read: frozenset[str]
    called: frozenset[str]
    called_attributes: frozenset[str]
    calls_objects: bool

    @property
    def written(self) -> frozenset[str]:
        return self.stored | self.filled


def _within_reach(own: object) -> Iterator[object]:
    """An object and those in its attributes, with what containers hold."""
    open_, seen = [own], set[int]()
    while open_ and len(seen) < _MOST_OBJECTS:
        found = open_.pop()
        if id(found) in seen or isinstance(found, type | ModuleType | FunctionType | np.ndarray):
            continue
        seen.add(id(found))
        if isinstance(found, Mapping):
            open_ += list(found.values())
        elif isinstance(found, list | tuple | set | frozenset):
            open_ += list(found)
        elif isinstance(held := getattr(found, "__dict__", None), dict):
            yield found
            open_ += list(held.values())


def _called(method: Any, objects: Collection[object]) -> dict[Any, _Uses]:
    """A method and the methods of these objects that it calls, directly or not, with what each uses."""
    classes = {type(found) for found in objects}
    held = {name for found in objects for name, value in vars(found).items() if type(value) in classes}
    bases = {base for cls in classes for base in cls.__mro__[1:]}
    open_, uses = [method], dict[Any, _Uses]()
    while open_:
        function = open_.pop()
        if not isinstance(function, FunctionType) or function in uses:
            continue
        known = _known.get(function)
        found = uses[function] = _known[function] = _uses_of(function) if known is None else known
        for name in (*found.called, *(("__call__",) if found.calls_objects or found.called_attributes & held else ())):
            open_ += [inspect.getattr_static(cls, name, None) for cls in classes]
            open_ += [vars(base).get(name) for base in bases if not found.called.isdisjoint(("super", base.__name__))]
    return uses


def _uses_of(function: FunctionType) -> _Uses:
    steps = list(dis.get_instructions(function.__code__))
    tree = tree_of(source_of(function))
    nodes = [] if tree is None else list(ast.walk(tree))
    aliases = {
        target.id: _chain(node.value, {})
        for node in nodes
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    calls = [node.func for node in nodes if isinstance(node, ast.Call)]
    methods = [func for func in calls if isinstance(func, ast.Attribute)]
    filled = [node.value for node in nodes if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store)]
    filled += [func.value for func in methods if func.attr in _FILLING]
    taken = [node.value for node in nodes if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Del)]
    taken += [func.value for func in methods if func.attr in _TAKING]
    return _Uses(
        stored=frozenset(step.argval for step in steps if step.opname == "STORE_ATTR"),
        filled=frozenset(name for node in filled for name in _chain(node, aliases)),
        taken=frozenset(name for node in taken for name in _chain(node, aliases)),
        read=frozenset(step.argval for step in steps if step.opname in _READING),
        called=frozenset(function.__code__.co_names),
        called_attributes=frozenset(func.attr for func in methods),
        calls_objects=any(_may_be_object(func, function.__code__.co_varnames) for func in calls),
    )


def _may_be_object(func: ast.expr, local: Collection[str]) -> bool:
    """Whether what is called may be an object: `layers[0](x)`, or `layer(x)` in a loop."""
    return isinstance(func, ast.Subscript) or (isinstance(func, ast.Name) and func.id in local)


def _chain(node: ast.expr, aliases: Mapping[str, frozenset[str]]) -> frozenset[str]:
    """The attributes in an expression such as `self.cache["x"]`; none for another kind of expression."""
    names = set[str]()
    while isinstance(node, ast.Attribute | ast.Subscript):
        if isinstance(node, ast.Attribute):
            names.add(node.attr)
        node = node.value
    return frozenset(names | aliases.get(node.id, frozenset())) if isinstance(node, ast.Name) else frozenset()
