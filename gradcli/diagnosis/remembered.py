"""A gradient that is wrong because an earlier call filled a cache: right if the cache is emptied before each call."""

import ast
import functools
import inspect
from collections.abc import Callable, Iterator, MutableMapping, MutableSequence, MutableSet, Sequence
from contextlib import contextmanager, suppress
from types import CodeType, FunctionType
from typing import Any, final

from gradcli.backends.attribution import is_users_file
from gradcli.diagnosis.contrast import is_clear
from gradcli.diagnosis.slips.hooks import hooked, running
from gradcli.diagnosis.suspect import Named, Suspect
from gradcli.edits.source import Written, written
from gradcli.errors import OverrunError, UserCodeError
from gradcli.findings import FindingKind
from gradcli.frozen import dataclass
from gradcli.results import Location

_MOST = 8
"""A function with more containers than this is not examined: they are more likely tables than caches."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """A container that outlives a call: its name, how to empty and to restore it, and whether it is filled."""

    text: str
    empty: Callable[[], None]
    restore: Callable[[], None]
    is_filled: Callable[[], bool]


def remembered(suspect: Suspect) -> Named | None:
    """Right if one container that the user's functions keep between calls is emptied in every call of forward."""
    info = suspect.facts.subject.info
    forward = written(info.forward)
    if forward is None or not is_clear(suspect):
        return None
    functions = [f for f in (info.forward, info.setup_context, info.backward) if f is not None]
    found = list(_kept_by(functions))
    if not found or len(found) > _MOST:
        return None
    for kept in found:
        if _is_right_without(suspect, forward, kept):
            return (
                FindingKind.STATEFUL,
                f"{suspect.name}: the returned gradient is right if `{kept.text}` is empty at each call, and wrong "
                f"otherwise: `{kept.text}` holds values of earlier calls with other inputs; keep what "
                "each call needs on its own ctx",
                {"location": _line_of(kept, functions)},
            )
    return None


def _is_right_without(suspect: Suspect, forward: Written, kept: Kept) -> bool:
    """Whether the gradient is right, here and close by, if the container is empty in every call of forward."""
    emptying = _Emptying(kept)
    code = hooked(forward.node, forward.function, (), emptying)  # type: ignore[arg-type]  # called as hooks are
    if code is None:
        return False
    subject, place = suspect.facts.subject, suspect.block
    values = [subject.arguments[p].value for p in subject.active]
    try:
        with _put_back(kept), running({forward.function: code}):
            here = suspect.facts.at(values)
            if here is None or here.judged(place, here.of(subject.active[place])) is not True:
                return False
            if not emptying.was_filled:
                return False  # a table that is only read: without it the function differs
            other = here.elsewhere
            return other is None or other.judged(place, other.of(subject.active[place])) is not False
    except OverrunError:
        raise
    except UserCodeError:
        return False


@final
class _Emptying:
    """A hook at the beginning of forward that empties a container."""

    def __init__(self, kept: Kept) -> None:
        self._kept, self._is_empty = kept, False
        self.was_filled = False
        """Whether something was put there after it had been emptied."""

    def __call__(self, place: int, value: Any) -> Any:
        """Called at the beginning of forward; the number of the expression is not used."""
        del place
        self.was_filled |= self._is_empty and self._kept.is_filled()
        self._kept.empty()
        self._is_empty = True
        return value


@contextmanager
def _put_back(kept: Kept) -> Iterator[None]:
    try:
        yield
    finally:
        kept.restore()


def _kept_by(functions: Sequence[Callable[..., Any]]) -> Iterator[Kept]:
    """The containers that functions can reach and modify, the outer names that they bind, and caches."""
    seen: set[int] = set()
    for function in _with_helpers(functions):
        stored = _stored(function.__code__)
        for name, value, namespace in _reached(function):
            key = id(value) if _is_container(value) or _is_cached(value) else hash((id(namespace), name))
            if key in seen:
                continue
            made = _kept(name, value, namespace, stored)
            if made is not None:
                seen.add(key)
                yield made


