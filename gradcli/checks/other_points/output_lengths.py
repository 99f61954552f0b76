"""Numbers that are the lengths of axes of an output, as in a resampling to `n_out` samples."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from gradcli.backends.base import Subject
from gradcli.cases import Argument

_LAID_OUT = frozenset((
    "dim", "dims", "axis", "axes", "groups", "channels", "heads", "features", "classes", "experts", "chunks", "block",
    "blocks", "rows", "cols", "columns", "shape",
))  # fmt: skip
"""Last words of names of numbers that lay out a tensor in other ways: forward may run with a meaningless one."""
_LONGEST, _LARGEST = 64, 4_000
"""Longer input axes, and outputs of more numbers, cost too much."""


def longer_output(subject: Subject, argument: Argument) -> int | tuple[int, ...] | None:
    """The argument for outputs about twice as long as the input, None if it is not the length of an output.

    Where an output is longer than the input, some of its entries read the same entry of the input, and backward has to
    add up what these return.
    """
    lengths = _lengths(argument)
    outputs = [subject.first_call.outputs[number] for number in subject.output_numbers]
    inputs = [a.shape for a in subject.arguments if a.is_tensor and a.requires_grad and a.shape]
    if lengths is None or not inputs:
        return None
    for output in outputs:
        for place in _places(output.shape, lengths):
            alike = next((shape for shape in inputs if len(shape) == output.ndim), None)
            read = (max(inputs[0]),) * len(lengths) if alike is None else alike[place : place + len(lengths)]
            new = tuple(2 * length + 1 for length in read)
            size = output.size // max(1, int(np.prod(lengths))) * int(np.prod(new))
            if max(read) <= _LONGEST and size <= _LARGEST and any(n > m for n, m in zip(read, lengths, strict=True)):
                return new[0] if isinstance(argument.value, int) else new
    return None


def is_output_length(argument: Argument, new: object, before: Sequence[NDArray[np.generic]], after: Subject) -> bool:
    """Whether an output has the lengths `new` where it had those of the argument, and all else stays."""
    old, changed = _lengths(argument), _lengths_of(new)
    if old is None or changed is None:
        return False
    pairs = [(one.shape, other.shape) for one, other in zip(before, after.first_call.outputs, strict=True)]
    return any(one != other for one, other in pairs) and all(
        one == other or other in [one[:p] + changed + one[p + len(old) :] for p in _places(one, old)]
        for one, other in pairs
    )


def _lengths(argument: Argument) -> tuple[int, ...] | None:
    if argument.is_tensor or argument.name.lower().rpartition("_")[2] in _LAID_OUT:
        return None
    return _lengths_of(argument.value)


def _lengths_of(value: object) -> tuple[int, ...] | None:
    several = value if isinstance(value, tuple) else (value,)
    return several if several and all(type(n) is int and n > 0 for n in several) else None


def _places(shape: tuple[int, ...], lengths: tuple[int, ...]) -> list[int]:
    return [p for p in range(len(shape) - len(lengths), -1, -1) if shape[p : p + len(lengths)] == lengths]
