"""A backend that returns None for every gradient: a check that passes on it tests nothing."""

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from gradcli.backends.base import Backend, FloatArray, ForwardCall, Gradients, Layout, RawBackward, RawGradient, Subject
from gradcli.backends.guard import Session
from gradcli.backends.tensor.call_records import CallResult, OtherCalls, Seeds, Values
from gradcli.cases import Argument
from gradcli.numerics.maps.space import Space
from gradcli.numerics.maps.vector_map import VectorMap
from gradcli.targets import TargetInfo, Trial


@final
class NullBackend(Backend):
    """Another backend with its forward kept and its gradients taken away."""

    name = "null"

    def __init__(self, inner: Backend) -> None:
        self._inner = inner

    def claims(self, target: object) -> bool:
        """Whatever the other backend claims."""
        return self._inner.claims(target)

    def is_complete(self, target: object) -> bool:
        """As the other backend says."""
        return self._inner.is_complete(target)

    def describe(self, target: object) -> TargetInfo:
        """As the other backend does."""
        return self._inner.describe(target)

    def attempt(self, target: object, arguments: Sequence[Argument], *, gradients: bool = False) -> Trial:
        """As the other backend does."""
        return self._inner.attempt(target, arguments, gradients=gradients)

    def bind(self, target: object, arguments: Sequence[Argument], *, info: TargetInfo | None = None) -> Subject:
        """The other backend's subject, without its gradients."""
        return NullSubject(self._inner.bind(target, arguments, info=info))

    def adopt(self, values: Sequence[object]) -> tuple[Argument, ...]:
        """As the other backend does."""
        return self._inner.adopt(values)


@final
class NullSubject(Subject):
    """A subject whose backward returns None for everything."""

    def __init__(self, inner: Subject) -> None:
        self._inner = inner
        self.info = inner.info
        self.arguments = inner.arguments
        self.active = inner.active
        self.counters = inner.counters

    @property
    def domain(self) -> Space:
        """The inner subject's."""
        return self._inner.domain

    @property
    def codomain(self) -> Space:
        """The inner subject's."""
        return self._inner.codomain

    @property
    def output_numbers(self) -> tuple[int, ...]:
        """The inner subject's."""
        return self._inner.output_numbers

    @property
    def point(self) -> FloatArray:
        """The inner subject's."""
        return self._inner.point

    def session(self, *, lazy: bool = False) -> AbstractContextManager[Session]:
        """The inner subject's."""
        return self._inner.session(lazy=lazy)

    def derivative_map(self, order: int) -> VectorMap:
        """The inner map with zeros for its gradient."""
        return NullMap(self._inner.derivative_map(order))

    def body_map(self, order: int) -> VectorMap | None:
        """The inner subject's: the reference is not part of the claim."""
        return self._inner.body_map(order)

    def base_point(self, order: int, seed: int) -> FloatArray:
        """The inner subject's."""
        return self._inner.base_point(order, seed)

    def call(self) -> ForwardCall:
        """The inner subject's."""
        return self._inner.call()

    def backward(self, cotangents: Sequence[NDArray[Any] | None]) -> tuple[NDArray[Any] | None, ...]:
        """None for every input."""
        return tuple(None for _ in self.active)

    def call_at(
        self, arguments: Sequence[Argument], seeds: Seeds | None = None, beside: Values | None = None
    ) -> CallResult:
        """The inner subject's call, None for every gradient."""
        inner = self._inner.call_at(arguments, None, beside)
        return inner if seeds is None else replace(inner, gradients=tuple(None for _ in inner.active))

    def backward_laid_out(
        self, cotangents: Sequence[NDArray[Any] | None], *, inputs: Layout, outputs: Layout
    ) -> tuple[NDArray[Any] | None, ...]:
        """None for every input."""
        return self.backward(cotangents)

    def laid_out(self, inputs: Layout) -> "NullSubject | None":
        """The inner subject's, without gradients."""
        inner = self._inner.laid_out(inputs)
        return None if inner is None else NullSubject(inner)

    def raw_backward(self, cotangents: Sequence[NDArray[Any] | None], *, again: bool = False) -> RawBackward:
        """None in every place."""
        nothing = RawGradient(is_none=True, is_tensor=False, shape=None, dtype=None, value=None, type_name="NoneType")
        return RawBackward(gradients=tuple(nothing for _ in self.arguments))

    def backward_interleaved(
        self, cotangents: Sequence[NDArray[Any] | None], sets: Sequence[OtherCalls]
    ) -> Iterator[Gradients | None]:
        """None for every input, each time."""
        yield from (self.backward(cotangents) for _ in sets)

    def backward_twice(
        self, cotangents: Sequence[NDArray[Any] | None]
    ) -> tuple[tuple[NDArray[Any] | None, ...], tuple[NDArray[Any] | None, ...]]:
        """None for every input, twice."""
        return self.backward(cotangents), self.backward(cotangents)

    def rebind(self, arguments: Sequence[Argument]) -> "NullSubject":
        """The inner subject at other arguments, without gradients."""
        return NullSubject(self._inner.rebind(arguments))


@final
class NullMap(VectorMap):
    """A map that claims a derivative of zero."""

    def __init__(self, inner: VectorMap) -> None:
        self.domain = inner.domain
        self.codomain = inner.codomain
        self._inner = inner

    def value(self, x: FloatArray) -> FloatArray:
        """The inner map's value."""
        return self._inner.value(x)

    def vjp(self, x: FloatArray, cotangent: FloatArray) -> FloatArray:
        """Zeros."""
        return np.zeros(self.domain.size)
