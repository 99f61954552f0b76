"""Whether the outputs of two runs of forward are the same, up to rounding, or empty alike."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gradcli.targets import Trial

_SAME = 1e-9
"""Relative and absolute."""

Outputs = Sequence[NDArray[Any]]


def equal(one: Outputs, other: Outputs) -> bool:
    """Whether outputs have the same shapes and bits."""
    if len(one) != len(other):
        return False
    return all(np.shape(a) == np.shape(b) and np.array_equal(a, b) for a, b in zip(one, other, strict=True))


def agree(one: Trial, other: Trial) -> bool:
    """Whether both returned, and the same outputs up to rounding."""
    if not (one.ok and other.ok) or len(one.outputs) != len(other.outputs):
        return False
    pairs = zip(one.outputs, other.outputs, strict=True)
    return all(a.shape == b.shape and np.allclose(a, b, rtol=_SAME, atol=_SAME, equal_nan=True) for a, b in pairs)


def empty_alike(one: Outputs, other: Outputs) -> bool:
    """Whether the same outputs are empty, and some are not."""
    empty = [output.size == 0 for output in one]
    return not all(empty) and empty == [output.size == 0 for output in other]
