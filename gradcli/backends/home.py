"""The user's own inputs, and how far from them another point is."""

import math
from collections.abc import Sequence
from functools import partial
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from gradcli.backends.base import Subject
from gradcli.frozen import dataclass
from gradcli.numerics.sampling.directions import entry_scales
from gradcli.watchdog.case import Distance

FloatArray = NDArray[np.float64]


@final
@dataclass(frozen=True, slots=True)
class Home:
    """The active inputs, flat, with the size of each entry; cotangents that a map takes after them do not count."""

    point: FloatArray
    scales: FloatArray

    @classmethod
    def of(cls, subject: Subject) -> "Home":
        """The subject's own inputs."""
        return cls(subject.point, entry_scales(subject.domain, subject.point))

    def farthest(self, points: Sequence[FloatArray]) -> float:
        """The largest change of an entry at any of the points, in units of its size."""
        inputs = slice(0, self.point.size)
        with np.errstate(all="ignore"):
            moved = [float(np.max(np.abs(x[inputs] - self.point) / self.scales, initial=0.0)) for x in points]
        return max(moved, default=0.0)

    def to(self, values: Sequence[NDArray[Any]]) -> Distance:
        """The same for the values of the active inputs; infinite where they have other sizes."""
        return partial(self._to, values)

    def _to(self, values: Sequence[NDArray[Any]]) -> float:
        flat = [np.asarray(value).reshape(-1) for value in values]
        parts = [part.astype(np.complex128).view(np.float64) if part.dtype.kind == "c" else part for part in flat]
        whole = np.concatenate(parts).astype(np.float64) if parts else np.zeros(0)
        return self.farthest([whole]) if whole.shape == self.point.shape else math.inf
