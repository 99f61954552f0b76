"""Other values of arguments that are several numbers, as the two sizes of a kernel."""

from collections.abc import Iterator, Sequence
from typing import Any

from gradcli.cases import Argument

MOST_NUMBERS = 4
"""Longer tuples are data, such as the labels of a sequence, rather than a number for each axis."""
_AXES = frozenset(("dim", "dims", "axis", "axes"))
_SIZES = frozenset((
    "shape", "size", "sizes", "channels", "features", "heads", "groups", "splits", "sections", "lengths", "strides",
))  # fmt: skip
"""Last words of names of tuples that lay out a tensor. The strides of an array are among them; a kernel has a
`stride`."""
_NEUTRAL = (0, 1)
_SMALLER, _LARGER = 0.75, 1.5625


def are_numbers(argument: Argument) -> bool:
    """Whether an argument is a tuple of a few numbers that may enter a formula or place windows."""
    value = argument.value
    if argument.is_tensor or not isinstance(value, tuple) or not 1 <= len(value) <= MOST_NUMBERS:
        return False
    is_size = argument.name.lower().rpartition("_")[2] in _SIZES
    return (all(type(each) is int for each in value) and not is_size) or all(type(each) is float for each in value)


def tuples_to_try(argument: Argument, arguments: Sequence[Argument]) -> tuple[tuple[Any, ...], ...]:
    """Other values of a tuple of numbers; their entries differ, so that two that backward exchanges show.

    Args:
        argument: one for which `are_numbers` holds.
        arguments: all of them.
    """
    value = argument.value
    found: Iterator[tuple[Any, ...]]
    if argument.name.lower().rpartition("_")[2] in _AXES:
        axes = next((each.value.ndim for each in arguments if each.is_tensor and each.value is not None), 0)
        found = _other_axes(value, axes)
    else:
        found = _other_reals(value) if isinstance(value[0], float) else _other_wholes(value)
    return tuple(each for each in dict.fromkeys(found) if each != value)


def _other_axes(value: tuple[int, ...], axes: int) -> Iterator[tuple[int, ...]]:
    """The next axes, the same in the reverse order, and one of them alone."""
    if all(-axes <= each < axes for each in value):
        yield tuple((each + 1) % axes for each in value)
        yield value[::-1]
        yield value[-1:]


def _other_wholes(value: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    """Entries that differ, without 0 and 1 at first; then one entry changed alone, where forward refuses both."""
    yield tuple(each + place + (each in _NEUTRAL) for place, each in enumerate(value))
    yield tuple(each + len(value) - 1 - place + (each in _NEUTRAL) for place, each in enumerate(value))
    for place in reversed(range(len(value))):
        yield (*value[:place], value[place] + 1, *value[place + 1 :])


def _other_reals(value: tuple[float, ...]) -> Iterator[tuple[float, ...]]:
    """Numbers of the same order, such as limits have, and of unequal size where they were equal."""
    scaled = [0.375 if each == 0 else in_few_digits(each * _SMALLER) for each in value]
    ordered = sorted(scaled) if sorted(value) == [*value] else scaled
    if len(set(value)) == len(value):
        yield tuple(ordered)
    yield tuple(each if place % 2 else in_few_digits(each * _LARGER / _SMALLER) for place, each in enumerate(scaled))


def in_few_digits(value: float) -> float:
    """The number with six digits, to be read and typed: 0.75 times 0.07 is 0.052500000000000005."""
    return float(f"{value:.6g}")
