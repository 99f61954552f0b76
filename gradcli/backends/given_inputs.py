"""The user's own inputs, and how far from them another point is."""

from collections.abc import Sequence
from functools import cached_property, partial
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from gradcli.backends.base import Subject
from gradcli.numerics.maps.space import Space
from gradcli.numerics.sampling.directions import entry_scales
from gradcli.watchdog.case import Distance

FloatArray = NDArray[np.float64]


@final
class Home:
    """The active inputs, flat, with the size of each entry; cotangents that a map takes after them do not count.

    They are looked at when a distance is first asked for: nearly always every call returns, and none is.
    """

    def __init__(self, domain: Space, values: Sequence[NDArray[Any]]) -> None:
        self._domain, self._values = domain, tuple(values)

    @classmethod
    def of(cls, subject: Subject) -> "Home":
        """The subject's own inputs."""
        return cls(subject.domain, [subject.arguments[position].value for position in subject.active])

    @cached_property
    def point(self) -> FloatArray:
        """The inputs, flat."""
        return self._domain.flatten(self._values)

    @cached_property
    def scales(self) -> FloatArray:
        """The size of each entry."""
        return entry_scales(self._domain, self.point)

    def farthest(self, points: Sequence[FloatArray]) -> float:
        """The largest change of an entry at any of the points, in units of its size."""
        inputs = slice(0, self.point.size)
        with np.errstate(all="ignore"):
            moved = [float(np.max(np.abs(x[inputs] - self.point) / self.scales, initial=0.0)) for x in points]
        return max(moved, default=0.0)

    def to(self, values: Sequence[NDArray[Any]]) -> Distance | None:
        """The same for the values of the active inputs; None where they have other sizes."""
        sizes, own = ([np.size(value) for value in each] for each in (values, self._values))
        return partial(self._to, values) if sizes == own else None

    def _to(self, values: Sequence[NDArray[Any]]) -> float:
        flat = [np.asarray(value).reshape(-1) for value in values]
        parts = [part.astype(np.complex128).view(np.float64) if part.dtype.kind == "c" else part for part in flat]
        whole = np.concatenate(parts).astype(np.float64) if parts else np.zeros(0)
        return self.farthest([whole])
