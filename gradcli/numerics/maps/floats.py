"""Types of float64 arrays and their median, the unit roundoff, and the smallest normal number."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Vector = npt.NDArray[np.float64]
Matrix = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]
Indices = npt.NDArray[np.intp]

EPS = 2.0**-53
"""The unit roundoff ε: the largest relative error of one rounding."""
TINY = 2.0**-1022
"""The smallest normal number. Below it the rounding error is absolute, not relative."""


def median(values: Matrix) -> Any:
    """Compute the same as `np.median(values, axis=0)`, without importing `numpy.ma`.

    NumPy's function imports it, which takes a tenth of the time of importing all of NumPy: a small check would be
    visibly slower.

    Args:
        values: at least one along the first axis; NaN anywhere in a column makes its median NaN.
    """
    ordered = np.sort(values, axis=0)
    count = len(ordered)
    middle = ordered[count // 2] if count % 2 else (ordered[count // 2 - 1] + ordered[count // 2]) / 2.0
    return np.where(np.isnan(ordered[-1]), np.nan, middle)
