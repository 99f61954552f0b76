"""How a hand-written derivative of a NumPy function is called: the function's own arguments, and a cotangent."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, final

from gradcli.backends.numpy.kept_state import kept_on_object
from gradcli.errors import UsageError

_VARIADIC = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
_PLACED = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


@final
class DerivativeBinding:
    """Binds the arguments of a function to the parameters of its derivative.

    By name where the derivative has all the names that the function is called with: `jac(x, p=2)` for `f(x, p=2)`;
    or only some of them, if it could not be called in the function's order: `df(g, x)` for `f(x, bias)`. It is a
    vjp if one further parameter without a default is left, which takes the cotangent, wherever it stands. A method
    that reads what the function keeps on their object, as that of a layer does, may take the cotangent alone:
    `backward(dout)`. Any other derivative is called with the arguments in the same order, and the cotangent behind
    them.

    Raises:
        UsageError: the derivative can be called in neither way.
    """

    def __init__(
        self, function: Callable[..., Any], gradient: Callable[..., Any], positional: int, keywords: Sequence[str]
    ) -> None:
        self._own, self._takes = _signature(function), _signature(gradient)
        self._by_name = False
        self._cotangent = self._behind(positional)
        names = self._names(positional, keywords)
        if names is None or self._own is None or self._takes is None:
            return
        left = [
            p.name for p in self._takes.parameters.values() if _is_required(p) and p.name not in self._own.parameters
        ]
        if len(left) <= 1 and not names & set(self._takes.parameters) and kept_on_object(function, gradient):
            self._by_name, self._cotangent = True, left[0] if left else None
            return
        in_order = self._keeps_order(self._own, self._takes)
        if len(left) <= 1 and (names <= set(self._takes.parameters) or (not in_order and self._shares_names)):
            self._by_name = True
            self._cotangent = left[0] if left else None
        elif not in_order:
            raise UsageError(_unfit(function, gradient, left))

    @property
    def _shares_names(self) -> bool:
        """Whether the function and its derivative have a parameter of the same name."""
        own, takes = self._own, self._takes
        return own is not None and takes is not None and not own.parameters.keys().isdisjoint(takes.parameters)

    @staticmethod
    def _keeps_order(own: inspect.Signature, takes: inspect.Signature) -> bool:
        """Whether the derivative can take the function's arguments in order, with or without a cotangent behind.

        It cannot if it has too few parameters or too many, or one of the same name in another place.
        """
        if any(p.kind not in _PLACED for s in (own, takes) for p in s.parameters.values()):
            return True
        given, taken = list(own.parameters.values()), list(takes.parameters.values())
        least, most = (sum(map(_is_required, given)), len(given) + 1)
        if sum(map(_is_required, taken)) > most or len(taken) < least:
            return False
        shared = own.parameters.keys() & takes.parameters.keys()
        return all(list(own.parameters).index(name) == list(takes.parameters).index(name) for name in shared)

    @property
    def takes_cotangent(self) -> bool:
        """Whether the derivative is a vjp."""
        return self._cotangent is not None

    def call(
        self, gradient: Callable[..., Any], positional: Sequence[Any], keywords: Mapping[str, Any], *cotangent: Any
    ) -> object:
        """Call the derivative with the function's arguments, and with the cotangent where it takes one."""
        if not self._by_name or self._own is None or self._takes is None:
            return gradient(*positional, *cotangent, **keywords)
        given = self._own.bind(*positional, **keywords).arguments
        made = self._takes.bind_partial()
        for name, parameter in self._takes.parameters.items():
            if name == self._cotangent:
                made.arguments[name] = cotangent[0]
            elif name in given:
                made.arguments[name] = given[name]
            elif _is_required(parameter) and name in self._own.parameters:
                made.arguments[name] = self._own.parameters[name].default
        return gradient(*made.args, **made.kwargs)

    def _names(self, positional: int, keywords: Sequence[str]) -> set[str] | None:
        """The function's parameters that a call gives; None where it cannot be called so."""
        if self._own is None:
            return None
        try:
            return set(self._own.bind(*[None] * positional, **dict.fromkeys(keywords)).arguments)
        except TypeError:
            return None

    def _behind(self, positional: int) -> str | None:
        """The parameter behind as many as are given, if it has no default and the function has none of that name."""
        listed = [] if self._takes is None else [p for p in self._takes.parameters.values() if p.kind in _PLACED]
        if len(listed) <= positional or not _is_required(listed[positional]):
            return None
        known = {} if self._own is None else self._own.parameters
        return None if listed[positional].name in known else listed[positional].name


def _signature(function: Callable[..., Any]) -> inspect.Signature | None:
    try:
        return inspect.signature(function)
    except (TypeError, ValueError):
        return None


def _is_required(parameter: inspect.Parameter) -> bool:
    return parameter.default is inspect.Parameter.empty and parameter.kind not in _VARIADIC


def _unfit(function: Callable[..., Any], gradient: Callable[..., Any], left: Sequence[str]) -> str:
    """Why a derivative cannot be called with the arguments of a function."""
    own, name = getattr(function, "__name__", "the function"), getattr(gradient, "__name__", "the derivative")
    listed = ", ".join(inspect.signature(function).parameters)
    taken = ", ".join(inspect.signature(gradient).parameters)
    which = f"; {', '.join(left)} are not parameters of {own}" if len(left) > 1 else ""
    return (
        f"{name}({taken}) cannot be called as the derivative of {own}({listed}): its parameters must have the names of "
        f"{own}'s parameters, except for at most one, which takes the gradient of the output{which}"
    )
