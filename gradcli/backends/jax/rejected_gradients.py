"""Reads from JAX's error message why it rejects what a bwd rule returned."""

import re
from collections.abc import Sequence

import numpy as np

from gradcli.cases import Argument


def lacks_a_sum(message: str) -> bool:
    """Whether JAX rejects something that, summed over the axes that were broadcast, has the input's shape.

    That sum is the rule's to take: a mistake, which must not lead the search for inputs to others. Any other shape may
    mean that the rule was written for inputs of other shapes, as in PyTorch, which takes such sums itself.
    """
    found = re.search(
        r"produced an output of type \w+\[([\d,]*)\] corresponding to an input of type \w+\[([\d,]*)\]", message
    )
    if found is None:
        return True
    returned, wanted = (tuple(int(size) for size in part.split(",") if size) for part in found.groups())
    try:
        return np.broadcast_shapes(returned, wanted) == returned
    except ValueError:
        return False


def is_of_a_number(message: str, arguments: Sequence[Argument]) -> bool:
    """Whether the rejected gradient is that of an argument given as a Python number.

    A rule that returns an array for it was written for an array in its place: `clamp(x, low, high)` takes both.
    """
    found = re.search(r"at output\[(\d+)\]", message)
    position = -1 if found is None else int(found[1])
    return 0 <= position < len(arguments) and not arguments[position].is_tensor
