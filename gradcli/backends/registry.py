"""Which backend a target belongs to."""

import importlib.util
import inspect
import sys

from gradcli.backends.base import Backend
from gradcli.backends.engine_backend import EngineBackend
from gradcli.backends.torch_backend import TorchBackend
from gradcli.errors import MissingExtraError, TargetError

BACKENDS: tuple[Backend, ...] = (EngineBackend(), TorchBackend())


def backend_named(name: str) -> Backend:
    """The backend called `name`. Raises TargetError for an unknown one, MissingExtraError for an absent extra."""
    for backend in BACKENDS:
        if backend.name == name:
            if name != "engine" and importlib.util.find_spec(name) is None:
                raise MissingExtraError(f"the backend {name!r} needs an extra: pip install 'gradcli[{name}]'")
            return backend
    raise TargetError(f"no backend is called {name!r}; there are: {', '.join(b.name for b in BACKENDS)}")


def is_function(target: object) -> bool:
    """Whether `target` is a Function class, with a backward, that a user defined on some framework."""
    if not inspect.isclass(target) or not _is_users(target):
        return False
    return any(b.claims(target) and b.is_complete(target) for b in BACKENDS)


def backend_for(target: object) -> Backend:
    """The backend that runs `target`.

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
        return _by_module(target)
    raise TargetError(f"expected a Function class or a callable, got {type(target).__name__}: {target!r:.80}")


def _is_users(target: type) -> bool:
    return not target.__module__.startswith(("torch.", "gradcli.engine"))


def _by_module(target: object) -> Backend:
    """A plain callable belongs to the framework that its module uses; the engine unless it uses only PyTorch."""
    names = getattr(inspect.unwrap(target), "__globals__", {}) if callable(target) else {}
    owners = {str(getattr(v, "__module__", None) or getattr(v, "__name__", "")).split(".")[0] for v in names.values()}
    closure = inspect.getclosurevars(target).nonlocals if inspect.isfunction(target) else {}
    owners |= {str(getattr(v, "__module__", "")).split(".")[0] for v in closure.values()}
    if "torch" in sys.modules and "torch" in owners:
        return backend_named("torch")
    return backend_named("engine")
