"""Functions written for each other: `layer_forward` that returns (out, cache), and `layer_backward(dout, cache)`."""

import functools
import inspect
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from types import FunctionType, MethodType
from typing import Any, final

from gradcli.backends.numpy.claims import GradientPair
from gradcli.backends.numpy.names import (
    name_returned,
    names_returned,
    returns_several,
    seems_cotangent,
    seems_gradient,
    seems_kept,
)
from gradcli.errors import UsageError, counted
from gradcli.frozen import dataclass

_PLACED = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
_FORWARD = re.compile(r"(?<![a-z])(forward|fwd|fprop|forwards)(?![a-z])")
_BACKWARDS = {
    "forward": ("backward", "backprop", "bwd", "backwards"),
    "forwards": ("backwards", "backward"),
    "fwd": ("bwd", "backward"),
    "fprop": ("bprop", "backprop"),
}
_KINDS = ("backward", "vjp", "grad", "gradient", "jac", "jacobian", "derivative", "deriv", "prime", "der")
_ALONE = ("jac", "jacobian", "grad", "gradient", "df", "fprime", "derivative", "dfdx", "df_dx")


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class _Layer:
    """How a backward function is called with what its forward function returns.

    `cotangents` are its parameters for the gradients of the outputs, `kept` those for other values that forward
    returns, each with its index among them, counted from the end where it is negative.
    """

    forward: Callable[..., Any]
    backward: Callable[..., Any]
    cotangents: tuple[str, ...]
    kept: Mapping[str, int]

    def outputs(self, *positional: Any, **keywords: Any) -> Any:
        """What forward returns without what is only kept for backward."""
        found = self._outputs(self.forward(*positional, **keywords))
        return found[0] if len(found) == 1 else found

    def gradients(self, *positional: Any, **keywords: Any) -> Any:
        """Call forward, and backward with what it returned."""
        takes = inspect.signature(self.backward).parameters
        cotangent = keywords.pop("cotangent", None)
        own = inspect.signature(self.forward)
        bound = own.bind(*positional, **keywords)
        returned = _as_tuple(self.forward(*positional, **keywords))
        bound.apply_defaults()
        count = len(self.cotangents)
        given = dict(zip(self.cotangents, (cotangent,) if count == 1 else cotangent or (), strict=True))
        given |= {name: self._kept(returned, index) for name, index in self.kept.items()}
        given |= {name: bound.arguments[name] for name in takes if name in bound.arguments and name not in given}
        by_position = [given.pop(n) for n, p in takes.items() if p.kind is p.POSITIONAL_ONLY and n in given]
        return self.backward(*by_position, **given)

    def _outputs(self, whole: Any) -> tuple[Any, ...]:
        returned = _as_tuple(whole)
        apart = {index % len(returned) for index in self.kept.values()} if len(returned) > 1 else set()
        found = tuple(value for index, value in enumerate(returned) if index not in apart or index == 0)
        if len(self.cotangents) > 1 and len(found) != len(self.cotangents):
            raise UsageError(
                f"{_name(self.backward)} takes {', '.join(self.cotangents)} for the gradients of the outputs, but "
                f"{_name(self.forward)} returns {counted(len(found), 'output')}"
            )
        return found[: max(len(self.cotangents), 1)]

    def _kept(self, returned: tuple[Any, ...], index: int) -> Any:
        if not -len(returned) <= index < len(returned) or (len(returned) == 1 and index < 0 and len(self.kept) > 1):
            raise UsageError(
                f"{_name(self.backward)} takes {', '.join(self.kept)} from {_name(self.forward)}, which returns "
                f"{counted(len(returned), 'value')} only"
            )
        return returned[index]


def paired(function: Callable[..., Any], gradient: Callable[..., Any], *, note: str = "") -> GradientPair:
    """A function and its derivative, whose call is arranged for where it takes what the function keeps for it."""
    layer = _layer(function, gradient)
    if layer is None:
        return GradientPair(function=function, gradient=gradient, note=note)
    own = inspect.signature(function)
    takes = [p for p in own.parameters.values() if p.kind in _PLACED]
    cotangent = [inspect.Parameter("cotangent", inspect.Parameter.KEYWORD_ONLY)] if layer.cotangents else []
    outputs = functools.wraps(function)(functools.partial(layer.outputs))
    gradients = functools.wraps(gradient)(functools.partial(layer.gradients))
    outputs.__signature__ = own  # type: ignore[attr-defined]
    gradients.__signature__ = own.replace(parameters=[*takes, *cotangent])  # type: ignore[attr-defined]
    return GradientPair(function=outputs, gradient=gradients, note=note, is_layer=True)


def with_partner(function: object) -> GradientPair | None:
    """A plain function with the derivative that stands beside it under a name of its own, such as `f_grad` for `f`."""
    if not isinstance(function, FunctionType | MethodType):
        return None
    found = _partners(function)
    if len(found) != 1:
        return None
    try:
        pair = paired(function, found[0], note=f"checked with {_name(found[0])}, its derivative by that name")
    except (TypeError, ValueError):
        return None
    return pair


