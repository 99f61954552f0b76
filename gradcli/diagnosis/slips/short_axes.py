"""Axes of two entries, along which a sum less an entry, a shift by one and a reversal all give the other entry."""

import ast
from typing import Any

import numpy as np

from gradcli.diagnosis.facts import Facts
from gradcli.diagnosis.slips.hooks import Hooks, compiled_expression
from gradcli.diagnosis.slips.slip import Slip
from gradcli.frozen import dataclass

_ALONG = ("sum", "mean", "flip", "roll", "logsumexp", "amax", "amin", "cumsum")
"""Functions along an axis that an edit may bring in."""
_LEAST = 3
"""The fewest entries of an axis for which these functions give different results."""


@dataclass(frozen=True, slots=True)
class _Use:
    """A call that an edit brings in: what its value may be computed from, and the axes that it may name for each."""

    given: ast.expr
    axes: tuple[int, ...]


def shortest_axis(slip: Slip, hooks: Hooks, facts: Facts, framework: Any) -> int | None:
    """The fewest entries of more than one along the axes of calls that a slip brings in; None if that is not known.

    Backward runs with `hooks` while this is asked.
    """
    uses = _brought(slip)
    if slip.number is None or not uses:
        return None
    codes = [compiled_expression(use.given) for use in uses]
    with hooks.comparing(slip.number, codes) as values:
        facts.returned_for(facts.cotangents[1])
    found = []
    for use, each in zip(uses, values, strict=True):
        for value in each:
            if framework.is_tensor(value):
                shape = tuple(value.shape)
                axes = [a for a in use.axes if -len(shape) <= a < len(shape)] or range(len(shape))
                found.append(int(np.prod([shape[a] for a in axes])))
    return min((n for n in found if n > 1), default=None)


def is_ambiguous(length: int | None) -> bool:
    """Whether an axis is so short that different edits are the same along it."""
    return length is not None and length < _LEAST


def _brought(slip: Slip) -> list[_Use]:
    own = set(ast.walk(slip.old))
    calls = [n for n in ast.walk(slip.new) if isinstance(n, ast.Call) and n not in own]
    uses = []
    for call in calls:
        if isinstance(call.func, ast.Attribute) and call.func.attr in _ALONG:
            uses.append(_Use(call.func.value, _axes(call, 0)))
            uses += [_Use(first, _axes(call, 1)) for first in call.args[:1]]
    return uses


def _axes(call: ast.Call, first: int) -> tuple[int, ...]:
    """The axes that a call names as its last argument from number `first` on, or by a keyword."""
    named = [k.value for k in call.keywords if k.arg in ("dim", "axis", "dims")] + call.args[first:][-1:]
    try:
        value = ast.literal_eval(named[0]) if named else ()
    except ValueError:
        return ()
    found = value if isinstance(value, tuple | list) else (value,)
    return tuple(a for a in found if isinstance(a, int))
