"""Values of inputs changed at random, so that nothing holds there only because some of them happen to be equal."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gradcli.cases import Argument


def moved(value: NDArray[Any], generator: np.random.Generator) -> NDArray[Any]:
    """Every entry moved by 1/64 to 1/32 of itself, zeros by as much of the largest entry."""
    part = generator.choice([-1.0, 1.0], value.shape) * (1 + generator.random(value.shape)) / 64
    size = np.max(np.abs(value), initial=0.0) or 1.0
    return np.asarray(value + part * np.where(value == 0, size, value), dtype=value.dtype)


def deranged(value: NDArray[Any], generator: np.random.Generator) -> NDArray[Any]:
    """The entries permuted along one cycle through all of them, so none keeps its place."""
    cycle = generator.permutation(value.size)
    changed = np.empty(value.size, dtype=value.dtype)
    changed[cycle] = value.reshape(-1)[np.roll(cycle, 1)]
    return changed.reshape(value.shape)


def blended(value: NDArray[Any], generator: np.random.Generator) -> NDArray[Any]:
    """For every entry, a value between those of two different ones."""
    one = deranged(value, generator)
    other = deranged(one, generator)
    return np.asarray(one + generator.random(value.shape) * (other - one), dtype=value.dtype)


def mirrored(value: NDArray[Any], generator: np.random.Generator) -> NDArray[Any]:
    """Booleans permuted; whole numbers mirrored within their range (low + high - value) and permuted."""
    if value.dtype.kind == "b" or not value.size:
        return deranged(value, generator)
    return deranged(np.asarray(value.max() - (value - value.min()), dtype=value.dtype), generator)


def moved_within(argument: Argument, generator: np.random.Generator) -> NDArray[Any]:
    """The entries of an argument moved; symmetric positive definite matrices stay symmetric."""
    value = moved(argument.value, generator)
    if argument.domain != "spd":
        return value
    return np.asarray((value + np.swapaxes(value, -1, -2).conj()) / 2, dtype=value.dtype)


def rearranged_within(
    argument: Argument, change: Callable[[NDArray[Any], np.random.Generator], NDArray[Any]], generator: Any
) -> NDArray[Any]:
    """The entries of an argument changed and moved; of symmetric positive definite matrices rows and columns alike."""
    if argument.domain != "spd":
        return moved(change(argument.value, generator), generator)
    order = deranged(np.arange(argument.value.shape[-1]), generator)
    return moved_within(replace(argument, value=argument.value[..., order, :][..., order]), generator)
