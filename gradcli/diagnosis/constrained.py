"""Changes of an input for which a wrong gradient is right: those that keep a matrix symmetric, or a sum or norm."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gradcli.diagnosis.contrast import seen_error
from gradcli.diagnosis.facts import ROUNDING
from gradcli.diagnosis.suspect import Suspect
from gradcli.errors import OverrunError
from gradcli.verdict import tells_apart

_Array = NDArray[Any]

_ROUNDINGS = 1024
"""Unit roundoffs of a gradient's largest entry by which a sum of its entries, as a projection computes, may be off."""


def right_changes(suspect: Suspect) -> str:
    """For which changes of the input alone the gradient is right, as a clause; empty for none.

    Gradients for symmetric matrices, probabilities or unit vectors are often projected on the changes that keep an
    input such: they are symmetric, or sum to zero. Where forward takes any input, its gradient is another one. An
    input from a domain of such values only changes so, and its gradient then need not be projected.
    """
    block = suspect.facts.subject.domain.blocks[suspect.block]
    gradients = [g for g in suspect.gradients if g is not None]
    whole = len(gradients) == len(suspect.gradients) and all(
        g.shape == block.shape and g.dtype.kind == "f" and np.isfinite(g).all() and g.any() for g in gradients
    )
    if block.complex or not whole or not block.shape:
        return ""
    error = seen_error(suspect)
    if not tells_apart(error, ROUNDING) or error is None:
        return ""
    argument = suspect.facts.subject.arguments[suspect.facts.subject.active[suspect.block]]
    with suppress(OverrunError):
        for number, (changes, within, is_own) in enumerate(_kinds(argument.name, argument.value, argument.domain)):
            if (is_own or _stays(gradients, within)) and suspect.facts.explains_within(
                suspect.block, gradients, within, error
            ):
                holds = _holds_close_by(suspect, number, within, error)
                return f"; the returned gradient is right for {changes} alone" if holds else ""
    return ""


def _holds_close_by(suspect: Suspect, number: int, within: Callable[[_Array], _Array], error: float) -> bool:
    """Whether kind `number` of changes is right close by too, at an input changed in this way."""
    subject, close_by = suspect.facts.subject, suspect.facts.elsewhere
    position = subject.active[suspect.block]
    own = subject.arguments[position]
    if close_by is None:
        return False
    moved = own.value + within(close_by.subject.arguments[position].value - own.value)
    there = suspect.facts.at([moved if p == position else subject.arguments[p].value for p in subject.active])
    if there is None:
        return False
    gradients = there.of(position)
    kinds = _kinds(own.name, moved, own.domain)
    return number < len(kinds) and there.explains_within(suspect.block, gradients, kinds[number][1], error)


_Kind = tuple[str, Callable[[_Array], _Array], bool]


def _kinds(name: str, point: _Array, domain: str | None) -> list[_Kind]:
    """For every kind of change that is possible at a point: its description, and the projection on such changes.

    The flag says that the input can only change so: that its domain holds symmetric matrices, or numbers of one sum.
    """
    kinds: list[_Kind] = []
    last = point.shape[-1]
    if point.ndim > 1 and last == point.shape[-2] > 1:
        turned = np.swapaxes(point, -1, -2)
        is_own = domain == "spd" or np.array_equal(point, turned)
        kinds.append((f"symmetric changes of {name}", lambda v: (v + np.swapaxes(v, -1, -2)) / 2, is_own))
        kinds.append((f"antisymmetric changes of {name}", lambda v: (v - np.swapaxes(v, -1, -2)) / 2, False))
    if last > 1:
        where = " along its last axis" if point.ndim > 1 else ""
        is_own = domain == "simplex"
        of_sum = f"changes of {name} that keep its sum{where}"
        kinds.append((of_sum, lambda v: v - v.mean(axis=-1, keepdims=True), is_own))
        squares = np.sum(point * point, axis=-1, keepdims=True)
        if squares.all():
            unit = point / np.sqrt(squares)
            tangent = partial(_beside, unit)
            kinds.append((f"changes of {name} that keep its norm{where}", tangent, False))
    return kinds


def _beside(unit: _Array, change: _Array) -> _Array:
    """The part of a change that is perpendicular to unit vectors along the last axis."""
    return np.asarray(change - np.sum(change * unit, axis=-1, keepdims=True) * unit)


def _stays(gradients: Sequence[_Array], within: Callable[[_Array], _Array]) -> bool:
    """Whether all gradients lie within such changes."""
    return all(np.abs(g - within(g)).max() <= _ROUNDINGS * np.finfo(g.dtype).eps * np.abs(g).max() for g in gradients)
