"""Inputs of other shapes for a number whose other values forward refuses at the given ones."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gradcli.cases import Argument
from gradcli.checks.other_points.bounds import bounds_of, is_drawn
from gradcli.checks.other_points.numbers import chooses_an_axis

_GROWTH = 0.0625
"""Relative. Entries that are added are old ones, made larger by so much with each turn: equal ones lie at kinks."""


def at_other_shapes(position: int, value: object, given: Sequence[Argument]) -> Iterator[list[Argument]]:
    """The arguments with another value of the number at `position`, and tensors of other shapes that may go with it.

    A vector along the chosen axis is as long as that axis: two axes of the first tensor are exchanged, or made equal.
    A number that divides an axis still does if the axis grows with it, or with its square.

    Nothing where the values of a tensor depend on its sizes, or on those of others.
    """
    argument = given[position]
    tensors = [n for n, a in enumerate(given) if a.is_tensor and a.value is not None]
    if type(argument.value) is not int or type(value) is not int or not all(_may_change(given[n]) for n in tensors):
        return
    changed = [*given[:position], replace(argument, value=value), *given[position + 1 :]]
    first = next((n for n in tensors if given[n].shape), None)
    axes = 0 if first is None else given[first].value.ndim
    if first is not None and -axes <= argument.value < axes and -axes <= value < axes:
        old, new = argument.value % axes, value % axes
        one, two = given[first].shape[old], given[first].shape[new]
        if one != two:
            turned = np.ascontiguousarray(np.swapaxes(given[first].value, old, new))
            yield [*changed[:first], replace(given[first], value=turned, own=None), *changed[first + 1 :]]
            yield [_with_lengths(a, {min(one, two): max(one, two)}) for a in changed]
    if not chooses_an_axis(argument) and argument.value > 1 and value > 0:
        lengths = dict.fromkeys(n for place in tensors for n in given[place].shape if n > 1)
        for power in (1, 2):
            for length in lengths:
                whole, rest = divmod(length * value**power, argument.value**power)
                if not rest and whole != length:
                    yield [_with_lengths(a, {length: whole}) for a in changed]


def _may_change(argument: Argument) -> bool:
    is_float = argument.value.dtype.kind in "fc" and argument.sparsity is None
    return is_float and is_drawn(argument) and bounds_of(argument) is not None


def _with_lengths(argument: Argument, lengths: dict[int, int]) -> Argument:
    if not argument.is_tensor or argument.value is None:
        return argument
    value: NDArray[Any] = argument.value
    for axis, length in enumerate(argument.shape):
        new = lengths.get(length, length)
        if new != length:
            turns = np.arange(new) // length
            growth = (1 + _GROWTH * turns).reshape(-1, *[1] * (value.ndim - 1 - axis))
            value = np.asarray(np.take(value, np.arange(new) % length, axis) * growth, value.dtype)
    return argument if value is argument.value else replace(argument, value=value, own=None)
