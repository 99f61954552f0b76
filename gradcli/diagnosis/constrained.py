"""Gradients for symmetric matrices, probabilities and unit vectors: for which changes of them one is right."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gradcli.diagnosis.contrast import seen_error
from gradcli.diagnosis.factor import fit_factor, number_of, times
from gradcli.diagnosis.facts import ROUNDING
from gradcli.diagnosis.suspect import Named, Suspect, each
from gradcli.diagnosis.table import SIGNIFICANCE
from gradcli.errors import OverrunError
from gradcli.findings import FindingKind
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
                if not _holds_close_by(suspect, number, within, error):
                    return ""
                return f"; the returned gradient is right for {changes} alone{_as_part(suspect, within, changes)}"
    return ""


def _as_part(suspect: Suspect, within: Callable[[_Array], _Array], changes: str) -> str:
    """That the part of the gradient within symmetric changes is right for all changes, as a clause.

    It is where forward depends on the symmetric part of its input alone.
    """
    if not changes.startswith("symmetric") or not suspect.proves(lambda s: each(s, within)):
        return ""
    return ", and its symmetric part (the mean of it and its transpose) is right for all"


def times_the_right_one(suspect: Suspect) -> Named | None:
    """A gradient for a symmetric matrix that is a factor times the right one: twice or half, on or off the diagonal.

    It is compared for symmetric changes: where forward reads one triangle, the entries of its derivative say nothing.
    """
    block = suspect.facts.subject.domain.blocks[suspect.block]
    gradients = [g for g in suspect.gradients if g is not None and g.shape == block.shape and g.dtype.kind == "f"]
    argument = suspect.facts.subject.arguments[suspect.facts.subject.active[suspect.block]]
    kinds = [] if block.complex or not block.shape else _kinds(argument.name, argument.value, argument.domain)
    error = seen_error(suspect)
    if error is None or len(gradients) < len(suspect.gradients) or not kinds or not kinds[0][0].startswith("symmetric"):
        return None
    changes, within, is_own = kinds[0]
    judge = suspect.facts.explains_within
    if not is_own or not tells_apart(error, ROUNDING) or judge(suspect.block, gradients, within, error):
        return None

    def is_right(change: Callable[[_Array], _Array]) -> bool:
        right = judge(suspect.block, [change(g) for g in gradients], within, error)
        return right and _holds_close_by(suspect, 0, within, error, change)

    diagonal = np.broadcast_to(np.eye(block.shape[-1], dtype=bool), block.shape)
    return _times_everywhere(suspect, gradients, (changes, within), is_right) or _times_in_part(
        suspect, diagonal, is_right
    )


def _times_everywhere(
    suspect: Suspect,
    gradients: Sequence[_Array],
    kind: tuple[str, Callable[[_Array], _Array]],
    is_right: Callable[[Callable[[_Array], _Array]], bool],
) -> Named | None:
    changes, within = kind
    seen = suspect.facts.projected_within(suspect.block, gradients, within)
    claimed = np.concatenate([predicted for predicted, _, _ in seen])
    numeric, bounds = (np.concatenate([getattr(s, name) for _, s, _ in seen]) for name in ("values", "bounds"))
    c = fit_factor(claimed, numeric, bounds)
    if c is None or abs(c - 1) <= SIGNIFICANCE or not is_right(lambda g: np.asarray(g / c)):
        return None
    text = number_of(c).text
    return (
        FindingKind.WRONG_SIGN if abs(c + 1) <= SIGNIFICANCE else FindingKind.WRONG_FACTOR,
        f"{suspect.name}: the returned gradient is {times(c, text)} the right one everywhere, as {changes} show",
        {"factor": text},
    )


def _times_in_part(
    suspect: Suspect, diagonal: NDArray[np.bool_], is_right: Callable[[Callable[[_Array], _Array]], bool]
) -> Named | None:
    for wrong, where in ((~diagonal, "off"), (diagonal, "on")):
        for factor in (2.0, 0.5):
            if is_right(partial(_divided, wrong=wrong, factor=factor)):
                return (
                    FindingKind.WRONG_ENTRIES,
                    f"{suspect.name}: wrong only {where} the diagonal ({wrong.sum()} of {wrong.size} entries); there "
                    f"the returned gradient is {factor:g} times the right one; the others are right",
                    {"predicate": f"{where} the diagonal", "wrong_total": int(wrong.sum()), "factor": f"{factor:g}"},
                )
    return None


def _divided(gradient: _Array, *, wrong: NDArray[np.bool_], factor: float) -> _Array:
    return np.where(wrong, gradient / factor, gradient)


def _unchanged(gradient: _Array) -> _Array:
    return gradient


def _holds_close_by(
    suspect: Suspect,
    number: int,
    within: Callable[[_Array], _Array],
    error: float,
    change: Callable[[_Array], _Array] = _unchanged,
) -> bool:
    """Whether the gradient, changed, is right for kind `number` close by, at an input changed in this way."""
    subject, close_by = suspect.facts.subject, suspect.facts.elsewhere
    position = subject.active[suspect.block]
    own = subject.arguments[position]
    if close_by is None:
        return False
    moved = own.value + within(close_by.subject.arguments[position].value - own.value)
    there = suspect.facts.at([moved if p == position else subject.arguments[p].value for p in subject.active])
    if there is None:
        return False
    gradients = [None if g is None or g.shape != own.value.shape else change(g) for g in there.of(position)]
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
