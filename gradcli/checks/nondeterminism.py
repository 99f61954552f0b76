"""What of a function is not determined: by how much calls may vary, as a spec declares, and phases of vectors."""

from typing import final

import numpy as np
from numpy.typing import NDArray

from gradcli.backends.base import FloatArray, Subject
from gradcli.numerics.maps.vector_map import Effort, VectorMap


@final
class VaryingMap(VectorMap):
    """A map whose values vary in every evaluation by up to `relative` times the largest value of their block."""

    def __init__(self, inner: VectorMap, relative: float) -> None:
        self.domain = inner.domain
        self.codomain = inner.codomain
        self.bounds, self.given = inner.bounds, inner.given
        self._inner = inner
        self._relative = relative

    @property
    def is_costly(self) -> bool:
        """As the inner map says."""
        return self._inner.is_costly

    def value(self, x: FloatArray) -> FloatArray:
        """The inner map's value."""
        return self._inner.value(x)

    def value_noise(self, x: FloatArray) -> FloatArray:
        """The inner map's, and the declared share of the largest value of each block."""
        own = self._inner.value_noise(x)
        noise: FloatArray = np.zeros(self.codomain.size) if own is None else np.array(own)
        values = np.abs(self._inner.value(x))
        for place in self.codomain.slices:
            noise[place] += self._relative * np.max(values[place], initial=0.0)
        return noise

    def effort(self, x: FloatArray) -> Effort | None:
        """As the inner map says."""
        return self._inner.effort(x)

    def depends(self, x: FloatArray) -> NDArray[np.bool_]:
        """As the inner map says."""
        return self._inner.depends(x)

    def value_and_vjps(self, x: FloatArray, cotangents: FloatArray) -> tuple[FloatArray | None, FloatArray]:
        """The inner map's value and claims."""
        return self._inner.value_and_vjps(x, cotangents)

    def vjp(self, x: FloatArray, cotangent: FloatArray) -> FloatArray:
        """The inner map's claim."""
        return self._inner.vjp(x, cotangent)

    def vjp_many(self, x: FloatArray, cotangents: FloatArray) -> FloatArray:
        """The inner map's claims."""
        return self._inner.vjp_many(x, cotangents)


def determined(subject: Subject, order: int) -> VectorMap:
    """The map of `order`; where outputs are complex, with the phases fixed that forward chooses for vectors."""
    if not any(block.complex for block in subject.codomain.blocks):
        return subject.derivative_map(order)
    from gradcli.checks.phases import without_phases

    return without_phases(subject, order)
