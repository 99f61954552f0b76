"""Outputs whose vectors have any phase, as complex eigenvectors do: the gradient is compared with the phase fixed."""

import itertools
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from gradcli.backends.base import FloatArray, Subject
from gradcli.errors import OverrunError, UserCodeError
from gradcli.numerics.maps.vector_map import Effort, VectorMap

REASON = (
    "the phase of complex vectors in the output is arbitrary, and the framework differentiates only what does not "
    "depend on it"
)


def without_phases(subject: Subject, order: int) -> VectorMap:
    """The map of `order`, at order 1 with phases fixed where the framework refuses what depends on them.

    The phase that forward chooses is arbitrary, and a right backward does not differentiate it. Whether the
    vectors are columns or rows is what lets the framework differentiate forward's body.
    """
    map_ = subject.derivative_map(order)
    places = [n for n, block in enumerate(map_.codomain.blocks) if block.complex and len(block.shape) > 1]
    body = subject.body_map(1) if places and order == 1 else None
    if body is None or _runs(body, subject.point):
        return map_
    for axes in itertools.product((-2, -1), repeat=len(places)):
        chosen = dict(zip(places, axes, strict=True))
        if _runs(FixedPhases(body, chosen, subject.point), subject.point):
            return FixedPhases(map_, chosen, subject.point)
    return map_


def _runs(map_: VectorMap, point: FloatArray) -> bool:
    """Whether the map has a gradient for a random cotangent."""
    try:
        map_.vjp(point, np.random.default_rng(0).standard_normal(map_.codomain.size))
    except OverrunError:
        raise
    except UserCodeError:
        return False
    return True


@final
class FixedPhases(VectorMap):
    """A map with each vector along `axes` of some output blocks turned until one entry is a positive number.

    Which one is chosen at `point`, where it is the largest.
    """

    def __init__(self, inner: VectorMap, axes: Mapping[int, int], point: FloatArray) -> None:
        self.domain, self.codomain = inner.domain, inner.codomain
        self._inner, self._axes = inner, axes
        values = self.codomain.views(inner.value(point))
        self._largest = {n: np.expand_dims(np.abs(values[n]).argmax(axis), axis) for n, axis in axes.items()}

    @property
    def is_costly(self) -> bool:
        """As the inner map says."""
        return self._inner.is_costly

    def value(self, x: FloatArray) -> FloatArray:
        """The inner map's value, with the vectors turned."""
        return self._turned(self._inner.value(x))

    def _turned(self, value: FloatArray) -> FloatArray:
        arrays = self.codomain.unflatten(value)
        for number, axis in self._axes.items():
            sizes = np.abs(np.take_along_axis(arrays[number], self._largest[number], axis))
            arrays[number] = arrays[number] * self._turn(arrays[number], number)
            np.put_along_axis(arrays[number], self._largest[number], sizes, axis)
        return self.codomain.flatten(arrays)

    def effort(self, x: FloatArray) -> Effort | None:
        """As the inner map says."""
        effort = self._inner.effort(x)
        return effort if effort is None or effort.value is None else replace(effort, value=self._turned(effort.value))

    def depends(self, x: FloatArray) -> NDArray[np.bool_]:
        """As the inner map says."""
        return self._inner.depends(x)

    def vjp(self, x: FloatArray, cotangent: FloatArray) -> FloatArray:
        """The inner map's claim for the cotangent of its own value."""
        arrays, cotangents = self.codomain.unflatten(self._inner.value(x)), self.codomain.unflatten(cotangent)
        for number, axis in self._axes.items():
            vectors, places = arrays[number], self._largest[number]
            back = cotangents[number] * self._turn(vectors, number).conj()
            along = (back.conj() * vectors).sum(axis, keepdims=True).imag
            entry = np.take_along_axis(vectors, places, axis)
            own = np.take_along_axis(back, places, axis) + 1j * along * entry / np.abs(entry) ** 2
            np.put_along_axis(back, places, own, axis)
            cotangents[number] = back
        return self._inner.vjp(x, self.codomain.flatten(cotangents))

    def _turn(self, vectors: NDArray[Any], number: int) -> NDArray[Any]:
        """The factors that turn the vectors of a block."""
        entry = np.take_along_axis(vectors, self._largest[number], self._axes[number])
        turn: NDArray[Any] = entry.conj() / np.abs(entry)
        return turn
