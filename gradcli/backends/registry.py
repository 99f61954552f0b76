"""Which backend a target belongs to, found without importing a framework."""

import importlib.util
import inspect
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from importlib import import_module
from typing import Any

from gradcli.backends.base import Backend
from gradcli.backends.frameworks_used import module_values, reached_by
from gradcli.backends.numpy.claims import GradientPair
from gradcli.backends.numpy.layers import paired, with_partner
from gradcli.backends.owners import FRAMEWORKS, owner_of, tensors_framework
from gradcli.backends.tensor.pairs import MARK, Pair
from gradcli.errors import MissingExtraError, TargetError, UsageError

_BACKENDS = {
    "engine": ("tensor.engine_backend", "EngineBackend"),
    "torch": ("torch.backend", "TorchBackend"),
    "jax": ("jax.backend", "JaxBackend"),
    "numpy": ("numpy.backend", "NumpyBackend"),
}
"""The backends in the order in which they are asked, each with its module in this package and its class."""
_EXTRAS = ("torch", "jax")


@cache
def _backend_called(name: str) -> Backend:
    module, kind = _BACKENDS[name]
    backend: Backend = getattr(import_module(f"gradcli.backends.{module}"), kind)()
    return backend


def backends() -> Iterator[Backend]:
    """The backends in their order, each imported only if no earlier one claims the target."""
    return map(_backend_called, _BACKENDS)


def backend_named(name: str) -> Backend:
    """The backend called `name`. Raises TargetError for an unknown one, MissingExtraError for an absent extra."""
    if name in _BACKENDS:
        if name in _EXTRAS and importlib.util.find_spec(name) is None:
            raise MissingExtraError(
                f"the backend {name!r} needs a package that is not installed: pip install 'gradcli[{name}]'"
            )
        return _backend_called(name)
    raise TargetError(f"unknown backend {name!r}; expected one of {', '.join(_BACKENDS)}")


def is_function(target: object) -> bool:
    """Whether `target` is a Function class, or a function with a rule of its own, that a user defined."""
    if inspect.isclass(target) and not _is_users(target):
        return False
    return any(b.claims(target) and b.is_complete(target) for b in backends())


def lack_of(target: object) -> tuple[str, bool] | None:
    """Why a Function that a user defined cannot be checked, and whether a name in it is misspelt; None where it can be.

    None too for what is no Function, and for a class that others build on.
    """
    backend = next((backend for backend in backends() if backend.claims(target)), None)
    if backend is None or backend.is_complete(target):
        return None
    from gradcli.backends.tensor.function_backend import FunctionBackend

    misspelt: bool | None = False
    if isinstance(backend, FunctionBackend):
        if inspect.isclass(target):
            misspelt = backend.is_misspelt(target) if _is_users(target) else None
        elif backend.function_class(target) is not None:
            misspelt = None
    if misspelt is None:
        return None
    try:
        backend.describe(target)
    except TargetError as error:
        return str(error), misspelt
    return None


def backends_for(target: object, given: object = None) -> tuple[Backend, ...]:
    """The backend that runs `target`; several, in the order to be tried, where only a run of it can tell.

    A callable may use a framework through functions of other modules alone, or run with the arrays of any.

    Args:
        target: a Function class, or anything else that can be called.
        given: what a plain callable is to be called with, nested or not: a framework's tensor among it decides.

    Raises:
        TargetError: it is neither a Function class nor a callable on a known framework.
    """
    for backend in backends():
        if backend.claims(target):
            return (backend,)
    if inspect.isclass(target):
        raise TargetError(
            f"{target.__name__} is a class but not a Function: expected a subclass of "
            "gradcli.engine.autograd.Function or of torch.autograd.Function"
        )
    if callable(target):
        return tuple(backend_named(name) for name in _names_for(target, given))
    raise TargetError(f"expected a Function class or a callable, got {type(target).__name__}: {target!r:.80}")


def backend_for(target: object, given: object = None) -> Backend:
    """The backend that most likely runs `target`, the first one to be tried. Raises TargetError as `backends_for`."""
    return backends_for(target, given)[0]


def only_a_run_tells(backend: Backend, target: object) -> bool:
    """Whether `target` is taken for a function of plain NumPy's: functions of any framework may run on its arrays."""
    return backend.name == "numpy" and not backend.claims(target)


