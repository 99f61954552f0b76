"""Calls that differ from a given one in whatever forward might keep between calls: signs, order, sizes."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gradcli.backends.tensor.call_records import OtherCalls
from gradcli.cases import Argument
from gradcli.inputs.domains import interval_of

Arguments = tuple[Argument, ...]
_FACTOR, _SHIFT = 1 + 2.0**-4, 2.0**-6
_ELSEWHERE = 3.0
"""Moves a magnitude to another power of two."""


def disturbing_calls(arguments: Sequence[Argument], *, dear: bool) -> Iterator[OtherCalls]:
    """Calls to make between forward and backward, in three sets.

    They differ from the given call, and the sets from each other, in different respects, so that a value that forward
    keeps in one place for all calls cannot be the same in all of them by accident:

    1. signs, order of entries and indices;
    2. all entries positive and of another magnitude, numbers and flags;
    3. all entries negative, and other sizes.

    Later calls of a set change less. The last one changes every entry by a few hundredths, which almost any forward
    accepts.

    Args:
        arguments: the given call.
        dear: whether each other size or number costs a compilation: only the first set is made then.
    """
    near = tuple(_with_entries(arguments, _moved))
    yield OtherCalls(bold=_reflected(near), near=near)
    if not dear:
        yield OtherCalls(bold=_rescaled(near), near=near)
        yield OtherCalls(bold=_resized(near), near=near)


def _reflected(near: Arguments) -> Iterator[Arguments]:
    backwards = tuple(_with_order(near))
    yield tuple(_with_entries(backwards, np.negative))
    yield backwards


def _rescaled(near: Arguments) -> Iterator[Arguments]:
    bold = tuple(_with_order(_with_entries(near, lambda v: _ELSEWHERE * np.abs(v)), step=1))
    yield tuple(_with_numbers(bold))
    yield tuple(_with_numbers(near))
    yield bold
    yield tuple(_with_order(_with_entries(near, lambda v: np.abs(v) / _ELSEWHERE), step=1))


def _resized(near: Arguments) -> Iterator[Arguments]:
    yield from grown_calls(tuple(_with_entries(near, lambda v: -np.abs(v))))
    yield from grown_calls(near)


def _with_entries(arguments: Iterable[Argument], change: Callable[[NDArray[Any]], NDArray[Any]]) -> Iterator[Argument]:
    """The arguments with the values of all differentiable tensors changed, but for entries that would leave the domain.

    An iteration may never end outside the domain that a spec declares for it.
    """
    for a in arguments:
        changes = a.is_tensor and a.requires_grad and np.size(a.value)
        yield replace(a, value=_within(a, np.asarray(change(a.value), dtype=a.value.dtype))) if changes else a


def _within(argument: Argument, changed: NDArray[Any]) -> NDArray[Any]:
    """The changed values where they lie in the argument's domain, its own elsewhere."""
    if argument.domain is None or changed.dtype.kind != "f":
        return changed
    low, high = interval_of(argument.domain)
    return np.where((low < changed) & (changed < high), changed, argument.value)


def _moved(value: NDArray[Any]) -> NDArray[Any]:
    return value * _FACTOR + _SHIFT


def _with_order(arguments: Iterable[Argument], step: int = -1) -> Iterator[Argument]:
    """The entries of every tensor in another order: backwards, or moved on by one; indices mirrored, masks inverted.

    A matrix read backwards is still symmetric or positive definite, and mirrored indices are in their old range.
    """
    for a in arguments:
        if not a.is_tensor or not np.size(a.value):
            yield a
            continue
        flat = a.value.reshape(-1)
        if a.value.dtype.kind in "iu" and flat.min() >= 0:
            flat = np.asarray(flat.max() - flat, dtype=flat.dtype)
        elif a.value.dtype.kind == "b":
            flat = ~flat
        ordered = flat[::-1] if step < 0 else np.roll(flat, step)
        yield replace(a, value=np.ascontiguousarray(ordered).reshape(a.value.shape))


def _with_numbers(arguments: Iterable[Argument]) -> Iterator[Argument]:
    """Other numbers and flags: one more, half as much again, the opposite."""
    for a in arguments:
        value = a.value
        if a.is_tensor or not isinstance(value, bool | int | float):
            yield a
        elif isinstance(value, bool):
            yield replace(a, value=not value)
        else:
            yield replace(a, value=value + 1 if isinstance(value, int) else value * 1.5 + 0.25)


def grown_calls(arguments: Sequence[Argument]) -> Iterator[Arguments]:
    """The arguments with one more entry along every axis, or along axes as long as the first or the last of an input.

    Axes of the same length grow together, since they may have to stay equal. Those of length 1 stay.
    """
    shape = next((np.shape(a.value) for a in arguments if a.is_tensor and a.requires_grad), ())
    if not shape or any(a.sparsity is not None for a in arguments):
        return
    every = {size for a in arguments if a.is_tensor for size in np.shape(a.value)} - {1}
    for sizes in (every, {shape[0]}, {shape[-1]}):
        if sizes:
            yield tuple(_grown_along(a, sizes) for a in arguments)


def _grown_along(argument: Argument, sizes: set[int]) -> Argument:
    if not argument.is_tensor or 0 in np.shape(argument.value):
        return argument
    value: NDArray[Any] = argument.value
    for axis, size in enumerate(argument.value.shape):
        if size in sizes:
            value = np.concatenate([value, value.take([-1], axis)], axis)
    return replace(argument, value=value)
