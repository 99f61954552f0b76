"""The rules of elementwise functions, made of their derivatives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gradcli.engine.graph import Node
from gradcli.engine.ops import generic
from gradcli.engine.ops.operands import conj


class _OfInput(Node):
    """A rule from the input: `_slope(x)` is the derivative at x."""

    _saved_names = ("self",)

    def _slope(self, x: Any) -> Any:
        raise NotImplementedError(f"{type(self).__name__} has no slope")

    def _vjp(self, g: Any) -> Any:
        return g * conj(self._slope(self._unpack_like(g)[0]))


class _OfResult(Node):
    """A rule from the result: `_slope(y)` is the derivative at the x whose value is y."""

    _saved_names = ("result",)

    def _slope(self, y: Any) -> Any:
        raise NotImplementedError(f"{type(self).__name__} has no slope")

    def _vjp(self, g: Any) -> Any:
        return g * conj(self._slope(self._unpack_like(g)[0]))


class _Divided(_OfInput):
    """A rule that divides: `_slope(x)` is 1 over the derivative; whose derivatives overflow later than by 1 / x^2."""

    def _vjp(self, g: Any) -> Any:
        return generic.over(g, conj(self._slope(self._unpack_like(g)[0])))


class _DividedOfResult(_OfResult):
    """As _Divided, from the result."""

    _vjp = _Divided._vjp


def rule(
    name: str,
    slope: Callable[[Any], Any],
    *,
    of_result: bool = False,
    on_arrays: bool = True,
    divides: bool = False,
) -> type[Node]:
    """Return the node class of an elementwise function, from its derivative as a function of input or result.

    With `divides`, the function gives 1 over the derivative.
    """
    attributes = {
        "_slope": staticmethod(slope),
        "_on_arrays": on_arrays,
        "__doc__": f"The rule of {name}.",
        "__module__": __name__,
    }
    bases = (_DividedOfResult if of_result else _Divided,) if divides else (_OfResult if of_result else _OfInput,)
    return type(name, bases, attributes)