def require_own_tensors(backend: Backend, name: str, given: object) -> None:
    """Refuse a tensor of another framework among what `backend` is given to run the target called `name` with.

    Raises:
        TargetError: says which framework the tensor is of, and what may be given.
    """
    other = tensors_framework(given)
    if other not in (None, backend.name):
        raise TargetError(
            f"{name} runs on {backend.name}, but among its inputs is a tensor of {other}: expected tensors of "
            f"{backend.name}, NumPy arrays or Python numbers"
        )


def with_gradient(target: object, gradient: object, *, saved: Sequence[str] = (), given: object = None) -> object:
    """A function with the hand-written derivative that was named for it.

    Args:
        target: a function of NumPy arrays, or of a framework's tensors.
        gradient: its gradient, Jacobian or vjp; for a framework's tensors a vjp, called with the gradients of the
            results and then what the function was called with, or `saved`.
        saved: names of what the vjp needs: arguments of the function, and what it returns after its results.
        given: what the function is to be called with, if that is known.

    Raises:
        UsageError: the target differentiates itself, one of the two cannot be called, or values are saved for NumPy.
    """
    if inspect.isclass(target) or any(backend.claims(target) for backend in backends()):
        raise UsageError(f"{_name(target)} has a backward of its own: leave out --grad")
    for role, value in (("function", target), ("hand-written gradient", gradient)):
        if not callable(value):
            raise UsageError(f"expected the {role} to be callable, got {type(value).__name__}: {value!r:.80}")
    owner = _owner_of_both(target, gradient, given)  # type: ignore[arg-type]  # callables, as just seen
    if owner not in (None, "numpy"):
        pair = Pair(forward=target, backward=gradient, saved=tuple(saved))  # type: ignore[arg-type]  # as above
        pair.require_cotangent()
        return backend_named(owner).joined(pair)
    if saved:
        raise UsageError(
            f"--saved is for functions of PyTorch, JAX or gradcli.engine, but {_name(target)} takes NumPy arrays: "
            f"leave out --saved; for a NumPy function, what --grad names takes the arguments of {_name(target)}, and "
            "then the cotangent if it is a vjp"
        )
    return paired(target, gradient)  # type: ignore[arg-type]  # as above


def with_partner_found(target: object) -> object:
    """A plain function of NumPy's with the derivative beside it under a name of its own; else the target itself."""
    if not callable(target) or inspect.isclass(target) or any(backend.claims(target) for backend in backends()):
        return target
    if (pair := with_partner(target)) is None:
        return target
    first = _names_for(pair.function, None)[0]
    return pair if first == "numpy" else target


def has_gradient(target: object) -> bool:
    """Whether `target` is what `with_gradient` returned."""
    return isinstance(target, GradientPair) or isinstance(getattr(target, MARK, None), Pair)


def _is_users(target: type) -> bool:
    return not target.__module__.startswith(("torch.", "gradcli.engine"))


def _name(target: object) -> str:
    return str(getattr(target, "__qualname__", type(target).__name__))


def _names_for(target: Callable[..., Any], given: object) -> tuple[str, ...]:
    """The backends that a callable may belong to, in the order in which they are tried.

    What it is given decides, then its own names, or a run where these are of several frameworks. NumPy's names beside a
    function that uses a framework may be those of constants alone, and a function that names nothing may run with
    anybody's arrays.
    """
    if (theirs := tensors_framework(given)) is not None:
        return (theirs,)
    reached = reached_by(target)
    beside = [owner_of(value) for value in module_values(target)]
    module = [name for name in FRAMEWORKS if name in beside]
    if reached.further:
        named = sorted(reached.further, key=lambda name: name not in module)
        return (*reached.own, *named)
    if reached.own:
        return reached.own
    return (*module, *(["numpy"] if "numpy" in beside else [])) or ("engine",)


def _owner_of_both(target: Callable[..., Any], gradient: Callable[..., Any], given: object) -> str | None:
    """The framework that a function and its derivative use: that of what they are given, that they name themselves, or
    that of their module, where it does not import NumPy beside it.
    """
    named = tensors_framework(given) or _speaks_for(target) or _speaks_for(gradient)
    if named is not None:
        return named
    beside = [owner_of(value) for value in (*module_values(target), *module_values(gradient))]
    return None if "numpy" in beside else next((name for name in FRAMEWORKS if name in beside), None)


def _speaks_for(target: Callable[..., Any]) -> str | None:
    reached = reached_by(target)
    return next(iter((*reached.own, *reached.further)), None)