def names_of_partners(function: object) -> tuple[str, ...]:
    """The names of the derivatives that stand beside a function under a name of its own."""
    if not isinstance(function, FunctionType | MethodType):
        return ()
    return tuple(_name(found) for found in _partners(function))


def _partners(function: FunctionType | MethodType) -> list[Callable[..., Any]]:
    """The derivatives of a function by their names, in its module or on its object.

    First those with the function's whole name: `backward_euler` is the derivative of `forward_euler` only if nothing is
    called `forward_euler_vjp`.
    """
    name, match = function.__name__, _FORWARD.search(function.__name__)
    if not returns_several(function):
        names = [f"{name}_{kind}" for kind in _KINDS] + [f"{kind}_{name}" for kind in _KINDS]
        if own := _fitting(function, [*names, f"d{name}", f"d_{name}"]):
            return own
    if match is not None:
        names = [name[: match.start()] + replaced + name[match.end() :] for replaced in _BACKWARDS[match[1]]]
        return [found for each in names if (found := _beside(function, each)) is not None][:1]
    return _fitting(function, _ALONE) if _is_only(function) and not returns_several(function) else []


def _fitting(function: FunctionType | MethodType, names: Sequence[str]) -> list[Callable[..., Any]]:
    """What stands beside a function under one of the names and can be its derivative."""
    beside = {found: None for each in names if (found := _beside(function, each)) is not None}
    return [found for found in beside if _takes_no_more(function, found)]


def _is_derivative(name: str) -> bool:
    return name in _ALONE or seems_gradient(name) or any(name.startswith(f"{kind}_") for kind in _KINDS)


def _is_only(function: FunctionType | MethodType) -> bool:
    """Whether no other public function of its module is a forward: all others are derivatives."""
    if isinstance(function, MethodType):
        return False
    defined = [
        name
        for name, value in function.__globals__.items()
        if isinstance(value, FunctionType) and value.__module__ == function.__module__
    ]
    return [name for name in defined if not (name.startswith("_") or _is_derivative(name))] == [function.__name__]


def _beside(function: FunctionType | MethodType, name: str) -> Callable[..., Any] | None:
    if isinstance(function, MethodType):
        found = getattr(function.__self__, name, None)
        return found if isinstance(found, MethodType) else None
    module = sys.modules.get(function.__module__)
    found = function.__globals__.get(name, getattr(module, name, None))
    return found if isinstance(found, FunctionType) and found.__module__ == function.__module__ else None


def _takes_no_more(function: Callable[..., Any], gradient: Callable[..., Any]) -> bool:
    """Whether a derivative can be called with the function's arguments, and a cotangent."""
    own, takes = (inspect.signature(each).parameters for each in (function, gradient))
    needed = [n for n, p in takes.items() if p.default is p.empty and p.kind in _PLACED and n not in own]
    return len(needed) <= 1 and not own.keys().isdisjoint(takes)


def _layer(function: Callable[..., Any], gradient: Callable[..., Any]) -> _Layer | None:
    """How to call a derivative that takes more than the function's arguments and a cotangent; None if it does not."""
    try:
        own, takes = inspect.signature(function).parameters, inspect.signature(gradient).parameters
    except (TypeError, ValueError):
        return None
    if any(p.kind not in _PLACED for p in (*own.values(), *takes.values())):
        return None
    left = [name for name, p in takes.items() if p.default is p.empty and name not in own]
    returned = names_returned(function).elements or (name_returned(function),)
    named = [name for name in left if seems_kept(name) or (name in returned and not seems_cotangent(name))]
    cotangents = [name for name in left if name not in named]
    likely = [name for name in cotangents if seems_cotangent(name)]
    cotangents, further = (likely, [n for n in cotangents if n not in likely]) if likely else (left[:1], left[1:])
    if not named and not returns_several(function):
        return None
    kept = [name for name in left if name in named or name in further]
    cotangents = [name for name in cotangents if name not in kept]
    if not kept or (len(left) < 2 and not seems_kept(left[0])) or _is_in_order(own, takes, left, named):
        return None
    places = {name: returned.index(name) for name in kept if name in returned}
    rest = [name for name in kept if name not in places]
    places |= {name: index - len(rest) for index, name in enumerate(rest)}
    return _Layer(forward=function, backward=gradient, cotangents=tuple(cotangents), kept=places)


def _is_in_order(own: Mapping[str, Any], takes: Mapping[str, Any], left: Sequence[str], named: Sequence[str]) -> bool:
    """Whether a derivative rather takes the function's own arguments under other names, as f(x, y) and df(a, b)."""
    if named or not own.keys().isdisjoint(takes):
        return False
    return len(left) in (len(own), len(own) + 1)


def _as_tuple(returned: Any) -> tuple[Any, ...]:
    return returned if isinstance(returned, tuple) else (returned,)


def _name(function: Callable[..., Any]) -> str:
    return str(getattr(function, "__name__", type(function).__name__))
