"""Which framework a value belongs to, from the module of its type; no framework is imported for it."""

from collections.abc import Iterable, Mapping
from types import ModuleType

OWNERS = {
    "torch": "torch",
    "jax": "jax",
    "jaxlib": "jax",
    "gradcli.engine": "engine",
    "numpy": "numpy",
    "scipy": "numpy",
}
"""The packages by which a backend is recognised; if several are found, the first one counts."""

FRAMEWORKS = ("torch", "jax", "engine")
"""The backends that differentiate, in the order in which they count."""


def owner_of(value: object) -> str | None:
    """The backend of the framework that a module, function, class or instance belongs to."""
    places = _modules_of(value)
    return next((name for place, name in OWNERS.items() if place in places), None)


def framework_of_own(value: object) -> str | None:
    """The backend of what the user made with a framework: a Function class, or a function with a rule of JAX's."""
    home, kind = _modules_of(value)
    return None if home in OWNERS else OWNERS.get(kind)


def frameworks_among(values: Iterable[object]) -> tuple[str, ...]:
    """The differentiating backends that values belong to, in their order; NumPy's where there are none of these."""
    places = {place for value in values for place in _modules_of(value)}
    named = {name for place, name in OWNERS.items() if place in places}
    return tuple(name for name in FRAMEWORKS if name in named) or tuple(named)


def tensors_framework(values: object) -> str | None:
    """The framework of the first tensor in nested values; None where there is none, NumPy's arrays being anyone's."""
    if isinstance(values, Mapping):
        return tensors_framework(list(values.values()))
    if isinstance(values, list | tuple):
        return next((name for value in values if (name := tensors_framework(value)) is not None), None)
    names = {OWNERS.get(place) for place in _modules_of(type(values))} - {None, "numpy"}
    return None if callable(values) else next(iter(names), None)


def _modules_of(value: object) -> tuple[str, ...]:
    """Where a value comes from: its top package, and `gradcli.engine` where it is the engine's."""
    home = value.__name__ if isinstance(value, ModuleType) else getattr(value, "__module__", None)
    modules = [str(home or getattr(value, "__name__", "")), type(value).__module__]
    return tuple("gradcli.engine" if m.startswith("gradcli.engine") else m.split(".")[0] for m in modules)
