"""Which frameworks a callable uses, in its own code or in what it calls; nothing is run or imported for it."""

import dis
import functools
import inspect
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any, final

from gradcli.backends.owners import FRAMEWORKS, framework_of_own, frameworks_among, owner_of
from gradcli.frozen import dataclass
from gradcli.sources import names_in

Names = frozenset[str]
"""What the code that refers to a value names: of a module or an object only these attributes count."""

_RUN_BY_CALLS = frozenset({"__init__", "__post_init__", "__new__", "__call__"})
_WITHOUT_FRAMEWORK = ((), ("numpy",))
_MOST_VALUES = 5_000
"""Visited for one callable; functions of optax and jaxopt reach JAX within 40."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reached:
    """The backends that a callable's own code names, and differentiating ones that are named in what it calls.

    Of several in `own`, those of the user's Functions come first: a Function given tensors of another framework runs
    as if it had no backward. NumPy is among them only where no framework is.
    """

    own: tuple[str, ...]
    further: tuple[str, ...]


def reached_by(target: Callable[..., Any]) -> Reached:
    """What the callable belongs to by its home and its own names; by what it calls where that names no framework."""
    own = _own(target)
    if len(own) > 1:
        first = _nearest(target, framework_of_own)
        own = (*(name for name in own if name in first), *(name for name in own if name not in first))
    return Reached(own=own, further=_nearest(target, owner_of) if own in _WITHOUT_FRAMEWORK else ())


def module_values(target: Callable[..., Any]) -> list[object]:
    """The globals of the module that a callable was defined in."""
    code = _code_of(_unwrapped(target))
    return [] if code is None else list(code.__globals__.values())


def _unwrapped(target: Callable[..., Any]) -> Any:
    function = inspect.unwrap(target)
    while isinstance(function, functools.partial):
        function = inspect.unwrap(function.func)
    return function


def _code_of(function: Any) -> FunctionType | None:
    """The Python function that runs when `function` is called, None for one without."""
    if not inspect.isfunction(function):
        function = getattr(function, "__func__", inspect.getattr_static(type(function), "__call__", None))
    return function if inspect.isfunction(function) else None


def _own(target: Callable[..., Any]) -> tuple[str, ...]:
    """The backends that a callable belongs to itself, or that the names which its code uses belong to."""
    function = _unwrapped(target)
    known: list[object] = []
    if not inspect.isfunction(function):
        # A built-in function names its module, a method without code the class or the object that has it.
        known = [*type(function).__mro__, function]
        known += [getattr(function, name, None) for name in ("__self__", "__objclass__")]
    code = _code_of(function)
    return frameworks_among([*known, *(() if code is None else (value for value, _ in _in_function(code)))])


def _nearest(target: Callable[..., Any], owner: Callable[[object], str | None]) -> tuple[str, ...]:
    """The frameworks nearest to a callable, as `owner` names them: in what its code refers to, what that does..."""
    level: list[tuple[object, Names]] = [(target, frozenset())]
    seen: set[tuple[int, Names]] = set()
    while level and len(seen) < _MOST_VALUES:
        fresh = [each for each in level if (id(each[0]), each[1]) not in seen]
        seen |= {(id(value), names) for value, names in fresh}
        owned = {owner(value) for value, _ in fresh}
        if found := tuple(name for name in FRAMEWORKS if name in owned):
            return found
        others = [(value, names) for value, names in fresh if owner_of(value) is None and not is_pythons(value)]
        level = [each for value, names in others for each in references(value, names)]
    return ()


def references(value: object, names: Names) -> Iterator[tuple[object, Names]]:
    """What a value refers to, as far as the code that named it asks for these names."""
    if isinstance(value, functools.partial):
        yield from ((part, names) for part in (value.func, *value.args, *value.keywords.values()))
    elif isinstance(value, MethodType):
        yield from ((value.__func__, names), (value.__self__, names))
    elif isinstance(value, FunctionType):
        yield from _in_function(value)
        yield value.__dict__.get("__wrapped__"), names
    elif isinstance(value, ModuleType):
        yield from ((each, names) for name, each in list(vars(value).items()) if name in names)
    elif isinstance(value, Mapping):
        yield from ((each, names) for each in list(value.values()))
    elif isinstance(value, list | tuple | set | frozenset):
        yield from ((each, names) for each in list(value))
    elif isinstance(value, property | classmethod | staticmethod | functools.cached_property):
        yield getattr(value, "fget", None) or getattr(value, "func", None) or getattr(value, "__func__", None), names
    else:
        yield from _in_object(value, names)


def _in_function(function: FunctionType) -> Iterator[tuple[object, Names]]:
    """The values that a function's code names: of its surroundings, its module, its defaults and its own imports."""
    codes = list(_codes(function.__code__))
    read, others = (frozenset[str]().union(*each) for each in zip(*map(names_in, codes), strict=True))
    known = [function.__globals__[name] for name in read if name in function.__globals__]
    known += [*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()]
    known += [cell.cell_contents for cell in function.__closure__ or () if _is_filled(cell)]
    known += [each for code in codes for name in _imports(code) for each in (_Imported(name), sys.modules.get(name))]
    yield from ((value, others) for value in known)


def _in_object(value: object, names: Names) -> Iterator[tuple[object, Names]]:
    """The attributes of a class that are named or run when it is called; of an instance, what it holds as well."""
    if not isinstance(value, type):
        yield from ((each, names) for each in list(_held(value).values()))
    for each in value.__mro__ if isinstance(value, type) else type(value).__mro__:
        if not is_pythons(each):
            yield from ((v, names) for name, v in list(vars(each).items()) if name in names | _RUN_BY_CALLS)


def _held(value: object) -> dict[str, object]:
    """The attributes of an instance, whatever its class makes of looking them up."""
    try:
        held = object.__getattribute__(value, "__dict__")
    except AttributeError:  # it may be a record with slots
        return {each.name: getattr(value, each.name, None) for each in fields(value)} if is_dataclass(value) else {}
    return held if isinstance(held, dict) else {}


def is_pythons(value: object) -> bool:
    """Whether a module, a class or a function is of the standard library, which refers to no framework."""
    home = value.__name__ if isinstance(value, ModuleType) else getattr(value, "__module__", None)
    return isinstance(value, ModuleType | type | FunctionType) and _package(home) in sys.stdlib_module_names


def _package(home: object) -> str:
    return str(home).partition(".")[0]


def _codes(code: CodeType) -> Iterator[CodeType]:
    """The code of a function, and of those inside it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)


@functools.lru_cache(maxsize=_MOST_VALUES)
def _imports(code: CodeType) -> tuple[str, ...]:
    """The modules that code imports when it runs."""
    module, found = "", list[str]()
    for step in dis.get_instructions(code):
        if step.opname == "IMPORT_NAME":
            module = step.argval
            found.append(module)
        elif step.opname == "IMPORT_FROM":
            found.append(f"{module}.{step.argval}")
    return tuple(found)


def _is_filled(cell: Any) -> bool:
    try:
        cell.cell_contents  # noqa: B018 - an empty cell raises
    except ValueError:
        return False
    return True


@final
class _Imported:
    """A module that code imports when it runs: it stands for its package, whether it has been imported yet or not."""

    def __init__(self, name: str) -> None:
        self.__module__ = name
