"""Frozen dataclasses without generated code.

`dataclasses` compiles six methods for each frozen class, a third to half a millisecond a class on Python 3.11 and half
of the time that it took to import gradcli. Here the methods are closures over the fields. To make an instance takes two
or three times as long, 1 to 2 µs; what else the classes do is the same, and so is what type checkers see.
"""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, Field, FrozenInstanceError
from operator import attrgetter
from reprlib import recursive_repr
from typing import TYPE_CHECKING, Any, TypeVar

_ABSENT: Any = object()
_Class = TypeVar("_Class")

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass  # noqa: PLC0414 - the name that this module offers
else:

    def dataclass(cls=None, /, *, frozen=False, slots=False, eq=True, kw_only=False, **options):
        """`dataclasses.dataclass`; a class that is frozen, has slots and inherits no fields gets no generated code."""

        def made(plain: type) -> type:
            inherits = any(dataclasses.is_dataclass(base) for base in plain.__mro__[1:])
            if options or not frozen or not slots or inherits:
                return dataclasses.dataclass(frozen=frozen, slots=slots, eq=eq, kw_only=kw_only, **options)(plain)
            return _frozen(plain, eq=eq, kw_only=kw_only)

        return made if cls is None else made(cls)


def quickly_pickled(made: type[_Class]) -> type[_Class]:
    """Decorate a dataclass with slots of the standard library, which takes two to three times as long to pickle."""
    for name, method in _pickling(made, dataclasses.fields(made)).items():  # type: ignore[arg-type]
        setattr(made, name, method)
    return made


def _frozen(plain: type, *, eq: bool, kw_only: bool) -> type:
    own = set(vars(plain))
    made: Any = dataclasses.dataclass(init=False, repr=False, eq=False, slots=True, kw_only=kw_only)(plain)
    made.__dataclass_params__.frozen = True
    fields = dataclasses.fields(made)
    methods: dict[str, Callable[..., Any]] = {
        "__init__": _initializer(made, fields),
        "__repr__": _representation(fields),
        **_immutability(made, frozenset(field.name for field in fields)),
        **_pickling(made, fields),
        **(_comparison(fields) if eq else {}),
    }
    for name, method in methods.items():
        if name not in own or (name == "__hash__" and "__eq__" in own and vars(plain)["__hash__"] is None):
            setattr(made, name, method)
    return made  # type: ignore[no-any-return]


def _initializer(made: Any, fields: tuple[Field[Any], ...]) -> Callable[..., None]:
    """Set the fields through their slots, which knows nothing of `__setattr__`."""
    given = sorted((field for field in fields if field.init), key=lambda field: bool(field.kw_only))
    positional = tuple(getattr(made, field.name).__set__ for field in given if not field.kw_only)
    named = tuple(
        (field.name, getattr(made, field.name).__set__, field.default, field.default_factory) for field in given
    )
    others = tuple((getattr(made, f.name).__set__, f.default, f.default_factory) for f in fields if not f.init)
    has_more = hasattr(made, "__post_init__")

    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:  # noqa: N807
        count = len(args)
        if count > len(positional):
            raise TypeError(f"{made.__name__} takes {len(positional)} positional arguments, got {count}")
        for put, value in zip(positional, args, strict=False):
            put(self, value)
        given_as: Callable[[str, Any], Any] = kwargs.get
        used = 0
        for name, put, default, factory in named[count:] if count else named:
            value = given_as(name, _ABSENT)
            if value is not _ABSENT:
                used += 1
                put(self, value)
            elif default is not MISSING:
                put(self, default)
            elif factory is not MISSING:
                put(self, factory())
            else:
                raise TypeError(f"{made.__name__} needs the argument {name!r}")
        if used != len(kwargs):
            raise TypeError(_unfitting(made, kwargs, [name for name, *_ in named], count))
        for put, default, factory in others:
            if factory is not MISSING:
                put(self, factory())
            elif default is not MISSING:
                put(self, default)
        if has_more:
            self.__post_init__()

    return __init__


def _unfitting(made: Any, given: Mapping[str, object], names: Sequence[str], count: int) -> str:
    """What is wrong with arguments given by name, if the first `count` were given by position."""
    twice, unknown = [name for name in names[:count] if name in given], [name for name in given if name not in names]
    if twice:
        return f"{made.__name__} got two values for {', '.join(twice)}"
    return f"{made.__name__} has no argument {', '.join(unknown)}"


def _representation(fields: tuple[Field[Any], ...]) -> Callable[[Any], str]:
    shown = tuple(field.name for field in fields if field.repr)

    def __repr__(self: Any) -> str:  # noqa: N807
        return f"{type(self).__qualname__}({', '.join(f'{name}={getattr(self, name)!r}' for name in shown)})"

    return recursive_repr()(__repr__)


def _comparison(fields: tuple[Field[Any], ...]) -> dict[str, Callable[..., Any]]:
    compared = _values(tuple(field.name for field in fields if field.compare))
    hashed = _values(tuple(field.name for field in fields if (field.compare if field.hash is None else field.hash)))

    def __eq__(self: Any, other: object) -> bool:  # noqa: N807
        if other.__class__ is not self.__class__:
            return NotImplemented
        return bool(compared(self) == compared(other))

    def __hash__(self: Any) -> int:  # noqa: N807
        return hash(hashed(self))

    return {"__eq__": __eq__, "__hash__": __hash__}


def _values(names: tuple[str, ...]) -> Callable[[Any], Any]:
    """The values of some attributes as a tuple."""
    if len(names) > 1:
        return attrgetter(*names)
    return lambda instance: tuple(getattr(instance, name) for name in names)


def _immutability(made: type, names: frozenset[str]) -> dict[str, Callable[..., Any]]:
    def __setattr__(self: Any, name: str, value: object) -> None:  # noqa: N807
        if type(self) is made or name in names:
            raise FrozenInstanceError(f"cannot assign to field {name!r}")
        object.__setattr__(self, name, value)

    def __delattr__(self: Any, name: str) -> None:  # noqa: N807
        if type(self) is made or name in names:
            raise FrozenInstanceError(f"cannot delete field {name!r}")
        object.__delattr__(self, name)

    return {"__setattr__": __setattr__, "__delattr__": __delattr__}


def _pickling(made: Any, fields: tuple[Field[Any], ...]) -> dict[str, Callable[..., Any]]:
    values = _values(tuple(field.name for field in fields))
    slots = tuple(getattr(made, field.name).__set__ for field in fields)

    def __getstate__(self: Any) -> list[Any]:  # noqa: N807
        return list(values(self))

    def __setstate__(self: Any, state: list[Any]) -> None:  # noqa: N807
        for put, value in zip(slots, state, strict=True):
            put(self, value)

    return {"__getstate__": __getstate__, "__setstate__": __setstate__}
