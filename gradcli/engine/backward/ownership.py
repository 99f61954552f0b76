"""Whether an array is referred to from one place only, so that it may be written to without anybody seeing it.

CPython counts the references to an object. A view counts as one to the array whose memory it shares, a saved tensor or
a user's variable as another, so that a count of one says that nobody else can reach the memory.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np


def _references(slots: Sequence[Any], number: int) -> int:
    entry = slots[number]
    return sys.getrefcount(entry)


# What is counted besides the slot (this function's name for it, the argument) depends on the interpreter: so measure.
_ALONE = _references([np.empty(1)], 0)


def held_once(slots: Sequence[Any], number: int) -> bool:
    """Tell whether `slots[number]` is an array with memory of its own to which nothing but this slot refers."""
    entry = slots[number]
    return type(entry) is np.ndarray and entry.base is None and sys.getrefcount(entry) <= _ALONE
