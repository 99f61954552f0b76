"""How a hand-written derivative of a NumPy function is called: the function's own arguments, and a cotangent."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, final

_VARIADIC = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


@final
class DerivativeBinding:
    """Binds the arguments of a function to the parameters of its derivative.

    By name where the derivative has all the names that the function is called with: `jac(x, p=2)` for `f(x, p=2)`. It
    is a vjp if one further parameter without a default is left, which takes the cotangent, wherever it stands. A
    derivative with other names is called with the arguments in the same order, and the cotangent behind them.
    """

    def __init__(
        self, function: Callable[..., Any], gradient: Callable[..., Any], positional: int, keywords: Sequence[str]
    ) -> None:
        self._own, self._takes = _signature(function), _signature(gradient)
        self._by_name = False
        self._cotangent = self._behind(positional)
        names = self._names(positional, keywords)
        if names is None or self._own is None or self._takes is None or not names <= set(self._takes.parameters):
            return
        left = [
            p.name for p in self._takes.parameters.values() if _is_required(p) and p.name not in self._own.parameters
        ]
        if len(left) <= 1:
            self._by_name = True
            self._cotangent = left[0] if left else None

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
        kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
        listed = [] if self._takes is None else [p for p in self._takes.parameters.values() if p.kind in kinds]
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
