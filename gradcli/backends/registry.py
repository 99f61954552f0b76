"""Which backend a target belongs to, told without importing a framework."""

import functools
import importlib.util
import inspect
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import CodeType, FunctionType
from typing import Any

from gradcli.backends.array_claims import GradientPair
from gradcli.backends.base import Backend
from gradcli.backends.engine_backend import EngineBackend
from gradcli.backends.jax_backend import JaxBackend
from gradcli.backends.numpy_backend import NumpyBackend
from gradcli.backends.torch_backend import TorchBackend
from gradcli.errors import MissingExtraError, TargetError, UsageError

BACKENDS: tuple[Backend, ...] = (EngineBackend(), TorchBackend(), JaxBackend(), NumpyBackend())
_EXTRAS = ("torch", "jax")
_OWNERS = {"torch": "torch", "jax": "jax", "jaxlib": "jax", "gradcli.engine": "engine", "numpy": "numpy"}
"""Where the names that a callable uses come from, and the backend that this speaks for; the first one counts."""


def backend_named(name: str) -> Backend:
    """The backend called `name`. Raises TargetError for an unknown one, MissingExtraError for an absent extra."""
    for backend in BACKENDS:
        if backend.name == name:
            if name in _EXTRAS and importlib.util.find_spec(name) is None:
                raise MissingExtraError(f"the backend {name!r} needs an extra: pip install 'gradcli[{name}]'")
            return backend
    raise TargetError(f"no backend is called {name!r}; there are: {', '.join(b.name for b in BACKENDS)}")


def is_function(target: object) -> bool:
    """Whether `target` is a Function class, or a function with a rule of its own, that a user defined."""
    if inspect.isclass(target) and not _is_users(target):
        return False
    return any(b.claims(target) and b.is_complete(target) for b in BACKENDS)


def backend_for(target: object, given: object = None) -> Backend:
    """The backend that runs `target`.

    Args:
        target: a Function class, or anything else that can be called.
        given: what a plain callable is to be called with, nested or not: a framework's tensor among it decides.

    Raises:
        TargetError: it is neither a Function class nor a callable on a known framework.
    """
    for backend in BACKENDS:
        if backend.claims(target):
            return backend
    if inspect.isclass(target):
        raise TargetError(
            f"{target.__name__} is a class but no Function: expected a subclass of gradcli.engine.autograd.Function "
            "or of torch.autograd.Function"
        )
    if callable(target):
        return backend_named(_tensors_framework(given) or _framework_of(target))
    raise TargetError(f"expected a Function class or a callable, got {type(target).__name__}: {target!r:.80}")


def require_own_tensors(backend: Backend, name: str, given: object) -> None:
    """Refuse a tensor of another framework among what `backend` is given to run the target called `name` with.

    Raises:
        TargetError: says which framework the tensor is of, and what may be given.
    """
    other = _tensors_framework(given)
    if other not in (None, backend.name):
        raise TargetError(
            f"{name} runs on {backend.name}, but among its inputs is a tensor of {other}: expected tensors of "
            f"{backend.name}, NumPy arrays or Python's numbers"
        )


def with_gradient(target: object, gradient: object) -> GradientPair:
    """A plain NumPy function with the hand-written derivative that was named for it.

    Raises:
        UsageError: the target differentiates itself, or one of the two cannot be called.
    """
    if inspect.isclass(target) or any(backend.claims(target) for backend in BACKENDS):
        raise UsageError(
            f"a hand-written gradient is for plain NumPy functions, but {_name(target)} has a backward of its own: "
            "leave --grad out"
        )
    for role, value in (("function", target), ("hand-written gradient", gradient)):
        if not callable(value):
            raise UsageError(f"expected the {role} to be callable, got {type(value).__name__}: {value!r:.80}")
    owner = _framework_of(target, gradient)  # type: ignore[arg-type]  # callables, as just seen
    if owner in _EXTRAS:
        raise UsageError(
            f"a hand-written gradient is for plain NumPy functions, but {_name(target)} uses {owner}: leave --grad out "
            f"to check {owner}'s own derivative of it"
        )
    return GradientPair(function=target, gradient=gradient)  # type: ignore[arg-type]  # callable, as just seen


def _is_users(target: type) -> bool:
    return not target.__module__.startswith(("torch.", "gradcli.engine"))


def _name(target: object) -> str:
    return str(getattr(target, "__qualname__", type(target).__name__))


def _framework_of(target: Callable[..., Any], beside: Callable[..., Any] | None = None) -> str:
    """The framework of the names that a callable uses, or the one `beside` it; the engine's if there is none.

    Those in its module count last, since a module may import several frameworks.
    """
    found = _named_by(target) or (None if beside is None else _named_by(beside))
    return found or _framework_among(_module_values(target)) or "engine"


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


def _named_by(target: Callable[..., Any]) -> str | None:
    """The framework that a callable belongs to itself, or that the names which its code uses belong to."""
    function = _unwrapped(target)
    known: list[object] = []
    if not inspect.isfunction(function):
        # A built-in function names its module, a method without code the class or the object that has it.
        known = [*type(function).__mro__, function]
        known += [getattr(function, name, None) for name in ("__self__", "__objclass__")]
    code = _code_of(function)
    if code is not None:
        known += inspect.getclosurevars(code).nonlocals.values()
        known += [code.__globals__[name] for name in _names_in(code.__code__) if name in code.__globals__]
    return _framework_among(known)


def _module_values(target: Callable[..., Any]) -> list[object]:
    code = _code_of(_unwrapped(target))
    return [] if code is None else list(code.__globals__.values())


def _framework_among(values: Iterable[object]) -> str | None:
    owners = {owner for value in values for owner in _owners(value)}
    return next((name for place, name in _OWNERS.items() if place in owners and place in sys.modules), None)


def _tensors_framework(values: object) -> str | None:
    """The framework of the first tensor in nested values; None where there is none, NumPy's arrays being anyone's."""
    if isinstance(values, Mapping):
        return _tensors_framework(list(values.values()))
    if isinstance(values, list | tuple):
        return next((name for value in values if (name := _tensors_framework(value)) is not None), None)
    names = {_OWNERS.get(owner) for owner in _owners(type(values))} - {None, "numpy"}
    return None if callable(values) else next(iter(names), None)


def _names_in(code: CodeType) -> Iterator[str]:
    """The global names that a function reads, those of the functions inside it included."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names_in(constant)


def _owners(value: object) -> tuple[str, ...]:
    """Where a value comes from: its top module, and `gradcli.engine` where it is the engine's."""
    home = getattr(value, "__module__", None) or getattr(value, "__name__", "")
    modules = [str(home), type(value).__module__]
    return tuple("gradcli.engine" if m.startswith("gradcli.engine") else m.split(".")[0] for m in modules)
