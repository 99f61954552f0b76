"""Changes of an input for which a wrong gradient is right: those that keep a matrix symmetric, or a sum or norm."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gradcli.diagnosis.suspect import Suspect
from gradcli.errors import OverrunError

_Array = NDArray[Any]

_ROUNDINGS = 1024
"""Unit roundoffs of a gradient's largest entry by which a sum of its entries, as a projection computes, may be off."""


def right_changes(suspect: Suspect) -> str:
    """For which changes of the input alone the gradient is right, as a clause; empty for none.

    Gradients for symmetric matrices, probabilities or unit vectors are often projected on the changes that keep an
    input such: they are symmetric, or sum to zero. Where forward takes any input, its gradient is another one.
    """
    block = suspect.facts.subject.domain.blocks[suspect.block]
    gradients = [g for g in suspect.gradients if g is not None]
    whole = len(gradients) == len(suspect.gradients) and all(
        g.shape == block.shape and g.dtype.kind == "f" and np.isfinite(g).all() and g.any() for g in gradients
    )
    if block.complex or not whole or not block.shape:
        return ""
    point = suspect.facts.subject.arguments[suspect.facts.subject.active[suspect.block]].value
    with suppress(OverrunError):
        for changes, within in _kinds(suspect.name, point):
            if _stays(gradients, within) and suspect.facts.explains_within(suspect.block, gradients, within):
                return f"; the returned gradient is right for {changes} alone"
    return ""


def _kinds(name: str, point: _Array) -> list[tuple[str, Callable[[_Array], _Array]]]:
    """For every kind of change that is possible at a point: its description, and the projection on such changes."""
    kinds: list[tuple[str, Callable[[_Array], _Array]]] = []
    last = point.shape[-1]
    if point.ndim > 1 and last == point.shape[-2] > 1:
        kinds.append((f"symmetric changes of {name}", lambda v: (v + np.swapaxes(v, -1, -2)) / 2))
        kinds.append((f"antisymmetric changes of {name}", lambda v: (v - np.swapaxes(v, -1, -2)) / 2))
    if last > 1:
        where = " along its last axis" if point.ndim > 1 else ""
        kinds.append((f"changes of {name} that keep its sum{where}", lambda v: v - v.mean(axis=-1, keepdims=True)))
        squares = np.sum(point * point, axis=-1, keepdims=True)
        if squares.all():
            unit = point / np.sqrt(squares)
            tangent = partial(_beside, unit)
            kinds.append((f"changes of {name} that keep its norm{where}", tangent))
    return kinds


def _beside(unit: _Array, change: _Array) -> _Array:
    """The part of a change that is perpendicular to unit vectors along the last axis."""
    return np.asarray(change - np.sum(change * unit, axis=-1, keepdims=True) * unit)


def _stays(gradients: Sequence[_Array], within: Callable[[_Array], _Array]) -> bool:
    """Whether all gradients lie within such changes."""
    return all(np.abs(g - within(g)).max() <= _ROUNDINGS * np.finfo(g.dtype).eps * np.abs(g).max() for g in gradients)
