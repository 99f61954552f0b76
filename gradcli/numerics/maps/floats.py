"""Float64 numbers: the arrays that hold them, how they are rounded, and the smallest of them."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Matrix = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]
Indices = npt.NDArray[np.intp]

EPS = 2.0**-53
"""The largest relative error of one rounding."""
TINY = 2.0**-1022
"""The smallest normal number: below it roundings are absolute."""