def _with_helpers(functions: Sequence[Callable[..., Any]]) -> list[FunctionType]:
    """The functions and, of those in the user's files, what they call by a global name."""
    own = [f for each in functions if isinstance(f := inspect.unwrap(each), FunctionType)]
    called = [
        f
        for function in own
        for name in _names(function.__code__)
        if (value := function.__globals__.get(name)) is not None
        and (isinstance(value, FunctionType) or _is_cached(value))
        and isinstance(f := inspect.unwrap(value), FunctionType)
        and is_users_file(f.__code__.co_filename)
    ]
    return list(dict.fromkeys([*own, *called]))


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)


def _names(code: CodeType) -> list[str]:
    return list(dict.fromkeys(name for each in _codes(code) for name in each.co_names))


def _stored(code: CodeType) -> set[str]:
    """The global names and attributes that a function binds."""
    import dis

    return {
        str(step.argval)
        for each in _codes(code)
        for step in dis.get_instructions(each)
        if step.opname in ("STORE_GLOBAL", "STORE_ATTR", "STORE_DEREF")
    }


def _reached(function: FunctionType) -> Iterator[tuple[str, Any, Any]]:
    """Names with their values and where they are bound: globals, closures, defaults, attributes of own classes."""
    names = _names(function.__code__)
    for name in names:
        value = function.__globals__.get(name)
        if name in function.__globals__:
            yield name, value, function.__globals__
        if isinstance(value, type) and value.__module__ == function.__module__:
            for attribute in names:
                if attribute in vars(value):
                    yield f"{name}.{attribute}", vars(value)[attribute], value
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        with suppress(ValueError):  # an empty cell
            yield name, cell.cell_contents, cell
    parameters = function.__code__.co_varnames[: function.__code__.co_argcount]
    for name, value in zip(reversed(parameters), reversed(function.__defaults__ or ()), strict=False):
        yield name, value, None


def _is_container(value: object) -> bool:
    return isinstance(value, MutableMapping | MutableSequence | MutableSet)


def _is_cached(value: object) -> bool:
    return isinstance(value, functools._lru_cache_wrapper)


def _kept(text: str, value: Any, namespace: Any, stored: set[str]) -> Kept | None:
    """A container that can be emptied; None for one into which no function writes."""
    if _is_cached(value):
        filled = lambda: bool(value.cache_info().currsize)  # noqa: E731 - the other three are of one kind with it
        return Kept(text=text, empty=value.cache_clear, restore=lambda: None, is_filled=filled)
    if _is_container(value):
        before = dict(value) if isinstance(value, MutableMapping) else list(value)

        def restore() -> None:
            value.clear()
            getattr(value, "extend" if isinstance(value, MutableSequence) else "update")(before)

        return Kept(text=text, empty=value.clear, restore=restore, is_filled=lambda: bool(value)) if before else None
    name = text.rpartition(".")[2]
    if namespace is None or name not in stored or not (hasattr(value, "dtype") or isinstance(value, int | float)):
        return None
    nothing = 0 if isinstance(value, int | float) else None

    holder = vars(namespace) if isinstance(namespace, type) else namespace

    def bind(new: Any) -> None:
        if isinstance(namespace, dict):
            namespace[name] = new
        elif isinstance(namespace, type):
            setattr(namespace, name, new)
        else:
            namespace.cell_contents = new

    def is_filled() -> bool:
        now = holder.cell_contents if hasattr(holder, "cell_contents") else holder[name]
        return now is not nothing

    return Kept(text=text, empty=lambda: bind(nothing), restore=lambda: bind(value), is_filled=is_filled)


def _line_of(kept: Kept, functions: Sequence[Callable[..., Any]]) -> Location | None:
    """The first line that writes into a container, else the first that uses it."""
    name = kept.text.rpartition(".")[2]
    found: list[tuple[bool, int, str]] = []
    for order, function in enumerate(functions):
        own = written(function)
        for node in ast.walk(own.node) if own is not None else ():
            if name == getattr(node, "id", getattr(node, "attr", None)) and own is not None:
                writes = any(
                    isinstance(above, ast.Subscript | ast.Attribute | ast.Name)
                    and isinstance(above.ctx, ast.Store)
                    and node in ast.walk(above)
                    for above in ast.walk(own.node)
                )
                found.append((not writes, 10**6 * order + node.lineno, own.file.path))  # type: ignore[attr-defined]
    if not found:
        return None
    _, line, path = min(found)
    return Location(file=path, line=line % 10**6)
