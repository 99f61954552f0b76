"""Whole numbers that go with the length of an axis, as the diagonals of a band go with the columns it is stored in."""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from gradcli.cases import Argument
from gradcli.frozen import dataclass

_TRIED = 6
"""Axes that are made longer with a number: those of two or three inputs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LongerAxis:
    """An axis of the argument at `position` with `more` entries, or fewer if that is negative."""

    position: int
    axis: int
    more: int

    def of(self, arguments: Sequence[Argument]) -> list[Argument]:
        """The arguments with the axis longer: its entries are repeated from the beginning."""
        argument = arguments[self.position]
        length = argument.shape[self.axis]
        value: Any = np.take(argument.value, np.arange(length + self.more) % length, self.axis)
        made = list(arguments)
        made[self.position] = replace(argument, value=value, own=None)
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
