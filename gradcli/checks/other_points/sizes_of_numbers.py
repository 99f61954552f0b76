"""Whole numbers that go with the length of an axis, as the diagonals of a band go with the columns it is stored in."""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from gradcli.cases import Argument
from gradcli.frozen import dataclass
from gradcli.inputs.drawing import is_given_distinct, with_distinct

_TRIED = 6
"""Axes that are made longer with a number: those of two or three inputs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LongerAxis:
    """An axis of the argument at `position` with `more` entries, or fewer if that is negative."""

    position: int
    axis: int
    more: int

    def of(self, arguments: Sequence[Argument]) -> list[Argument]:
        """The arguments with the axis longer: its entries are repeated from the beginning, given distinct ones apart.

        Axes that were of its new length get a length that no axis has: a mistake that confuses two axes is right where
        both are of one length.
        """
        new = arguments[self.position].shape[self.axis] + self.more
        used = {length for argument in arguments if argument.is_tensor for length in argument.shape}
        free = next(n for n in itertools.count(new + 1) if n not in used)
        made = list(arguments)
        for position, argument in enumerate(arguments):
            if argument.is_tensor and argument.sparsity is None:
                value: Any = argument.value
                for axis, length in enumerate(argument.shape):
                    if (position, axis) == (self.position, self.axis):
                        value = np.take(value, np.arange(new) % length, axis)
                    elif length == new:
                        value = np.take(value, np.arange(free) % new, axis)
                if not argument.requires_grad and is_given_distinct(argument.value, argument.domain):
                    other = with_distinct(value, argument.value)
                    value = value if other is None else other
                made[position] = argument if value is argument.value else replace(argument, value=value, own=None)
        return made

    def named(self, arguments: Sequence[Argument]) -> str:
        """The axis as messages say it."""
        return f"axis {self.axis} of {arguments[self.position].name}"


def axes_for(arguments: Sequence[Argument], number: Argument, value: object) -> Iterator[LongerAxis]:
    """The axes that may be longer by as much as `value` is larger than a whole `number`.

    Not those that are as long as the number: that a number is meant to be a length is not known from one equal to it.
    """
    if type(number.value) is int and type(value) is int:
        found = (
            LongerAxis(position=position, axis=axis, more=value - number.value)
            for position, argument in enumerate(arguments)
            if argument.is_tensor and argument.sparsity is None
            for axis, length in enumerate(argument.shape)
            if length > 1 and length != number.value
        )
        yield from itertools.islice(found, _TRIED)
