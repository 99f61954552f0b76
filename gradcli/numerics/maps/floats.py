"""Types of float64 arrays, the unit roundoff, and the smallest normal number."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Matrix = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]
Indices = npt.NDArray[np.intp]

EPS = 2.0**-53
"""The unit roundoff ε: the largest relative error of one rounding."""
TINY = 2.0**-1022
"""The smallest normal number. Below it the rounding error is absolute, not relative."""
