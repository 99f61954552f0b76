"""The default numbers of the parameters to which forward or backward passes an argument."""

import ast
import inspect
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from gradcli.inputs.hints.conjugates import own_function
from gradcli.sources import nodes_of

_NEUTRAL = (0, 1, -1)
"""Defaults that leave something out rather than say how large a number is: a wrong factor is not seen there."""


def defaults_of_helpers(
    trees: Iterable[ast.Module | None], names: Collection[str], known: Mapping[str, Any]
) -> dict[str, tuple[float]]:
    """For each argument the default of the parameter that it is passed to, as in `safe_inverse(x, cutoff)`.

    Args:
        trees: of forward, of its helpers and of backward, where an argument may be an attribute of ctx.
        names: forward's arguments.
        known: the names outside forward and backward that they may use.
    """
    found: dict[str, tuple[float]] = {}
    for tree in filter(None, trees):
        for call in (node for node in nodes_of(tree) if isinstance(node, ast.Call)):
            for name, value in _passed(call, known):
                if name in names and type(value) in (int, float) and value not in _NEUTRAL:
                    found.setdefault(name, (value,))
    return found


def _passed(call: ast.Call, known: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """The variables and attributes that a call passes to one of the user's own functions, with the defaults there."""
    helper = own_function(call.func, known)
    parameters = {} if helper is None else inspect.signature(helper).parameters
    given: list[tuple[str, ast.expr]] = list(zip(parameters, call.args, strict=False))
    for name, value in (*given, *((each.arg or "", each.value) for each in call.keywords)):
        if name in parameters and isinstance(value, ast.Name | ast.Attribute):
            yield value.id if isinstance(value, ast.Name) else value.attr, parameters[name].default
